// Numbers to colours, as gbpn.pictures does it: near is warm, far is cold, unknown is grey.

import { CONFIDENCE, DEPTH, ERROR, UNKNOWN } from "./palettes";
import type { LayerName } from "./store";

function table(text: string): Uint8Array {
  const raw = atob(text);
  return Uint8Array.from(raw, (letter) => letter.charCodeAt(0));
}

export const PALETTES = { depth: table(DEPTH), confidence: table(CONFIDENCE), error: table(ERROR) };
export type PaletteName = keyof typeof PALETTES;

/** Which palette a layer has. */
export function paletteOf(layer: LayerName): PaletteName {
  if (layer === "std" || layer === "error") return "error";
  return layer === "confidence" ? "confidence" : "depth";
}

/** [r, g, b] of one value between low and high. */
export function colourOf(value: number, low: number, high: number, palette: PaletteName): [number, number, number] {
  if (!Number.isFinite(value)) return [UNKNOWN[0], UNKNOWN[1], UNKNOWN[2]];
  const share = Math.min(Math.max((value - low) / Math.max(high - low, 1e-12), 0), 1);
  const entry = 3 * Math.min(Math.floor(share * 256), 255);
  const colours = PALETTES[palette];
  return [colours[entry], colours[entry + 1], colours[entry + 2]];
}

/** Paint values into RGBA pixels; `unknownAt` values count as unknown (0 in a truth map). */
export function paint(
  values: Float32Array, low: number, high: number, palette: PaletteName, out: Uint8ClampedArray, unknownAt = NaN,
): void {
  const colours = PALETTES[palette];
  const scale = 256 / Math.max(high - low, 1e-12);
  for (let i = 0, o = 0; i < values.length; i++, o += 4) {
    const value = values[i];
    if (!Number.isFinite(value) || value === unknownAt) {
      out[o] = UNKNOWN[0];
      out[o + 1] = UNKNOWN[1];
      out[o + 2] = UNKNOWN[2];
    } else {
      const entry = 3 * Math.min(Math.max(Math.floor((value - low) * scale), 0), 255);
      out[o] = colours[entry];
      out[o + 1] = colours[entry + 1];
      out[o + 2] = colours[entry + 2];
    }
    out[o + 3] = 255;
  }
}

/** A colour range: percentiles of the finite, positive values, as the previews choose it. */
export function spread(values: Float32Array, low = 2, high = 98): [number, number] {
  const kept = values.filter((value) => Number.isFinite(value) && value > 0).sort();
  if (!kept.length) return [0, 1];
  const bottom = percentile(kept, low);
  return [bottom, Math.max(percentile(kept, high), bottom + 1e-6)];
}

/** Of sorted values, interpolated between neighbours. */
export function percentile(sorted: Float32Array, percent: number): number {
  const place = (percent / 100) * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - below);
}
