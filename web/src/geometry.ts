// Depth maps in space: x right, y up, the camera looks along −z, as in the exported files.

import type { Picture } from "./store";

export const STEEP = 0.06;

/** [3·N] places of all pixels; NaN where depth is not known. */
export function placesOf(depth: Float32Array, picture: Picture): Float32Array {
  const [fx, fy, cx, cy] = picture.camera;
  const out = new Float32Array(3 * depth.length);
  for (let y = 0, i = 0; y < picture.height; y++) {
    for (let x = 0; x < picture.width; x++, i++) {
      const z = depth[i];
      out[3 * i] = ((x - cx) / fx) * z;
      out[3 * i + 1] = (-(y - cy) / fy) * z;
      out[3 * i + 2] = -z;
    }
  }
  return out;
}

/** Which pixels are shown: known, and not more doubtful than the cut. */
export function kept(depth: Float32Array, std: Float32Array | null, most: number): Uint8Array {
  const out = new Uint8Array(depth.length);
  for (let i = 0; i < depth.length; i++) {
    out[i] = Number.isFinite(depth[i]) && depth[i] > 0 && (!std || !(std[i] > most)) ? 1 : 0;
  }
  return out;
}

/** Pixel numbers of the points. */
export function pointIndex(keep: Uint8Array): Uint32Array {
  const out = new Uint32Array(keep.reduce((sum, one) => sum + one, 0));
  let n = 0;
  keep.forEach((one, i) => {
    if (one) out[n++] = i;
  });
  return out;
}

/** Corner numbers of the mesh: two triangles per square, without those that span a step in depth. */
export function meshIndex(depth: Float32Array, keep: Uint8Array, width: number, height: number): Uint32Array {
  const out: number[] = [];
  const flat = (a: number, b: number, c: number): boolean => {
    if (!(keep[a] && keep[b] && keep[c])) return false;
    const low = Math.min(depth[a], depth[b], depth[c]);
    return Math.max(depth[a], depth[b], depth[c]) - low < STEEP * low;
  };
  for (let y = 0; y + 1 < height; y++) {
    for (let x = 0; x + 1 < width; x++) {
      const a = y * width + x;
      const [b, c, d] = [a + 1, a + width, a + width + 1];
      if (flat(a, c, b)) out.push(a, c, b);
      if (flat(b, c, d)) out.push(b, c, d);
    }
  }
  return Uint32Array.from(out);
}
