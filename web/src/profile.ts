// The profile along a line: depth with its ±2σ band, the measurements near the line, and the truth.

import { find, say } from "./elements";
import { along, beside, NEAR, ticks } from "./profile-line";
import { store } from "./store";
import type { Point, State } from "./store";
import { plural } from "./words";

const chart = find<HTMLCanvasElement>("profile");
const box = find("profile-box");

interface Curve { distance: number; depth: number; std: number; truth: number }

function curve(state: Readonly<State>): Curve[] {
  const { picture, maps, std, line } = state;
  if (!picture || !line) return [];
  return along(line).map(({ x, y, distance }) => {
    const index = y * picture.width + x;
    const truth = picture.truth?.[index] ?? 0;
    return {
      distance, depth: maps?.depth.values[index] ?? NaN, std: std?.[index] ?? NaN, truth: truth > 0 ? truth : NaN,
    };
  });
}

function limits(samples: Curve[], marks: { point: Point }[]): [number, number] {
  const values = samples.flatMap(({ depth, std, truth }) => [
    depth, truth, Number.isFinite(std) ? depth - 2 * std : NaN, Number.isFinite(std) ? depth + 2 * std : NaN,
  ]).concat(marks.map(({ point }) => point.depth)).filter(Number.isFinite);
  if (!values.length) return [0, 1];
  const low = Math.max(0, Math.min(...values));
  const high = Math.max(...values);
  const room = 0.06 * (high - low || 1);
  return [Math.max(0, low - room), high + room];
}

function draw(state: Readonly<State>): void {
  const samples = curve(state);
  const marks = state.line ? beside(state.line, state.points) : [];
  const ratio = devicePixelRatio || 1;
  const width = chart.clientWidth;
  const height = chart.clientHeight;
  chart.width = Math.round(width * ratio);
  chart.height = Math.round(height * ratio);
  const context = chart.getContext("2d")!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (samples.length < 2) return;
  const style = getComputedStyle(document.documentElement);
  const colour = (name: string): string => style.getPropertyValue(name).trim();
  const [low, high] = limits(samples, marks);
  const [left, right, top, bottom] = [44, 10, 8, 18];
  const length = samples[samples.length - 1].distance || 1;
  const px = (distance: number): number => left + (distance / length) * (width - left - right);
  const py = (value: number): number => top + (1 - (value - low) / (high - low)) * (height - top - bottom);

  context.font = "11px system-ui, sans-serif";
  context.fillStyle = colour("--faint");
  context.strokeStyle = colour("--border");
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  for (const tick of ticks(low, high)) {
    context.beginPath();
    context.moveTo(left, py(tick));
    context.lineTo(width - right, py(tick));
    context.stroke();
    context.fillText(`${Number(tick.toPrecision(3))} m`, left - 6, py(tick));
  }
  context.textBaseline = "alphabetic";
  context.fillText(`${Math.round(length)} pixels`, width - right, height - 4);
  band(context, samples, px, py, colour("--band"));
  path(context, samples.map(({ distance, truth }) => [px(distance), py(truth)]), colour("--truth"), 1.5, [5, 4]);
  path(context, samples.map(({ distance, depth }) => [px(distance), py(depth)]), colour("--accent"), 2, []);
  for (const { distance, point } of marks) {
    context.beginPath();
    context.arc(px(distance), py(point.depth), 4, 0, 2 * Math.PI);
    context.fillStyle = colour("--text");
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = colour("--panel");
    context.stroke();
  }
  const known = samples.some(({ truth }) => Number.isFinite(truth));
  say(find("profile-note"), `${plural(marks.length, "measurement")} within ${NEAR} pixels` +
    (known ? " · dashed: the true depth" : ""));
}

function band(
  context: CanvasRenderingContext2D, samples: Curve[], px: (v: number) => number, py: (v: number) => number, fill: string,
): void {
  const sure = samples.filter(({ depth, std }) => Number.isFinite(depth) && Number.isFinite(std));
  if (sure.length < 2) return;
  context.beginPath();
  sure.forEach(({ distance, depth, std }, i) => {
    if (i === 0) context.moveTo(px(distance), py(depth + 2 * std));
    else context.lineTo(px(distance), py(depth + 2 * std));
  });
  for (const { distance, depth, std } of [...sure].reverse()) {
    context.lineTo(px(distance), py(Math.max(depth - 2 * std, 0)));
  }
  context.fillStyle = fill;
  context.fill();
}

function path(
  context: CanvasRenderingContext2D, places: number[][], colour: string, width: number, dash: number[],
): void {
  context.beginPath();
  let pen = false;
  for (const [x, y] of places) {
    if (!Number.isFinite(y)) {
      pen = false;
      continue;
    }
    if (pen) context.lineTo(x, y);
    else context.moveTo(x, y);
    pen = true;
  }
  context.setLineDash(dash);
  context.lineWidth = width;
  context.strokeStyle = colour;
  context.stroke();
  context.setLineDash([]);
}

export function startProfile(): void {
  find("profile-close").addEventListener("click", () => store.update({ line: null, tool: "point" }));
  store.listen((state, changed) => {
    const shown = state.tool === "line" || state.line !== null;
    if (box.hidden === shown) box.hidden = !shown;
    if (!shown) return;
    find("profile-hint").toggleAttribute("hidden", state.line !== null);
    if (["line", "maps", "std", "points", "tool"].some((key) => changed.has(key as keyof State))) draw(state);
  });
  new ResizeObserver(() => draw(store.state)).observe(box);
}
