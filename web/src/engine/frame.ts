// A picture padded to the networks' grid; the twin of src/gbpn/runtime/frame.py.

import type { Manifest } from "./manifest";
import type { Tensor } from "./tensor";

export const SMALLEST_SIDE = 32;
/** Across the longer side, where nothing is known of the camera. */
const FIELD_OF_VIEW = Math.PI / 3;
/** Millimetres, of a picture on film. */
const FULL_FRAME_WIDTH = 36;

/** fx, fy, cx, cy in pixels. */
export type Camera = readonly [number, number, number, number];

/** Of a picture of which nothing is known but perhaps its focal length as on film, millimetres. */
export function guessedCamera(height: number, width: number, millimetres = 0): Camera {
  const longer = Math.max(height, width);
  const focal = millimetres > 0 ? millimetres / FULL_FRAME_WIDTH * longer : longer / (2 * Math.tan(FIELD_OF_VIEW / 2));
  return [focal, focal, (width - 1) / 2, (height - 1) / 2];
}

export interface Frame {
  /** [1, 3, H', W'], normalised. */
  image: Tensor;
  /** [1, 3, 3], of the padded picture. */
  intrinsics: Tensor;
  height: number; width: number;
  top: number; left: number;
  /** H', W'. */
  padded: readonly [number, number];
}

/** `pixels` [H, W, 3] bytes. */
export function frameOf(pixels: Uint8Array, height: number, width: number, camera: Camera, manifest: Manifest): Frame {
  if (height < SMALLEST_SIDE || width < SMALLEST_SIDE) {
    throw new Error(`a picture must have ${SMALLEST_SIDE}×${SMALLEST_SIDE} pixels or more; got ${width}×${height}`);
  }
  const { size, multiple, smallest, config } = manifest;
  if (size && (size[0] !== height || size[1] !== width)) {
    throw new Error(`these networks take pictures of ${size[1]}×${size[0]} only; got ${width}×${height}`);
  }
  if (!size && (height <= smallest - multiple || width <= smallest - multiple)) {
    throw new Error(`these networks take pictures above ${smallest - multiple} pixels a side; got ${width}×${height}`);
  }
  const rows = Math.ceil(height / multiple) * multiple;
  const columns = Math.ceil(width / multiple) * multiple;
  const top = (rows - height) >> 1;
  const left = (columns - width) >> 1;
  const data = new Float32Array(3 * rows * columns);
  const table = config.image_mean.map((mean, c) =>
    Float32Array.from({ length: 256 }, (_, i) => (Math.fround(i / 255) - mean) / config.image_std[c]));
  for (let y = 0; y < rows; y++) {
    const from = Math.min(Math.max(y - top, 0), height - 1) * width;
    for (let x = 0; x < columns; x++) {
      const source = 3 * (from + Math.min(Math.max(x - left, 0), width - 1));
      for (let c = 0; c < 3; c++) data[(c * rows + y) * columns + x] = table[c][pixels[source + c]];
    }
  }
  const [fx, fy, cx, cy] = camera;
  return {
    image: { data, dims: [1, 3, rows, columns] },
    intrinsics: { data: Float32Array.of(fx, 0, cx + left, 0, fy, cy + top, 0, 0, 1), dims: [1, 3, 3] },
    height, width, top, left, padded: [rows, columns],
  };
}

/** [H, W] → [H', W'], nothing in the padding. */
export function pad(frame: Frame, maps: Float32Array): Float32Array {
  const out = new Float32Array(frame.padded[0] * frame.padded[1]);
  for (let y = 0; y < frame.height; y++) {
    out.set(maps.subarray(y * frame.width, (y + 1) * frame.width), (y + frame.top) * frame.padded[1] + frame.left);
  }
  return out;
}

/** The part of [H', W'] that belongs to the picture. */
export function crop(frame: Frame, maps: Float32Array): Float32Array<ArrayBuffer> {
  const out = new Float32Array(frame.height * frame.width);
  for (let y = 0; y < frame.height; y++) {
    const start = (y + frame.top) * frame.padded[1] + frame.left;
    out.set(maps.subarray(start, start + frame.width), y * frame.width);
  }
  return out;
}
