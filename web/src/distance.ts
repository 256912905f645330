// The distance between two pixels in space, and its sigma.

import type { Picture } from "./store";

export interface Place { readonly x: number; readonly y: number; readonly depth: number; readonly std: number }

/** Metres in the camera's axes for each metre of depth: x right, y down, z ahead. */
function ray({ x, y }: Place, [fx, fy, cx, cy]: readonly number[]): [number, number, number] {
  return [(x - cx) / fx, (y - cy) / fy, 1];
}

/**
 * Metres between two places, and their sigma: of both depths, as if they erred independently. Neighbours err alike, so
 * that of a short distance on one surface is smaller than stated.
 */
export function distanceBetween(one: Place, other: Place, camera: Picture["camera"]): { metres: number; std: number } {
  const [a, b] = [ray(one, camera), ray(other, camera)];
  const step = a.map((value, axis) => value * one.depth - b[axis] * other.depth);
  const metres = Math.hypot(...step);
  if (metres === 0) return { metres, std: Math.hypot(one.std, other.std) };
  const slope = (along: readonly number[]): number => along.reduce((sum, value, axis) => sum + value * step[axis], 0) / metres;
  return { metres, std: Math.hypot(slope(a) * one.std, slope(b) * other.std) };
}
