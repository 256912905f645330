// A dense map as a sensor would measure it; the twin of src/gbpn/sensors/patterns.py, with draws of its own.

import type { Camera } from "./frame";
import type { PatternName } from "../protocol";

export interface Taken { x: number[]; y: number[]; depth: number[] }
interface Scene { truth: Float32Array; pixels: Uint8Array; height: number; width: number; camera: Camera }

const LIDAR_REACH = 120;
const SENSITIVITY = 0.05;

/** About `count` measurements of a scene; the same for the same seed. */
export function take(scene: Scene, pattern: PatternName, count: number, seed: number): Taken {
  const places = { points: randomPoints, corners, lidar }[pattern as Exclude<PatternName, "tof">];
  if (places) return measured(scene, places(scene, count, drawer(seed)));
  return zones(scene, count);
}

function measured(scene: Scene, places: Iterable<number>): Taken {
  const out: Taken = { x: [], y: [], depth: [] };
  for (const place of [...new Set(places)].sort((a, b) => a - b)) {
    if (!(scene.truth[place] > 0)) continue;
    out.x.push(place % scene.width);
    out.y.push(Math.floor(place / scene.width));
    out.depth.push(scene.truth[place]);
  }
  return out;
}

/** Numbers in [0, 1) (mulberry32). */
function drawer(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let bits = Math.imul(state ^ (state >>> 15), state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };
}

function randomPoints({ truth }: Scene, count: number, draw: () => number): number[] {
  const known = [...truth.keys()].filter((i) => truth[i] > 0);
  for (let i = 0; i < Math.min(count, known.length); i++) {
    const other = i + Math.floor(draw() * (known.length - i));
    [known[i], known[other]] = [known[other], known[i]];
  }
  return known.slice(0, count);
}

/** Horizontal scan lines over the whole height, as many as leave three pixels between shots of a line. */
function lidar({ truth, height, width, camera: [fx, fy, cx, cy] }: Scene, count: number): number[] {
  const lines = Math.min(Math.max(Math.round(3 * count / width), 1), height);
  const shots = Math.max(1, Math.min(width, Math.round(count / lines)));
  const between = (low: number, high: number, number: number, i: number): number => low + (high - low) * (i + 1) / (number + 1);
  const out: number[] = [];
  for (let line = 0; line < lines; line++) {
    const elevation = between(Math.atan2(0.5 - cy, fy), Math.atan2(height - 1.5 - cy, fy), lines, line);
    for (let shot = 0; shot < shots; shot++) {
      const azimuth = between(Math.atan2(-cx, fx), Math.atan2(width - 1 - cx, fx), shots, shot);
      const column = Math.round(fx * Math.tan(azimuth) + cx);
      const row = Math.round(fy * Math.tan(elevation) / Math.cos(azimuth) + cy);
      const inside = row >= 0 && row < height && column >= 0 && column < width;
      if (inside && truth[row * width + column] <= LIDAR_REACH) out.push(row * width + column);
    }
  }
  return out;
}

/** Zones of a low-resolution sensor: the mean of each one's known depths, at its middle pixel. */
function zones({ truth, height, width }: Scene, count: number): Taken {
  const rows = Math.min(Math.max(1, Math.round(Math.sqrt(count * height / width))), height);
  const columns = Math.min(Math.max(1, Math.floor(count / rows)), width);
  const out: Taken = { x: [], y: [], depth: [] };
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      let [total, known] = [0, 0];
      for (let y = Math.floor(i * height / rows); y < Math.ceil((i + 1) * height / rows); y++) {
        for (let x = Math.floor(j * width / columns); x < Math.ceil((j + 1) * width / columns); x++) {
          const depth = truth[y * width + x];
          if (depth > 0) [total, known] = [total + depth, known + 1];
        }
      }
      if (!known) continue;
      out.x.push(Math.floor((j + 0.5) * width / columns));
      out.y.push(Math.floor((i + 0.5) * height / rows));
      out.depth.push(total / known);
    }
  }
  return out;
}

/** Strong, locally maximal Harris responses; which of them is random. */
function corners(scene: Scene, count: number, draw: () => number): number[] {
  const { truth, height, width } = scene;
  const response = harris(scene);
  const found: { place: number; strength: number }[] = [];
  response.forEach((value, place) => {
    if (!(value > 0) || !(truth[place] > 0)) return;
    const [row, column] = [Math.floor(place / width), place % width];
    for (let y = Math.max(row - 2, 0); y <= Math.min(row + 2, height - 1); y++) {
      for (let x = Math.max(column - 2, 0); x <= Math.min(column + 2, width - 1); x++) {
        if (response[y * width + x] > value) return;
      }
    }
    found.push({ place, strength: value * -Math.log(1 - draw()) });
  });
  return found.sort((a, b) => b.strength - a.strength).slice(0, count).map((one) => one.place);
}

function harris({ pixels, height, width }: Scene): Float32Array {
  const grey = Float32Array.from({ length: height * width }, (_, i) => (pixels[3 * i] + pixels[3 * i + 1] + pixels[3 * i + 2]) / 765);
  const at = (y: number, x: number): number => grey[Math.min(Math.max(y, 0), height - 1) * width + Math.min(Math.max(x, 0), width - 1)];
  const products = [0, 1, 2].map(() => new Float32Array(grey.length));
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const right = (at(y, x + 1) - at(y, x - 1)) / 2;
      const down = (at(y + 1, x) - at(y - 1, x)) / 2;
      [right * right, down * down, right * down].forEach((value, kind) => { products[kind][y * width + x] = value; });
    }
  }
  return grey.map((_, place) => {
    const [row, column] = [Math.floor(place / width), place % width];
    const [xx, yy, xy] = products.map((values) => {
      let total = 0;
      for (let y = Math.max(row - 2, 0); y <= Math.min(row + 2, height - 1); y++) {
        for (let x = Math.max(column - 2, 0); x <= Math.min(column + 2, width - 1); x++) total += values[y * width + x];
      }
      return total / 25;
    });
    return xx * yy - xy * xy - SENSITIVITY * (xx + yy) ** 2;
  });
}
