// Files to take away, made in the browser.

import { through } from "./downloads";
import { kept, meshIndex } from "../geometry";
import type { Camera } from "./frame";
import type { Completed, Measurement } from "./session";

type Bytes = Uint8Array<ArrayBuffer>;
export interface Scene {
  name: string; scene: string; pixels: Uint8Array; height: number; width: number; camera: Camera;
}
export interface Made { name: string; type: string; content: Bytes }

/** Of clouds: pixels whose sigma is a larger share of the depth are left out, as from the command line. */
const TRUSTED = 0.05;
const PNG = "image/png";
const BINARY = "application/octet-stream";

type Writer = (scene: Scene, points: readonly Measurement[], answer: Completed, weights: string) => Bytes | Promise<Bytes>;
const WRITERS: Record<string, readonly [string, Writer]> = {
  "depth.png": [PNG, (scene, _, answer) => depthPng(scene, answer.depth)],
  "depth.npy": [BINARY, (scene, _, answer) => numpy(scene, answer.depth)],
  "std.npy": [BINARY, (scene, _, answer) => numpy(scene, answer.std!)],
  "confidence.npy": [BINARY, (scene, _, answer) => numpy(scene, answer.confidence)],
  "mask.png": [PNG, (scene, _, answer) => png(Uint8Array.from(answer.depth, (d) => (d > 0 ? 255 : 0)), scene, 1, 8)],
  "cloud.ply": [BINARY, (scene, _, answer) => ply(scene, answer)],
  "cloud.glb": ["model/gltf-binary", (scene, _, answer) => glb(scene, answer, false)],
  "mesh.glb": ["model/gltf-binary", (scene, _, answer) => glb(scene, answer, true)],
  "image.png": [PNG, (scene) => png(scene.pixels, scene, 3, 8)],
  "points.csv": ["text/csv", (_, points) => text(table(points))],
  "repeat.py": ["text/x-python", (scene, points, _, weights) => text(snippet(scene, points, weights))],
};
export const FILES = Object.keys(WRITERS);
/** Those that need no answer. */
export const WITHOUT_ANSWER = ["image.png", "points.csv"];

export async function made(
  what: string, scene: Scene, points: readonly Measurement[], answer: Completed, weights: string,
): Promise<Made> {
  const writer = WRITERS[what];
  if (!writer) throw new Error(`there is no export ${what} here: choose from ${FILES.join(", ")}`);
  return { name: `${plain(scene.name)}_${what}`, type: writer[0], content: await writer[1](scene, points, answer, weights) };
}

function text(content: string): Bytes {
  return new TextEncoder().encode(content);
}

/** Letters and digits only. */
export function plain(name: string): string {
  const stem = name.slice(1).includes(".") ? name.slice(0, name.lastIndexOf(".")) : name;
  return stem.replace(/[^A-Za-z0-9]/g, "_").replace(/^_+|_+$/g, "").slice(0, 40) || "picture";
}

function table(points: readonly Measurement[]): string {
  return `${["x,y,depth,std", ...points.map((p) => `${p.x},${p.y},${p.depth},${p.std}`)].join("\n")}\n`;
}

/** Python that completes the same measurements; its numbers agree to a millimetre from ten points on. */
function snippet(scene: Scene, points: readonly Measurement[], weights: string): string {
  const name = plain(scene.name);
  const lines = ["import gbpn", "import numpy as np", ...(scene.scene ? ["from gbpn import scenes"] : []), "",
    `completer = gbpn.DepthCompleter.from_pretrained(${JSON.stringify(weights)})`];
  if (scene.scene) lines.push(`scene = scenes.load(${JSON.stringify(scene.scene)})`);
  const picture = scene.scene ? "scene.image, scene.intrinsics" : `"${name}_image.png", [${scene.camera.join(", ")}]`;
  lines.push(`session = completer.session(${picture})`);
  if (points.length > 200) {
    lines.push(`x, y, depth, std = np.loadtxt("${name}_points.csv", delimiter=",", skiprows=1).T`);
  } else {
    for (const part of ["x", "y", "depth", "std"] as const) lines.push(`${part} = np.array([${points.map((p) => p[part]).join(", ")}])`);
  }
  lines.push("session.add(x, y, depth, std)", "", "result = session.result",
    "result.depth, result.std  # [H, W] metres", `result.preview("${name}_preview.png")`);
  return `${lines.join("\n")}\n`;
}

function numpy({ height, width }: Scene, values: Float32Array): Bytes {
  const words = `{'descr': '<f4', 'fortran_order': False, 'shape': (${height}, ${width}), }`;
  const header = words + " ".repeat((64 - (11 + words.length) % 64) % 64) + "\n";
  const out = new Uint8Array(10 + header.length + 4 * values.length);
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  out.set(text(header), 10);
  out.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), 10 + header.length);
  return out;
}

/** 16 bits: metres × 1000, × 256 beyond 65 m, then less. */
function depthPng(scene: Scene, depth: Float32Array): Promise<Bytes> {
  const highest = depth.reduce((most, d) => (d > most ? d : most), 0);
  const scale = [1000, 256, 16, 1].find((s) => highest * s < 65535) ?? 65000 / highest;
  const bytes = new Uint8Array(2 * depth.length);
  depth.forEach((d, i) => {
    const value = d > 0 ? Math.round(d * scale) : 0;
    bytes[2 * i] = value >> 8;
    bytes[2 * i + 1] = value & 255;
  });
  return png(bytes, scene, 1, 16);
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

/** The checksum that PNG and ZIP use. */
export function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) value = CRC[(value ^ byte) & 255] ^ (value >>> 8);
  return (value ^ 0xffffffff) >>> 0;
}

async function png(values: Uint8Array, { height, width }: { height: number; width: number }, planes: 1 | 3, bits: 8 | 16): Promise<Bytes> {
  const stride = width * planes * bits / 8;
  const raw = new Uint8Array(height * (stride + 1));
  for (let y = 0; y < height; y++) raw.set(values.subarray(y * stride, (y + 1) * stride), y * (stride + 1) + 1);
  const head = new Uint8Array(13);
  new DataView(head.buffer).setUint32(0, width);
  new DataView(head.buffer).setUint32(4, height);
  head.set([bits, planes === 3 ? 2 : 0], 8);
  const packed = await through(new CompressionStream("deflate"), raw);
  const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
  return joined([signature, chunk("IHDR", head), chunk("IDAT", packed), chunk("IEND", new Uint8Array())]);
}

function chunk(name: string, content: Uint8Array): Bytes {
  const out = new Uint8Array(12 + content.length);
  const view = new DataView(out.buffer);
  view.setUint32(0, content.length);
  out.set(text(name), 4);
  out.set(content, 8);
  view.setUint32(8 + content.length, crc32(out.subarray(4, 8 + content.length)));
  return out;
}

export function joined(parts: readonly Uint8Array[]): Bytes {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let start = 0;
  for (const part of parts) {
    out.set(part, start);
    start += part.length;
  }
  return out;
}

/** Metres: x right, y down, z ahead. */
function place(scene: Scene, depth: Float32Array, i: number): [number, number, number] {
  const [fx, fy, cx, cy] = scene.camera;
  return [(i % scene.width - cx) / fx * depth[i], (Math.floor(i / scene.width) - cy) / fy * depth[i], depth[i]];
}

/** Points whose sigma is small for their depth, with colours, and sigma where there is one. */
function ply(scene: Scene, { depth, std }: Completed): Bytes {
  const sure = [...depth.keys()].filter((i) => depth[i] > 0 && (!std || std[i] <= TRUSTED * depth[i]));
  const columns = ["float x", "float y", "float z", "uchar red", "uchar green", "uchar blue", ...(std ? ["float std"] : [])];
  const header = text(`ply\nformat binary_little_endian 1.0\nelement vertex ${sure.length}\n`
    + `${columns.map((column) => `property ${column}\n`).join("")}end_header\n`);
  const size = std ? 19 : 15;
  const body = new Uint8Array(size * sure.length);
  const view = new DataView(body.buffer);
  sure.forEach((i, row) => {
    place(scene, depth, i).forEach((value, axis) => view.setFloat32(size * row + 4 * axis, value, true));
    body.set(scene.pixels.subarray(3 * i, 3 * i + 3), size * row + 12);
    if (std) view.setFloat32(size * row + 15, std[i], true);
  });
  return joined([header, body]);
}

/** Binary glTF: coloured points, or the mesh without the walls that edges would make. */
function glb(scene: Scene, { depth }: Completed, mesh: boolean): Bytes {
  const corners = mesh ? meshIndex(depth, kept(depth, null, Infinity), scene.width, scene.height) : new Uint32Array();
  const used = mesh ? [...new Set(corners)].sort((a, b) => a - b) : [...depth.keys()].filter((i) => depth[i] > 0);
  if (!used.length) throw new Error("there is nothing to take away yet: no pixel has a depth");
  const places = new Float32Array(3 * used.length);
  const colours = new Uint8Array(4 * used.length);
  const number = new Map(used.map((i, n) => [i, n]));
  used.forEach((i, n) => {
    const [x, y, z] = place(scene, depth, i);
    places.set([x, -y, -z], 3 * n);
    for (let c = 0; c < 3; c++) colours[4 * n + c] = linear(scene.pixels[3 * i + c]);
    colours[4 * n + 3] = 255;
  });
  const blocks: Uint8Array[] = [new Uint8Array(places.buffer), colours];
  if (mesh) blocks.push(new Uint8Array(corners.map((i) => number.get(i)!).buffer));
  let start = 0;
  const views = blocks.map((block, n) => {
    const view = { buffer: 0, byteOffset: start, byteLength: block.length, target: n === 2 ? 34963 : 34962 };
    start += block.length;
    return view;
  });
  const axis = (n: number, pick: (a: number, b: number) => number): number => {
    let found = places[n];
    for (let i = n; i < places.length; i += 3) found = pick(found, places[i]);
    return found;
  };
  const accessors: object[] = [
    { bufferView: 0, componentType: 5126, count: used.length, type: "VEC3",
      min: [0, 1, 2].map((n) => axis(n, Math.min)), max: [0, 1, 2].map((n) => axis(n, Math.max)) },
    { bufferView: 1, componentType: 5121, count: used.length, type: "VEC4", normalized: true },
    ...(mesh ? [{ bufferView: 2, componentType: 5125, count: corners.length, type: "SCALAR" }] : []),
  ];
  const primitive = { attributes: { POSITION: 0, COLOR_0: 1 }, mode: mesh ? 4 : 0, ...(mesh ? { indices: 2 } : {}) };
  return framed({
    asset: { version: "2.0", generator: "gbpn" }, scene: 0, scenes: [{ nodes: [0] }], nodes: [{ mesh: 0 }],
    meshes: [{ primitives: [primitive] }], buffers: [{ byteLength: start }], bufferViews: views, accessors,
  }, joined(blocks));
}

/** sRGB to the linear values that glTF wants of vertex colours. */
function linear(value: number): number {
  const share = value / 255;
  return Math.floor((share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4) * 255 + 0.5);
}

function framed(document: object, binary: Bytes): Bytes {
  const words = text(JSON.stringify(document));
  const part = (kind: number, content: Uint8Array, fill: number): Bytes => {
    const out = new Uint8Array(8 + Math.ceil(content.length / 4) * 4).fill(fill);
    new DataView(out.buffer).setUint32(0, out.length - 8, true);
    new DataView(out.buffer).setUint32(4, kind, true);
    out.set(content, 8);
    return out;
  };
  const parts = [part(0x4e4f534a, words, 32), part(0x004e4942, binary, 0)];
  const head = new Uint8Array(12);
  new DataView(head.buffer).setUint32(0, 0x46546c67, true);
  new DataView(head.buffer).setUint32(4, 2, true);
  new DataView(head.buffer).setUint32(8, 12 + parts[0].length + parts[1].length, true);
  return joined([head, ...parts]);
}
