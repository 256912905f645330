// Every message between the page and the server, and their binary form: the mirror of src/gbpn/studio/protocol.py.
// Both sides are tested against tests/frames.json.

export const VERSION = 4;
const ALIGNMENT = 8;

export type Bytes = Uint8Array<ArrayBuffer>;
export type Places = Int32Array<ArrayBuffer>;
export type Numbers = Float32Array<ArrayBuffer>;

/** Maps and pictures travel with their shape. */
export interface Shaped<T> {
  values: T;
  shape: number[];
}
export type Grid = Shaped<Numbers>;

export interface OpenScene { kind: "OpenScene"; id: number; name: string }
export interface OpenUpload {
  kind: "OpenUpload"; id: number; name: string; depth_type: string; scale: number; camera: number[];
  camera_type: string; picture: Bytes; depth?: Bytes; camera_file?: Bytes;
}
export interface SetPoints {
  kind: "SetPoints"; id: number; x: Places; y: Places; depth: Numbers; std: Numbers;
}
export type PatternName = "points" | "lidar" | "tof" | "corners";
export interface TakePattern { kind: "TakePattern"; id: number; pattern: PatternName; count: number; seed: number }
export interface Suggest { kind: "Suggest"; id: number; count: number }
export interface Film { kind: "Film"; id: number }
export interface Listen { kind: "Listen"; id: number; x: number; y: number }
export type OtherAnswer = "first" | "exact";
export interface Compare { kind: "Compare"; id: number; to: OtherAnswer }
export interface FindOutliers { kind: "FindOutliers"; id: number; limit: number }
export interface Export { kind: "Export"; id: number; what: string }

export type FromPage =
  | OpenScene | OpenUpload | SetPoints | TakePattern | Suggest | Film | Listen | Compare | FindOutliers | Export;

export interface Welcome {
  kind: "Welcome"; protocol: number; version: string; model: string; stages: number; has_std: boolean;
  has_exact: boolean; learned_edges: boolean; scenes: string[]; exports: string[]; most_points: number; upload_bytes: number;
  /** Of "suggest", "film", "listen", "compare", "outliers". */
  offers: string[];
}
export interface Opened {
  kind: "Opened"; reply: number; name: string; intrinsics: number[]; notices: string[];
  picture: Shaped<Bytes>; truth?: Grid; x: Places; y: Places; depth: Numbers;
}
export interface Maps {
  kind: "Maps"; reply: number; stage: "first" | "last"; seconds: number; notices: string[];
  depth: Grid; confidence?: Grid; std?: Grid;
}
export interface Taken { kind: "Taken"; reply: number; x: Places; y: Places; depth: Numbers }
export interface Suggested { kind: "Suggested"; reply: number; x: Places; y: Places; gain: Numbers }
export interface FilmStill {
  kind: "FilmStill"; reply: number; number: number; count: number; stage: number; iteration: number; part: string;
  depth: Grid;
}
export interface Listened {
  kind: "Listened"; reply: number; x: number; y: number; strength: Grid; shares: Numbers;
}
export interface Compared { kind: "Compared"; reply: number; to: OtherAnswer; depth: Grid }
export interface Outliers {
  kind: "Outliers"; reply: number; x: Places; y: Places; expected: Numbers; sigmas: Numbers;
}
export interface File { kind: "File"; reply: number; name: string; media_type: string; content: Bytes }
export interface Waiting { kind: "Waiting"; reply: number; ahead: number }
export interface Failed { kind: "Failed"; reply: number; message: string }

export type FromServer =
  | Welcome | Opened | Maps | Taken | Suggested | FilmStill | Listened | Compared | Outliers | File | Waiting | Failed;

type Plain = Bytes | Places | Numbers;

const TYPES: Record<string, { size: number; of: (buffer: ArrayBuffer, start: number, count: number) => Plain }> = {
  u1: { size: 1, of: (buffer, start, count) => new Uint8Array(buffer, start, count) },
  i4: { size: 4, of: (buffer, start, count) => new Int32Array(buffer, start, count) },
  f4: { size: 4, of: (buffer, start, count) => new Float32Array(buffer, start, count) },
};

function typeOf(array: Plain): string {
  return array instanceof Uint8Array ? "u1" : array instanceof Int32Array ? "i4" : "f4";
}

function isPlain(value: unknown): value is Plain {
  return value instanceof Uint8Array || value instanceof Int32Array || value instanceof Float32Array;
}

function padded(length: number): number {
  return Math.ceil(length / ALIGNMENT) * ALIGNMENT;
}

/** The frame of a message. Arrays of the page are all of one axis. */
export function encode(message: FromPage): ArrayBuffer {
  const header: Record<string, unknown> = {};
  const arrays: Plain[] = [];
  const listed: [string, string, number[]][] = [];
  for (const [name, value] of Object.entries(message)) {
    if (isPlain(value)) {
      arrays.push(value);
      listed.push([name, typeOf(value), [value.length]]);
    } else if (value !== undefined) {
      header[name] = value;
    }
  }
  const text = new TextEncoder().encode(JSON.stringify({ ...header, arrays: listed }));
  const total = arrays.reduce((sum, array) => sum + padded(array.byteLength), ALIGNMENT + padded(text.length));
  const frame = new ArrayBuffer(total);
  const bytes = new Uint8Array(frame);
  new DataView(frame).setUint32(0, text.length, true);
  bytes.set(text, ALIGNMENT);
  let start = ALIGNMENT + padded(text.length);
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), start);
    start += padded(array.byteLength);
  }
  return frame;
}

/** The message of a frame from the server; arrays are views into it, those of two or more axes with their shape. */
export function decode(frame: ArrayBuffer): FromServer {
  const length = new DataView(frame).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(frame, ALIGNMENT, length));
  const { arrays, ...message } = JSON.parse(text) as Record<string, unknown> & {
    arrays: [string, string, number[]][];
  };
  let start = ALIGNMENT + padded(length);
  for (const [name, type, shape] of arrays) {
    const kind = TYPES[type];
    if (kind === undefined) throw new Error(`unknown array type ${type}`);
    const count = shape.reduce((product, n) => product * n, 1);
    const values = kind.of(frame, start, count);
    message[name] = shape.length === 1 ? values : { values, shape };
    start += padded(count * kind.size);
  }
  return message as unknown as FromServer;
}
