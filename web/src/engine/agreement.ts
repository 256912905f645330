// How far neighbouring measurements agree, and so how far they are trusted; the twin of
// src/gbpn/measurements/agreement.py, which says why.

const CLOSE = 1.01;
const USUAL = 1;
const PAIRS = 20;
const NOISY = 0.35;
const CLEAN = 0.65;
const FAR = 3;
const STREET = 0.97;
const ROOM = 0.985;
const EDGES: readonly [number, number][] = [[0, 1], [1, 0], [1, 1], [1, -1]];

function between(value: number, low: number, high: number): number {
  return Math.min(Math.max((value - low) / (high - low), 0), 1);
}

/** In [0, 1]: the share of measured neighbours in [H, W] that agree. */
export function agreement(depth: Float32Array, height: number, width: number): number {
  let close = USUAL * PAIRS;
  let pairs = PAIRS;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const one = depth[y * width + x];
      if (!(one > 0)) continue;
      for (const [down, right] of EDGES) {
        if (y + down >= height || x + right < 0 || x + right >= width) continue;
        const other = depth[(y + down) * width + x + right];
        if (!(other > 0)) continue;
        pairs += 1;
        if (Math.max(one, other) < CLOSE * Math.min(one, other)) close += 1;
      }
    }
  }
  return close / pairs;
}

/** Factor of a measurement's precision, from 1 to `most`. */
export function trust(depth: Float32Array, height: number, width: number, most: number): number {
  let count = 0;
  let total = 0;
  for (const value of depth) {
    if (!(value > 0)) continue;
    count += 1;
    total += value;
  }
  const limit = FAR * total / Math.max(count, 1);
  let near = 0;
  for (const value of depth) if (value > 0 && value < limit) near += 1;
  const sure = between(agreement(depth, height, width), NOISY, CLEAN) * between(near / Math.max(count, 1), STREET, ROOM);
  return most ** sure;
}
