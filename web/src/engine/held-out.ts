// Which measurements the check of the sigmas holds out, and what their errors say; the twin of
// src/gbpn/sigma/held_out.py, which says why.

import { countMeasured, quantile, roundEven } from "./tensor";

const LEVEL = 0.9;
const LEVEL_QUANTILE = 1.6449;
const SHARE = Math.fround(0.2);
const FEWEST = 25;
const FEW = { amount: 0.5, power: 0.75 };
const PATCHES_FROM = 2000;
const PATCH = 3;
const LINE_PATCH = [1, 20] as const;
const ON_LINES = { least: 0.5, times: 3 };
const CALIBRATION_WEIGHT = 20;
const LARGEST_FACTOR = 10;
const NOISE_PASSED_ON = 0.5;
const FACTORS_TRIED = 16;
const NOISES = { low: 0.002, high: 0.2, count: 15 };
const FREEDOM = 3;
const GAUSSIAN_SCALE = 1.25;
const DOUBT = 2;
const MOST_COMPARED = 400;

/** [H, W] of 0 and 1: where measurements are held out, always the same. */
export function drawnPatches(depth: Float32Array, height: number, width: number): Uint8Array {
  const count = countMeasured(depth);
  if (count < FEWEST) return new Uint8Array(depth.length);
  const size = patchSize(depth, height, width, count);
  const patches = drawn(height, width, size);
  let held = 0;
  for (let i = 0; i < depth.length; i++) if (depth[i] > 0 && patches[i]) held += 1;
  return held > 0 && 2 * held <= count ? patches : drawn(height, width, [1, 1]);
}

function drawn(height: number, width: number, [rows, columns]: readonly [number, number]): Uint8Array {
  const across = Math.ceil(width / columns);
  const twister = new Twister();
  const draw = Array.from({ length: Math.ceil(height / rows) * across }, () => twister.next() < SHARE);
  const out = new Uint8Array(height * width);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) out[y * width + x] = Number(draw[Math.floor(y / rows) * across + Math.floor(x / columns)]);
  }
  return out;
}

function patchSize(depth: Float32Array, height: number, width: number, count: number): [number, number] {
  const distance = Math.sqrt(height * width / count);
  const reach = Math.max(1, roundEven(distance / 2));
  const alongRows = withNeighbour(depth, height, width, reach, false, count);
  const alongColumns = withNeighbour(depth, height, width, reach, true, count);
  const [across, along] = LINE_PATCH.map((size) => Math.max(1, roundEven(size * distance)));
  if (alongRows >= Math.max(ON_LINES.least, ON_LINES.times * alongColumns)) return [across, along];
  if (alongColumns >= Math.max(ON_LINES.least, ON_LINES.times * alongRows)) return [along, across];
  const side = count >= PATCHES_FROM ? roundEven(PATCH * distance) : 1;
  return [side, side];
}

/** Share of the measurements with another one in the next `reach` columns, a row off at most; `turned`: the reverse. */
function withNeighbour(
  depth: Float32Array, height: number, width: number, reach: number, turned: boolean, count: number,
): number {
  const [rows, columns] = turned ? [width, height] : [height, width];
  const there = (row: number, column: number): boolean =>
    row >= 0 && row < rows && depth[turned ? column * width + row : row * width + column] > 0;
  let found = 0;
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; column++) {
      if (!there(row, column)) continue;
      const end = Math.min(column + reach, columns - 1);
      for (let next = column + 1; next <= end; next++) {
        if (!there(row - 1, next) && !there(row, next) && !there(row + 1, next)) continue;
        found += 1;
        break;
      }
    }
  }
  return found / count;
}

/** The factor on sigma where none of `count` measurements could be held out. */
export function factorOfFew(count: number): number {
  return count < FEWEST ? 1 + FEW.amount / Math.max(count, 1) ** FEW.power : 1;
}

/** The factor on sigma, and the relative sigma to add, that make `error` likely; both are relative to depth, as `sigma`. */
export function explain(error: readonly number[], sigma: readonly number[]): [number, number] {
  if (!error.length) return [1, 0];
  const trust = error.length / (error.length + CALIBRATION_WEIGHT);
  let factor = neededFactor(error, sigma, 0);
  let noise = 0;
  if (factor > 1) {
    noise = likeliestNoise(error, sigma);
    factor = Math.max(neededFactor(error, sigma, noise), 1);
  }
  return [Math.min(Math.max(factor, 1 / LARGEST_FACTOR), LARGEST_FACTOR) ** trust, NOISE_PASSED_ON * noise * trust];
}

function neededFactor(error: readonly number[], sigma: readonly number[], noise: number): number {
  return quantile(error.map((e, i) => Math.sqrt(Math.max((e / LEVEL_QUANTILE) ** 2 - noise ** 2, 0)) / sigma[i]), LEVEL);
}

function spaced(low: number, high: number, count: number): number[] {
  return Array.from({ length: count }, (_, i) => Math.exp(Math.log(low) + (Math.log(high) - Math.log(low)) * i / (count - 1)));
}

function likeliestNoise(allErrors: readonly number[], allSigmas: readonly number[]): number {
  const step = Math.max(1, Math.floor(allErrors.length / MOST_COMPARED));
  const every = (values: readonly number[]): number[] => values.filter((_, i) => i % step === 0);
  const [error, sigma] = [every(allErrors), every(allSigmas)];
  let best = { noise: 0, likelihood: -Infinity };
  for (const noise of [0, ...spaced(NOISES.low, NOISES.high, NOISES.count)]) {
    for (const factor of spaced(1, LARGEST_FACTOR, FACTORS_TRIED)) {
      let likelihood = noise > 0 ? -DOUBT : 0;
      error.forEach((e, i) => {
        const scale = Math.hypot(factor * sigma[i], noise);
        likelihood -= Math.log(scale) + (FREEDOM + 1) / 2 * Math.log1p((e / scale) ** 2 / FREEDOM);
      });
      if (likelihood > best.likelihood) best = { noise, likelihood };
    }
  }
  return GAUSSIAN_SCALE * best.noise;
}

/** A Mersenne twister of seed 0, whose lower 24 bits are numbers in [0, 1). */
class Twister {
  private readonly state = new Uint32Array(624);
  private place = 624;

  constructor() {
    for (let i = 1; i < 624; i++) {
      const before = this.state[i - 1];
      this.state[i] = Math.imul(1812433253, before ^ (before >>> 30)) + i;
    }
  }

  next(): number {
    if (this.place === 624) this.turn();
    let bits = this.state[this.place++];
    bits ^= bits >>> 11;
    bits ^= (bits << 7) & 0x9d2c5680;
    bits ^= (bits << 15) & 0xefc60000;
    bits ^= bits >>> 18;
    return (bits & 0xffffff) * 2 ** -24;
  }

  private turn(): void {
    const state = this.state;
    for (let i = 0; i < 624; i++) {
      const bits = (state[i] & 0x80000000) | (state[(i + 1) % 624] & 0x7fffffff);
      state[i] = state[(i + 397) % 624] ^ (bits >>> 1) ^ (bits & 1 ? 0x9908b0df : 0);
    }
    this.place = 0;
  }
}
