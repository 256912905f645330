// Depth that comes along with a photo: NumPy arrays, 16-bit PNG, and tables of points. Metres out, 0 where not measured.

import { through } from "./downloads";

export interface DepthPoints { x: number[]; y: number[]; depth: number[] }

/** Measurements of a picture of this size. */
export async function readDepth(
  content: Uint8Array<ArrayBuffer>, suffix: string, scale: number, height: number, width: number,
): Promise<DepthPoints> {
  if (suffix === ".csv" || suffix === ".txt") return readTable(new TextDecoder().decode(content), height, width);
  if (suffix === ".npy") return pointsOf(readNumpy(content), scale || 1, height, width);
  if (suffix === ".png") {
    if (!scale) throw new Error("say what this PNG’s numbers are: under “Camera and units”, metres × 1000 or × 256");
    return pointsOf(await readPng(content), scale, height, width);
  }
  throw new Error(`depth is read from .npy, .png, .csv and .txt here; got ${suffix}: gbpn studio on your computer reads more`);
}

interface Map2 { values: ArrayLike<number>; height: number; width: number }

function pointsOf(map: Map2, scale: number, height: number, width: number): DepthPoints {
  if (map.height !== height || map.width !== width) {
    throw new Error(`the depth file has ${map.width}×${map.height} pixels, the picture ${width}×${height}: `
      + "gbpn studio on your computer brings them together");
  }
  const out: DepthPoints = { x: [], y: [], depth: [] };
  for (let i = 0; i < map.values.length; i++) {
    const depth = map.values[i] / scale;
    if (!(depth > 0) || !Number.isFinite(depth)) continue;
    out.x.push(i % width);
    out.y.push(Math.floor(i / width));
    out.depth.push(depth);
  }
  return out;
}

function readTable(text: string, height: number, width: number): DepthPoints {
  const out: DepthPoints = { x: [], y: [], depth: [] };
  text.split(/\r?\n/).forEach((line, number) => {
    const words = line.split("#")[0].split(/[\s,;]+/).filter((word) => word !== "");
    if (!words.length) return;
    const [x, y, depth] = words.map(Number);
    if (words.length < 3 || ![x, y, depth].every(Number.isFinite)) {
      if (number === 0) return; // names of columns
      throw new Error(`line ${number + 1} of the depth file: wanted x, y, depth; got “${line.slice(0, 60)}”`);
    }
    if (x < -0.5 || y < -0.5 || x >= width - 0.5 || y >= height - 0.5 || depth <= 0) return;
    out.x.push(Math.round(x));
    out.y.push(Math.round(y));
    out.depth.push(depth);
  });
  return out;
}

const READERS: Record<string, (buffer: ArrayBuffer) => ArrayLike<number>> = {
  f4: (buffer) => new Float32Array(buffer), f8: (buffer) => new Float64Array(buffer), u2: (buffer) => new Uint16Array(buffer),
  i2: (buffer) => new Int16Array(buffer), i4: (buffer) => new Int32Array(buffer), u1: (buffer) => new Uint8Array(buffer),
};

function readNumpy(content: Uint8Array<ArrayBuffer>): Map2 {
  const wrong = (): never => { throw new Error("the depth file must be a .npy array [H, W] of plain numbers"); };
  if (new TextDecoder("latin1").decode(content.subarray(1, 6)) !== "NUMPY") wrong();
  const view = new DataView(content.buffer, content.byteOffset);
  const long = content[6] >= 2;
  const start = long ? 12 : 10;
  const length = long ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(content.subarray(start, start + length));
  const kind = /'descr': *'[<|=]([fui]\d)'/.exec(header)?.[1] ?? "";
  const shape = (/'shape': *\(([^)]*)\)/.exec(header)?.[1] ?? "").split(",").map((n) => n.trim()).filter(Boolean).map(Number);
  const sizes = shape.length === 3 && shape[0] === 1 ? shape.slice(1) : shape;
  const read = READERS[kind];
  if (!read || sizes.length !== 2 || header.includes("'fortran_order': True")) return wrong();
  const values = read(content.slice(start + length).buffer);
  if (values.length < sizes[0] * sizes[1]) return wrong();
  return { values, height: sizes[0], width: sizes[1] };
}

const FILTERS: ((left: number, up: number, corner: number) => number)[] = [
  () => 0, (left) => left, (_, up) => up, (left, up) => (left + up) >> 1,
  (left, up, corner) => {
    const estimate = left + up - corner;
    const [a, b, c] = [Math.abs(estimate - left), Math.abs(estimate - up), Math.abs(estimate - corner)];
    return a <= b && a <= c ? left : b <= c ? up : corner;
  },
];

/** A grey PNG of 8 or 16 bits; browsers would give 8 bits of it only. */
async function readPng(content: Uint8Array<ArrayBuffer>): Promise<Map2> {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const [width, height, bits, colour, interlaced] = [view.getUint32(16), view.getUint32(20), content[24], content[25], content[28]];
  if (view.getUint32(0) !== 0x89504e47 || colour !== 0 || interlaced || (bits !== 8 && bits !== 16) || width * height > 60e6) {
    throw new Error("a depth PNG must be grey, of 8 or 16 bits, and not interlaced");
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  for (let at = 8; at + 8 < content.length; at += 12 + view.getUint32(at)) {
    if (view.getUint32(at + 4) === 0x49444154) parts.push(content.slice(at + 8, at + 8 + view.getUint32(at)));
  }
  const packed = new Uint8Array(await new Blob(parts).arrayBuffer());
  const raw = await through(new DecompressionStream("deflate"), packed);
  const [step, stride] = [bits / 8, width * bits / 8];
  const values = new Uint16Array(width * height);
  let before = new Uint8Array(stride);
  for (let y = 0; y < height; y++) {
    const guess = FILTERS[raw[y * (stride + 1)]];
    const line = raw.slice(y * (stride + 1) + 1, (y + 1) * (stride + 1));
    for (let i = 0; i < stride; i++) line[i] += guess(i < step ? 0 : line[i - step], before[i], i < step ? 0 : before[i - step]);
    for (let x = 0; x < width; x++) values[y * width + x] = bits === 8 ? line[x] : 256 * line[2 * x] + line[2 * x + 1];
    before = line;
  }
  return { values, height, width };
}

/** fx, fy, cx, cy of a text of four numbers, or of a 3×3 matrix. */
export function readCamera(content: Uint8Array, suffix: string): [number, number, number, number] {
  const numbers = new TextDecoder().decode(content).split(/[\s,;]+/).filter(Boolean).map(Number);
  if (suffix !== ".txt" || !(numbers.length === 4 || numbers.length === 9) || !numbers.every(Number.isFinite)) {
    throw new Error("a camera is read from a .txt of four numbers, fx, fy, cx, cy, or of a 3×3 matrix here: "
      + "gbpn studio on your computer reads more");
  }
  return numbers.length === 4 ? numbers as [number, number, number, number] : [numbers[0], numbers[4], numbers[2], numbers[5]];
}
