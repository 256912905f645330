// The picture: image, layers, split, points, suggestions, lines. Drawn anew on every change of the store.

import { colourOf } from "./colours";
import { find } from "./elements";
import { paintedImage, paintedLayer, paintedValues, rangeOf } from "./layers";
import { store } from "./store";
import type { State } from "./store";
import { metres } from "./words";

export const canvas = find<HTMLCanvasElement>("picture");
const holder = find("stage");
const MANY = 200;

/** Where the picture lies on the canvas, CSS pixels. */
export interface Fit { left: number; top: number; scale: number }

export function fit(): Fit {
  const picture = store.state.picture;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (!picture) return { left: 0, top: 0, scale: 1 };
  const scale = Math.min(width / picture.width, height / picture.height);
  return { left: (width - picture.width * scale) / 2, top: (height - picture.height * scale) / 2, scale };
}

/** The pixel under a place of the canvas, or null beside the picture. */
export function pixelAt(left: number, top: number): { x: number; y: number } | null {
  const { picture } = store.state;
  if (!picture) return null;
  const place = fit();
  const x = Math.floor((left - place.left) / place.scale);
  const y = Math.floor((top - place.top) / place.scale);
  return x >= 0 && y >= 0 && x < picture.width && y < picture.height ? { x, y } : null;
}

/** The middle of a pixel on the canvas. */
export function placeOf(x: number, y: number, place: Fit = fit()): { left: number; top: number } {
  return { left: place.left + (x + 0.5) * place.scale, top: place.top + (y + 0.5) * place.scale };
}

export function draw(state: Readonly<State>): void {
  const ratio = devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * ratio);
  const height = Math.round(canvas.clientHeight * ratio);
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  const context = canvas.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  if (!state.picture) return;
  drawMaps(context, state);
  drawMarks(context, state);
}

function drawMaps(context: CanvasRenderingContext2D, state: Readonly<State>): void {
  const picture = state.picture!;
  const { left, top, scale } = fit();
  const box = [left, top, picture.width * scale, picture.height * scale] as const;
  context.imageSmoothingEnabled = state.sharp !== null || scale < 3;
  context.drawImage(state.sharp ?? paintedImage(picture), ...box);
  context.imageSmoothingEnabled = scale < 3;
  const part = (painted: HTMLCanvasElement | null, from: number, to: number): void => {
    if (!painted) return;
    context.save();
    context.beginPath();
    context.rect(left + from * box[2], top, (to - from) * box[2], box[3]);
    context.clip();
    context.globalAlpha = state.opacity;
    context.drawImage(painted, ...box);
    context.restore();
  };
  const beside = state.overlay?.kind === "beside" ? state.overlay.other : undefined;
  if (state.overlay && !beside) {
    const { kind, values } = state.overlay;
    const range = kind === "film" ? rangeOf(state, "depth") : overlayRange(values, kind);
    context.globalAlpha = kind === "listening" ? 0.8 : 1;
    context.drawImage(paintedValues("overlay", picture, values, range, kind === "film" ? "depth" : "error"), ...box);
    context.globalAlpha = 1;
    return;
  }
  const split = state.split || beside !== undefined;
  part(paintedLayer(state, beside ? "depth" : state.layer), 0, split ? state.splitAt : 1);
  if (!split) return;
  const right = beside
    ? paintedValues("overlay", picture, beside, rangeOf(state, "depth"), "depth") : paintedLayer(state, state.splitLayer);
  part(right, state.splitAt, 1);
  const at = left + state.splitAt * box[2];
  context.fillStyle = "#fff";
  context.fillRect(at - 1, top, 2, box[3]);
  context.beginPath();
  context.arc(at, top + box[3] / 2, 9, 0, 2 * Math.PI);
  context.fill();
  context.fillStyle = "#333";
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText("↔", at, top + box[3] / 2);
}

let overlayRangeOf: { values: Float32Array; range: [number, number] } | null = null;

/** Differences from 0 to their 98th percentile; listening on its own scale of 0 to 1, faint voices lifted. */
export function overlayRange(values: Float32Array, kind: string): [number, number] {
  if (kind === "listening") return [0, 1];
  if (overlayRangeOf?.values !== values) {
    const sorted = values.filter((value) => Number.isFinite(value)).sort();
    const top = sorted.length ? sorted[Math.floor(0.98 * (sorted.length - 1))] : 1;
    overlayRangeOf = { values, range: [0, Math.max(top, 1e-3)] };
  }
  return overlayRangeOf.range;
}

function drawMarks(context: CanvasRenderingContext2D, state: Readonly<State>): void {
  if (state.line) drawLine(context, state);
  if (state.listened) drawListening(context, state);
  if (state.showPoints) drawPoints(context, state);
  state.suggestions.forEach((one, index) => {
    const { left, top } = placeOf(one.x, one.y);
    ring(context, left, top, 10, "#fff", "#111");
    context.fillStyle = "#fff";
    context.font = "600 11px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineWidth = 3;
    context.strokeStyle = "#111";
    context.strokeText(String(index + 1), left, top);
    context.fillText(String(index + 1), left, top);
  });
  for (const one of state.outliers) {
    const { left, top } = placeOf(one.x, one.y);
    context.strokeStyle = "#111";
    context.lineWidth = 5;
    cross(context, left, top, 7);
    context.strokeStyle = "#ff4d6d";
    context.lineWidth = 2.5;
    cross(context, left, top, 7);
  }
  if (state.cursor && document.activeElement === canvas) {
    const { left, top } = placeOf(state.cursor.x, state.cursor.y);
    context.strokeStyle = "#111";
    context.lineWidth = 3;
    cross(context, left, top, 10, true);
    context.strokeStyle = "#fff";
    context.lineWidth = 1.25;
    cross(context, left, top, 10, true);
  }
}

function drawPoints(context: CanvasRenderingContext2D, state: Readonly<State>): void {
  const [low, high] = rangeOf(state, "depth");
  const many = state.points.length > MANY;
  const where = fit();
  const radius = many ? Math.max(1, Math.min(2.2, where.scale * 0.7)) : 4.5;
  state.points.forEach((point, index) => {
    const { left, top } = placeOf(point.x, point.y, where);
    const [r, g, b] = colourOf(point.depth, low, high, "depth");
    context.beginPath();
    context.arc(left, top, radius, 0, 2 * Math.PI);
    context.fillStyle = `rgb(${r} ${g} ${b})`;
    context.fill();
    if (!many) {
      context.lineWidth = 3;
      context.strokeStyle = "rgb(0 0 0 / 55%)";
      context.stroke();
      context.lineWidth = 1.5;
      context.strokeStyle = "#fff";
      context.stroke();
    }
    if (index === state.selected) ring(context, left, top, radius + 5, "#fff", "#111");
  });
  const selected = state.selected === null ? undefined : state.points[state.selected];
  if (selected) tag(context, selected.x, selected.y, metres(selected.depth, selected.std || NaN));
}

/** Words beside a pixel, above it where there is room. */
function tag(context: CanvasRenderingContext2D, x: number, y: number, text: string): void {
  const { left, top } = placeOf(x, y);
  context.font = "600 12px system-ui, sans-serif";
  const width = context.measureText(text).width + 14;
  const from = Math.min(Math.max(left - width / 2, 2), canvas.clientWidth - width - 2);
  const above = top > 44 ? top - 37 : top + 15;
  context.beginPath();
  context.roundRect(from, above, width, 22, 11);
  context.fillStyle = "rgb(15 20 30 / 82%)";
  context.fill();
  context.fillStyle = "#fff";
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.fillText(text, from + width / 2, above + 11.5);
}

function drawLine(context: CanvasRenderingContext2D, state: Readonly<State>): void {
  const line = state.line!;
  const from = placeOf(line.x0, line.y0);
  const to = placeOf(line.x1, line.y1);
  for (const [width, colour] of [[4, "rgb(0 0 0 / 60%)"], [1.75, "#fff"]] as const) {
    context.lineWidth = width;
    context.strokeStyle = colour;
    context.beginPath();
    context.moveTo(from.left, from.top);
    context.lineTo(to.left, to.top);
    context.stroke();
  }
  ring(context, from.left, from.top, 4, "#fff", "#111");
  ring(context, to.left, to.top, 4, "#fff", "#111");
}

function drawListening(context: CanvasRenderingContext2D, state: Readonly<State>): void {
  const heard = state.listened!;
  const to = placeOf(heard.x, heard.y);
  const order = [...heard.shares.keys()].sort((a, b) => Math.abs(heard.shares[b]) - Math.abs(heard.shares[a]));
  for (const index of order.slice(0, 12)) {
    const point = state.points[index];
    const share = Math.abs(heard.shares[index]);
    if (!point || share < 0.01) continue;
    const from = placeOf(point.x, point.y);
    context.strokeStyle = "rgb(255 255 255 / 90%)";
    context.lineWidth = 1 + 6 * Math.min(share, 1);
    context.beginPath();
    context.moveTo(from.left, from.top);
    context.lineTo(to.left, to.top);
    context.stroke();
  }
  ring(context, to.left, to.top, 6, "#fff", "#111");
}

function ring(
  context: CanvasRenderingContext2D, left: number, top: number, radius: number, colour: string, edge: string,
): void {
  context.beginPath();
  context.arc(left, top, radius, 0, 2 * Math.PI);
  context.lineWidth = 4;
  context.strokeStyle = edge;
  context.stroke();
  context.lineWidth = 2;
  context.strokeStyle = colour;
  context.stroke();
}

function cross(context: CanvasRenderingContext2D, left: number, top: number, size: number, upright = false): void {
  const [a, b] = upright ? [size, 0] : [size * 0.7, size * 0.7];
  context.beginPath();
  context.moveTo(left - a, top - b);
  context.lineTo(left + a, top + b);
  context.moveTo(left - b, top + a);
  context.lineTo(left + b, top - a);
  context.stroke();
}

export function startCanvas(): void {
  store.listen((state) => {
    if (state.view === "picture") draw(state);
  });
  new ResizeObserver(() => draw(store.state)).observe(holder);
}
