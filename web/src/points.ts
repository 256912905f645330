// Everything that changes the measurements goes through here: history, the server, and what is selected.

import { connection } from "./connection";
import { History } from "./history";
import { pointAt, store } from "./store";
import type { Point } from "./store";

export const NEAREST = 0.05;
export const FARTHEST = 200;
export const history = new History();

/** Replace all points as one step of the history (or part of a `group` of steps). */
export function setPoints(points: readonly Point[], selected: number | null, group = ""): void {
  history.push(store.state.points, group);
  show(points, selected);
}

function show(points: readonly Point[], selected: number | null): void {
  const keep = selected !== null && selected >= 0 && selected < points.length ? selected : null;
  store.update({ points, selected: keep, suggestions: [], outliers: [], overlay: null, listened: null });
  connection.setPoints(points);
}

/** Points that came from the server, which has computed with them already. */
export function adopt(points: readonly Point[], group: string): void {
  history.push(store.state.points, group);
  store.update({ points, selected: null, suggestions: [], outliers: [], overlay: null, listened: null });
}

/** What a new point at a pixel says: the dense map if it answers clicks, else the present estimate. */
export function depthFor(x: number, y: number): number {
  const { picture, sceneAnswers, maps, defaultDepth } = store.state;
  if (!picture) return defaultDepth;
  const index = y * picture.width + x;
  if (sceneAnswers && picture.truth && picture.truth[index] > 0) return picture.truth[index];
  const estimate = maps?.depth.values[index];
  return estimate !== undefined && Number.isFinite(estimate) ? rounded(estimate) : defaultDepth;
}

export function place(x: number, y: number): void {
  const { points, defaultStd, welcome } = store.state;
  const there = pointAt(points, x, y);
  if (there >= 0) {
    store.update({ selected: there });
    return;
  }
  if (points.length >= (welcome?.most_points ?? Infinity)) {
    store.update({ error: `there can be ${welcome?.most_points} points at most: delete some first` });
    return;
  }
  setPoints([...points, { x, y, depth: depthFor(x, y), std: defaultStd }], points.length);
}

/** Change one point; small changes of one gesture are one step of the history. */
export function change(index: number, part: Partial<Point>, group: string): void {
  const { points, picture } = store.state;
  const old = points[index];
  if (!old || !picture) return;
  const next = { ...old, ...part };
  const x = clamp(Math.round(next.x), 0, picture.width - 1);
  const y = clamp(Math.round(next.y), 0, picture.height - 1);
  const taken = pointAt(points, x, y);
  const free = taken < 0 || taken === index;
  const point = {
    x: free ? x : old.x,
    y: free ? y : old.y,
    depth: clamp(next.depth, NEAREST, FARTHEST),
    std: Math.max(next.std, 0),
  };
  if (point.x === old.x && point.y === old.y && point.depth === old.depth && point.std === old.std) return;
  setPoints(points.map((one, i) => (i === index ? point : one)), index, group);
}

export function remove(index: number): void {
  const { points } = store.state;
  if (!points[index]) return;
  setPoints(points.filter((_, i) => i !== index), null);
}

export function removeAll(): void {
  if (store.state.points.length) setPoints([], null);
}

export function undo(): void {
  const found = history.undo(store.state.points);
  if (found) show(found, null);
}

export function redo(): void {
  const found = history.redo(store.state.points);
  if (found) show(found, null);
}

export function rounded(depth: number): number {
  return Number(depth.toPrecision(4));
}

export function clamp(value: number, low: number, high: number): number {
  return Math.min(Math.max(value, low), high);
}
