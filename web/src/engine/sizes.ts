// At which size a picture is completed; the twin of src/gbpn/engine/resizing.py, which says why.

import type { Camera } from "./frame";

const SHORTEST = 114;
const USUAL_PIXELS = 228 * 304;
const USUAL_DENSITY = 500 / USUAL_PIXELS;
const AT_USUAL = 1.2;
const POWER = 0.35;
const NEAR = [0.85, 1.18] as const;
const MOST_PIXELS = 1024 * 2048;

/** Factor on both sides at which a picture of this focal length, in pixels, is best completed. */
export function workingScale(height: number, width: number, focal: number, count: number, trained: number): number {
  const pixels = height * width;
  const density = count / (pixels * (trained / focal) ** 2);
  const wanted = Math.max(AT_USUAL * (density / USUAL_DENSITY) ** POWER, 1);
  let factor = trained / focal * wanted;
  if (factor > 1) factor = Math.max(1, Math.min(factor, trained / focal, Math.sqrt(USUAL_PIXELS / pixels)));
  else factor = Math.min(1, Math.max(factor, SHORTEST / Math.min(height, width)));
  if (NEAR[0] < factor && factor < NEAR[1]) factor = 1;
  return Math.min(factor, Math.sqrt(MOST_PIXELS / pixels));
}

/** The camera of a picture after it was resized. */
export function scaledCamera([fx, fy, cx, cy]: Camera, columns: number, rows: number): Camera {
  return [fx * columns, fy * rows, (cx + 0.5) * columns - 0.5, (cy + 0.5) * rows - 0.5];
}

/** A measurement's pixel after the picture was resized. */
export function scaledPlace(x: number, share: number, length: number): number {
  return Math.min(Math.max(Math.round((x + 0.5) * share - 0.5), 0), length - 1);
}

/** Weights of a triangle that widens as pixels are merged: for each new pixel the first old one, and their shares. */
export function triangle(from: number, to: number): { first: number; shares: Float64Array }[] {
  const scale = from / to;
  const support = Math.max(scale, 1);
  return Array.from({ length: to }, (_, i) => {
    const centre = scale * (i + 0.5);
    const first = Math.max(Math.floor(centre - support + 0.5), 0);
    const end = Math.min(Math.floor(centre + support + 0.5), from);
    const shares = Float64Array.from({ length: end - first }, (_, k) =>
      Math.max(0, 1 - Math.abs((k + first - centre + 0.5) / support)));
    const total = shares.reduce((sum, share) => sum + share, 0);
    return { first, shares: shares.map((share) => share / total) };
  });
}
