// What the picture shows: maps painted once per change at their own size, then laid over the image.

import { paint, paletteOf, spread } from "./colours";
import { at, store } from "./store";
import type { LayerName, Picture, State } from "./store";

type Range = readonly [number, number];

/** Values of a layer, or null where there are none. */
export function valuesOf(state: Readonly<State>, layer: LayerName): Float32Array | null {
  const { maps, std, confidence, picture } = state;
  if (layer === "depth") return maps?.depth.values ?? null;
  if (layer === "confidence") return confidence;
  if (layer === "std") return std;
  if (layer === "truth") return picture?.truth ?? null;
  if (layer === "error") return errorOf(state);
  return null;
}

let errorCache: { depth: Float32Array; truth: Float32Array; values: Float32Array } | null = null;

function errorOf(state: Readonly<State>): Float32Array | null {
  const depth = state.maps?.depth.values;
  const truth = state.picture?.truth;
  if (!depth || !truth) return null;
  if (errorCache?.depth !== depth || errorCache.truth !== truth) {
    const values = new Float32Array(depth.length);
    for (let i = 0; i < values.length; i++) values[i] = truth[i] > 0 ? Math.abs(depth[i] - truth[i]) : NaN;
    errorCache = { depth, truth, values };
  }
  return errorCache.values;
}

/** Root of the mean square of the error layer, metres. */
export function rmse(error: Float32Array): number {
  let sum = 0;
  let count = 0;
  for (const value of error) {
    if (Number.isFinite(value)) {
      sum += value * value;
      count++;
    }
  }
  return count ? Math.sqrt(sum / count) : NaN;
}

const ranges = new Map<LayerName, { key: unknown; range: Range }>();

/** Colour range of a layer: by hand, else percentiles. Depth keeps the truth's, or that of the last refined answer. */
export function rangeOf(state: Readonly<State>, layer: LayerName): Range {
  const byHand = state.clamps[layer];
  if (byHand) return byHand;
  const depthLike = layer === "depth" || layer === "truth";
  const values = depthLike && state.picture?.truth ? state.picture.truth : valuesOf(state, layer);
  if (!values) return [0, 1];
  const kept = ranges.get(layer);
  const settled = state.maps?.stage === "last" || layer === "truth";
  if (kept && (kept.key === values || (!settled && state.maps !== null && kept.key !== null))) return kept.range;
  const [low, high] = spread(values);
  const range: Range = layer === "error" ? [0, Math.max(high, 1e-3)] : [low, high];
  ranges.set(layer, { key: values, range });
  return range;
}

/** Forget ranges, when another picture is opened. */
export function forgetRanges(): void {
  ranges.clear();
}

interface Painted { canvas: HTMLCanvasElement; key: string; values: unknown }
const painted = new Map<string, Painted>();

function surface(slot: string, width: number, height: number): Painted {
  let found = painted.get(slot);
  if (!found || found.canvas.width !== width || found.canvas.height !== height) {
    const canvas = document.createElement("canvas");
    canvas.width = width;
    canvas.height = height;
    found = { canvas, key: "", values: null };
    painted.set(slot, found);
  }
  return found;
}

/** A canvas at the picture's own size with values in colours; painted only if something has changed. */
export function paintedValues(
  slot: string, picture: Picture, values: Float32Array, range: Range, palette: "depth" | "confidence" | "error",
  unknownAt = NaN,
): HTMLCanvasElement {
  const target = surface(slot, picture.width, picture.height);
  const key = `${range[0]} ${range[1]} ${palette}`;
  if (target.values !== values || target.key !== key) {
    const context = target.canvas.getContext("2d")!;
    const pixels = context.createImageData(picture.width, picture.height);
    paint(values, range[0], range[1], palette, pixels.data, unknownAt);
    context.putImageData(pixels, 0, 0);
    target.values = values;
    target.key = key;
  }
  return target.canvas;
}

export function paintedImage(picture: Picture): HTMLCanvasElement {
  const target = surface("image", picture.width, picture.height);
  if (target.values !== picture.pixels) {
    const context = target.canvas.getContext("2d")!;
    const pixels = context.createImageData(picture.width, picture.height);
    for (let i = 0, o = 0; i < picture.pixels.length; i += 3, o += 4) {
      pixels.data[o] = picture.pixels[i];
      pixels.data[o + 1] = picture.pixels[i + 1];
      pixels.data[o + 2] = picture.pixels[i + 2];
      pixels.data[o + 3] = 255;
    }
    context.putImageData(pixels, 0, 0);
    target.values = picture.pixels;
  }
  return target.canvas;
}

/** The painted layer, or null for the image itself and for what is not there. */
export function paintedLayer(state: Readonly<State>, layer: LayerName): HTMLCanvasElement | null {
  const values = valuesOf(state, layer);
  if (!state.picture || !values) return null;
  const unknownAt = layer === "truth" ? 0 : NaN;
  return paintedValues(layer, state.picture, values, rangeOf(state, layer), paletteOf(layer), unknownAt);
}

/** What is known of a pixel, for the line under the picture. */
export function about(x: number, y: number): { depth: number; std: number; truth: number; confidence: number } {
  const { maps, std, confidence, picture } = store.state;
  const width = picture?.width ?? 1;
  const index = y * width + x;
  return {
    depth: at(maps?.depth, width, x, y),
    std: std?.[index] ?? NaN,
    truth: picture?.truth && picture.truth[index] > 0 ? picture.truth[index] : NaN,
    confidence: confidence?.[index] ?? NaN,
  };
}
