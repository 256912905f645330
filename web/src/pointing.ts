// Mouse, touch and keyboard on the picture: place, move, deepen and delete points, draw a line, move the split.

import { canvas, fit, pixelAt, placeOf } from "./canvas";
import { connection } from "./connection";
import { typeDepth } from "./measure";
import { change, clamp, history, place, redo, remove, undo } from "./points";
import { store } from "./store";

const REACH = 12;
const STEP = 1.01;

type Gesture =
  | { kind: "move"; index: number; moved: boolean }
  | { kind: "deepen"; index: number; top: number; depth: number }
  | { kind: "line"; x: number; y: number }
  | { kind: "split" };

let gesture: Gesture | null = null;
/** Where a line drawn with the keyboard begins. */
let anchor: { x: number; y: number } | null = null;

/** The nearest point within reach of a place on the canvas, or −1. */
function near(left: number, top: number): number {
  let best = -1;
  let least = REACH * REACH;
  const where = fit();
  store.state.points.forEach((point, index) => {
    const there = placeOf(point.x, point.y, where);
    const distance = (there.left - left) ** 2 + (there.top - top) ** 2;
    if (distance < least) {
      least = distance;
      best = index;
    }
  });
  return best;
}

function local(event: MouseEvent): { left: number; top: number } {
  const box = canvas.getBoundingClientRect();
  return { left: event.clientX - box.left, top: event.clientY - box.top };
}

function overSplit(left: number): boolean {
  const { split, splitAt, picture, overlay } = store.state;
  if (!picture || (overlay ? overlay.kind !== "beside" : !split)) return false;
  const place = fit();
  return Math.abs(left - (place.left + splitAt * picture.width * place.scale)) < 10;
}

function pressed(event: PointerEvent): void {
  if (event.button !== 0 || !store.state.picture) return;
  canvas.focus({ preventScroll: true, focusVisible: false } as FocusOptions);
  const { left, top } = local(event);
  const pixel = pixelAt(left, top);
  const { tool } = store.state;
  const index = tool === "point" ? near(left, top) : -1;
  if (index < 0 && overSplit(left)) {
    gesture = { kind: "split" };
  } else if (tool === "line" && pixel) {
    gesture = { kind: "line", ...pixel };
    store.update({ line: null });
  } else if (tool === "listen" && pixel) {
    listen(pixel.x, pixel.y);
    return;
  } else if (index >= 0) {
    store.update({ selected: index });
    const depth = store.state.points[index].depth;
    gesture = event.shiftKey
      ? { kind: "deepen", index, top: event.clientY, depth }
      : { kind: "move", index, moved: false };
  } else if (pixel && tool === "point") {
    place(pixel.x, pixel.y);
    gesture = { kind: "move", index: store.state.points.length - 1, moved: false };
  }
  if (gesture) canvas.setPointerCapture(event.pointerId);
  event.preventDefault();
}

function moved(event: PointerEvent): void {
  const { left, top } = local(event);
  const pixel = pixelAt(left, top);
  store.update({ hover: pixel });
  if (!gesture) {
    const { tool } = store.state;
    const grab = tool === "point" && near(left, top) >= 0;
    canvas.style.cursor = overSplit(left) ? "ew-resize" : grab ? "grab" : tool === "listen" ? "help" : "crosshair";
    return;
  }
  if (gesture.kind === "split") {
    const { picture } = store.state;
    const place = fit();
    if (picture) store.update({ splitAt: clamp((left - place.left) / (picture.width * place.scale), 0, 1) });
  } else if (gesture.kind === "line" && pixel) {
    store.update({ line: { x0: gesture.x, y0: gesture.y, x1: pixel.x, y1: pixel.y } });
  } else if (gesture.kind === "move" && pixel) {
    const point = store.state.points[gesture.index];
    if (point && (point.x !== pixel.x || point.y !== pixel.y)) {
      gesture.moved = true;
      change(gesture.index, follow(pixel.x, pixel.y, gesture.index), `move ${gesture.index}`);
    }
  } else if (gesture.kind === "deepen") {
    const depth = gesture.depth * STEP ** (gesture.top - event.clientY);
    change(gesture.index, { depth }, `deepen ${gesture.index}`);
  }
}

/** A point that is moved keeps its depth, unless the dense map answers for its new place. */
function follow(x: number, y: number, index: number): { x: number; y: number; depth?: number } {
  const { picture, sceneAnswers, points } = store.state;
  const truth = picture?.truth;
  if (!picture || !truth || !sceneAnswers) return { x, y };
  const old = points[index];
  const answered = old && truth[old.y * picture.width + old.x] === old.depth;
  const depth = truth[y * picture.width + x];
  return answered && depth > 0 ? { x, y, depth } : { x, y };
}

function released(): void {
  gesture = null;
  history.settle();
}

/** Ask which pixels a pixel listens to. */
export function listen(x: number, y: number): void {
  if (!store.state.points.length) {
    store.update({ error: "measure a point first: without one there is nothing to listen to" });
    return;
  }
  connection.ask({ kind: "Listen", x, y });
}

function wheeled(event: WheelEvent): void {
  const { left, top } = local(event);
  const under = near(left, top);
  const index = under >= 0 ? under : store.state.selected;
  if (index === null || index < 0) return;
  event.preventDefault();
  const point = store.state.points[index];
  if (!point) return;
  store.update({ selected: index });
  change(index, { depth: point.depth * STEP ** (-event.deltaY / 50) }, `wheel ${index}`);
}

const ARROWS: Record<string, readonly [number, number]> = {
  ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
};

/** Keys while the picture has the focus. */
function keyed(event: KeyboardEvent): void {
  const { picture, selected, points, cursor, tool } = store.state;
  if (!picture || event.ctrlKey || event.metaKey || event.altKey) return;
  const arrow = ARROWS[event.key];
  const pace = event.shiftKey ? 10 : 1;
  if (arrow && selected !== null && points[selected] && tool === "point") {
    const { x, y } = points[selected];
    change(selected, follow(x + pace * arrow[0], y + pace * arrow[1], selected), `keys ${selected}`);
  } else if (arrow) {
    const start = cursor ?? { x: Math.floor(picture.width / 2), y: Math.floor(picture.height / 2) };
    const moved = {
      x: clamp(start.x + pace * arrow[0], 0, picture.width - 1),
      y: clamp(start.y + pace * arrow[1], 0, picture.height - 1),
    };
    const line = anchor && { x0: anchor.x, y0: anchor.y, x1: moved.x, y1: moved.y };
    store.update({ cursor: moved, hover: moved, ...(line ? { line } : {}) });
  } else if ((event.key === "Enter" || event.key === " ") && cursor && (selected === null || tool !== "point")) {
    if (tool === "listen") listen(cursor.x, cursor.y);
    else if (tool === "line") anchor = anchor ? null : cursor;
    else place(cursor.x, cursor.y);
  } else if ((event.key === "Delete" || event.key === "Backspace") && selected !== null) {
    remove(selected);
  } else if ("+=-_".includes(event.key) && selected !== null && points[selected]) {
    const factor = (event.shiftKey && event.key !== "+" ? 1.1 : STEP) ** ("+=".includes(event.key) ? 1 : -1);
    change(selected, { depth: points[selected].depth * factor }, `keys ${selected}`);
  } else if (/^[\d.]$/.test(event.key) && selected !== null) {
    typeDepth();
    return; // the digit goes into the field
  } else if (event.key === "Escape") {
    anchor = null;
    store.update({ selected: null, line: null, overlay: null, listened: null });
  } else {
    return;
  }
  event.preventDefault();
}

/** Undo and redo anywhere but in a text field, which has its own. */
function everywhere(event: KeyboardEvent): void {
  const target = event.target as HTMLElement;
  const typing = target instanceof HTMLInputElement && target.type !== "range" && target.type !== "checkbox";
  if (!(event.ctrlKey || event.metaKey) || typing) return;
  const key = event.key.toLowerCase();
  if (key === "z" && !event.shiftKey) undo();
  else if (key === "y" || (key === "z" && event.shiftKey)) redo();
  else return;
  event.preventDefault();
}

export function startPointing(): void {
  canvas.addEventListener("pointerdown", pressed);
  canvas.addEventListener("pointermove", moved);
  canvas.addEventListener("pointerup", released);
  canvas.addEventListener("pointercancel", released);
  canvas.addEventListener("pointerleave", () => store.update({ hover: null }));
  canvas.addEventListener("wheel", wheeled, { passive: false });
  canvas.addEventListener("keydown", keyed);
  canvas.addEventListener("keyup", () => history.settle());
  canvas.addEventListener("focus", () => store.update({ cursor: store.state.cursor }));
  document.addEventListener("keydown", everywhere);
}
