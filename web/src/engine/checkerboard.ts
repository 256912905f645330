// Patterns of two and four pixels' period taken out of the confidence, and so out of sigma; the twin of
// src/gbpn/sigma/checkerboard.py, which says why.

import { median } from "./tensor";

const TILE = 16;

/** Confidence logits [H, W] without what alternates from pixel to pixel, where `observed` holds. */
export function withoutCheckerboard(
  logit: Float32Array<ArrayBuffer>, observed: (index: number) => boolean, height: number, width: number,
): Float32Array<ArrayBuffer> {
  const known = (i: number): boolean => observed(i) && Number.isFinite(logit[i]);
  const values = logit.filter((_, i) => known(i));
  if (Math.min(height, width) < 2 * TILE || !values.length) return logit;
  const usual = median(values);
  let even = logit.map((value, i) => (known(i) ? value : usual));
  for (const block of [2, 1]) even = without(even, height, width, block); // means over 2×2 know nothing of the smaller
  return logit.map((value, i) => (known(i) ? even[i] : value));
}

/** `maps` less what alternates from block to block, alike in all pixels of one. */
function without(maps: Float32Array<ArrayBuffer>, height: number, width: number, block: number): Float32Array<ArrayBuffer> {
  const rows = Math.ceil(height / block);
  const columns = Math.ceil(width / block);
  const means = new Float32Array(rows * columns);
  for (let y = 0; y < rows * block; y++) {
    const from = mirrored(y, height) * width;
    for (let x = 0; x < columns * block; x++) {
      means[Math.floor(y / block) * columns + Math.floor(x / block)] += maps[from + mirrored(x, width)] / block ** 2;
    }
  }
  const found = amplitudes(means, rows, columns);
  const down = between(rows);
  const across = between(columns);
  const wide = Math.ceil(columns / TILE);
  const out = new Float32Array(maps.length);
  for (let y = 0; y < height; y++) {
    const row = Math.floor(y / block);
    for (let x = 0; x < width; x++) {
      const column = Math.floor(x / block);
      let pattern = 0;
      for (const [i, share] of down[row]) {
        for (const [j, other] of across[column]) {
          for (let kind = 0; kind < 3; kind++) pattern += share * other * found[kind][i * wide + j] * sign(kind, row, column);
        }
      }
      out[y * width + x] = maps[y * width + x] - pattern;
    }
  }
  return out;
}

/** ±1: chequered, columns, rows. */
function sign(kind: number, row: number, column: number): number {
  const place = kind === 0 ? row + column : kind === 1 ? column : row;
  return place % 2 ? -1 : 1;
}

/** Of a chequered pattern, of columns and of rows: the median in each square of [H, W]. */
function amplitudes(maps: Float32Array, height: number, width: number): Float32Array[] {
  const at = (y: number, x: number): number =>
    maps[Math.min(Math.max(y, 0), height - 1) * width + Math.min(Math.max(x, 0), width - 1)];
  const responses = [0, 1, 2].map(() => new Float32Array(maps.length));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const half = [-1, 0, 1].map((step) => {
        const around = (at(y + step, x - 1) + at(y + step, x + 1)) / 2;
        return [(at(y + step, x) - around) / 2, (at(y + step, x) + around) / 2]; // alternating along rows, or not
      });
      const beside = (which: number): number => (half[0][which] + half[2][which]) / 2;
      const found = [(half[1][0] - beside(0)) / 2, (half[1][0] + beside(0)) / 2, (half[1][1] - beside(1)) / 2];
      for (let kind = 0; kind < 3; kind++) responses[kind][y * width + x] = found[kind] * sign(kind, y, x);
    }
  }
  return responses.map((values) => medians(values, height, width));
}

function medians(values: Float32Array, height: number, width: number): Float32Array {
  const down = Math.ceil(height / TILE);
  const across = Math.ceil(width / TILE);
  const out = new Float32Array(down * across);
  const square = new Float32Array(TILE * TILE);
  for (let i = 0; i < down; i++) {
    for (let j = 0; j < across; j++) {
      for (let k = 0; k < square.length; k++) {
        const y = mirrored(i * TILE + Math.floor(k / TILE), height);
        square[k] = values[y * width + mirrored(j * TILE + (k % TILE), width)];
      }
      out[i * across + j] = median(square);
    }
  }
  return out;
}

/** Places beyond the border, seen in the mirror that repeats the edge. */
function mirrored(place: number, length: number): number {
  const within = place % (2 * length);
  return within < length ? within : 2 * length - 1 - within;
}

/** For each pixel, the squares whose centres are near and their linear weights. */
function between(pixels: number): [number, number][][] {
  const count = Math.ceil(pixels / TILE);
  return Array.from({ length: pixels }, (_, pixel) => {
    const place = Math.min(Math.max((pixel + 0.5) / TILE - 0.5, 0), count - 1);
    const low = Math.floor(place);
    const share = place - low;
    const near: [number, number][] = [[low, 1 - share]];
    if (share > 0) near.push([low + 1, share]);
    return near;
  });
}
