// The line that a profile is cut along: its pixels, the measurements beside it, round numbers for its axis.

import type { Line, Point } from "./store";

/** Pixels from the line within which a measurement is shown. */
export const NEAR = 3;

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

/** Round steps for about four lines. */
export function ticks(low: number, high: number): number[] {
  const rough = (high - low) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough) ?? rough;
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - first + 1 }, (_, i) => (first + i) * step);
}
