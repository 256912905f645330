// The profile along a line: depth with its ±2σ band, the measurements near the line, and the truth.

import { find, say } from "./elements";
import { store } from "./store";
import type { Line, Point, State } from "./store";

const NEAR = 3;
const chart = find<HTMLCanvasElement>("profile");
const box = find("profile-box");

export interface Sample { x: number; y: number; distance: number }

/** One sample per pixel step along the line. */
export function along(line: Line): Sample[] {
  const dx = line.x1 - line.x0;
  const dy = line.y1 - line.y0;
  const steps = Math.max(Math.abs(dx), Math.abs(dy), 1);
  const length = Math.hypot(dx, dy);
  return Array.from({ length: steps + 1 }, (_, i) => ({
    x: Math.round(line.x0 + (dx * i) / steps),
    y: Math.round(line.y0 + (dy * i) / steps),
    distance: (length * i) / steps,
  }));
}

/** Measurements within a few pixels of the line, with their place along it. */
export function beside(line: Line, points: readonly Point[], reach = NEAR): { distance: number; point: Point }[] {
  const dx = line.x1 - line.x0;
  const dy = line.y1 - line.y0;
  const length = Math.hypot(dx, dy) || 1;
  return points.flatMap((point) => {
    const distance = ((point.x - line.x0) * dx + (point.y - line.y0) * dy) / length;
    const aside = Math.abs((point.x - line.x0) * dy - (point.y - line.y0) * dx) / length;
    return aside <= reach && distance >= 0 && distance <= length ? [{ distance, point }] : [];
  });
}

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

/** Round steps for about four lines. */
export function ticks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
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
  say(find("profile-note"), `${marks.length} measurement${marks.length === 1 ? "" : "s"} within ${NEAR} pixels` +
    (known ? "; dashed: the true depth" : ""));
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
