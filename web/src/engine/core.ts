// The native core as WebAssembly, through its C interface (native/gbpn.h): Gaussian belief propagation.

import type { Tensor } from "./tensor";

const MESSAGES: readonly [string, number][] = [
  ["messages_local_information", 8], ["messages_local_precision", 8],
  ["messages_nonlocal_information", 1], ["messages_nonlocal_precision", 1],
];
/** What a network draws of the edges; the names are those of the exported networks and of the core. */
export const EDGES = [
  "local_weight", "local_difference", "local_damping",
  "nonlocal_weight", "nonlocal_difference", "nonlocal_offset", "nonlocal_damping",
] as const;
const INTERFACE = 1;
const ARRAY_BYTES = 112;
const MOST_AXES = 6;

export type Messages = ReadonlyMap<string, Float32Array>;
export interface Beliefs { information: Float32Array; precision: Float32Array; messages: Messages }
export interface Schedule { iterations: number; steps: number; reweighting: number }

interface Exports {
  memory: WebAssembly.Memory;
  _initialize(): void;
  malloc(bytes: number): number;
  free(pointer: number): void;
  gbpn_interface(): number;
  gbpn_error(): number;
  gbpn_dense(made: number, data: number, type: number, rank: number, shape: number): number;
  gbpn_inference_new(made: number): number;
  gbpn_inference_free(inference: number): void;
  gbpn_inference_read(inference: number, name: number, array: number): number;
  gbpn_inference_write(inference: number, name: number, array: number): number;
  gbpn_inference_run(inference: number, schedule: number): number;
}

export class Core {
  private readonly kept = new Map<string, { pointer: number; bytes: number }>();

  private constructor(private readonly core: Exports) {}

  static async load(bytes: BufferSource): Promise<Core> {
    const ended = (): never => { throw new Error("the core stopped: reload the page"); };
    const { instance } = await WebAssembly.instantiate(bytes, {
      env: { emscripten_notify_memory_growth: () => undefined },
      wasi_snapshot_preview1: { proc_exit: ended },
    });
    const core = instance.exports as unknown as Exports;
    core._initialize();
    if (core.gbpn_interface() !== INTERFACE) throw new Error("page and core are of different versions: reload the page");
    return new Core(core);
  }

  /**
   * Beliefs of a field of H×W pixels.
   * drawn: its edges by the names of `EDGES`, [1, T, …, H, W]; information, precision: of the measurements, [H, W];
   * messages: what an earlier inference ended with; null starts empty
   */
  infer(
    drawn: Readonly<Record<string, Tensor>>, information: Float32Array, precision: Float32Array, size: readonly [number, number],
    messages: Messages | null, schedule: Schedule,
  ): Beliefs {
    const plane = [1, 1, ...size];
    const inference = this.made();
    try {
      const read = (name: string, values: Float32Array | null, shape: readonly number[]): void => {
        const pointer = this.place(name, shape);
        if (values) this.floats(pointer, values.length).set(values);
        else this.floats(pointer, product(shape)).fill(0);
        this.name(inference, name, pointer, shape, false);
      };
      read("unary_information", information, plane);
      read("unary_precision", precision, plane);
      for (const [name, planes] of MESSAGES) read(name, messages?.get(name) ?? null, [1, planes, ...size]);
      for (const name of EDGES) {
        const edges = drawn[name];
        if (edges) read(name, edges.data, edges.dims);
      }
      const written: [string, number][] = [["belief_information", 1], ["belief_precision", 1], ...MESSAGES];
      const places = written.map(([name, planes]) => {
        const shape = [1, planes, ...size];
        const pointer = this.place(`written ${name}`, shape);
        this.name(inference, name, pointer, shape, true);
        return { name, pointer, count: product(shape) };
      });
      this.run(inference, schedule);
      const found = new Map(places.map(({ name, pointer, count }) => [name, this.floats(pointer, count).slice()]));
      return { information: found.get("belief_information")!, precision: found.get("belief_precision")!, messages: found };
    } finally {
      this.core.gbpn_inference_free(inference);
    }
  }

  private made(): number {
    const place = this.bytes("handle", 8);
    this.require(this.core.gbpn_inference_new(place));
    return new Uint32Array(this.core.memory.buffer, place, 1)[0];
  }

  private run(inference: number, schedule: Schedule): void {
    const place = this.bytes("schedule", 24);
    const view = new DataView(this.core.memory.buffer, place, 24);
    view.setInt32(0, schedule.iterations, true);
    view.setInt32(4, schedule.steps, true);
    view.setInt32(8, 1, true);
    view.setFloat64(16, schedule.reweighting, true);
    this.require(this.core.gbpn_inference_run(inference, place));
  }

  /** Tell the inference of a tensor by its name. */
  private name(inference: number, name: string, pointer: number, shape: readonly number[], written: boolean): void {
    const text = new TextEncoder().encode(`${name}\0`);
    const [letters, lengths, array] = [this.bytes("name", 64), this.bytes("shape", 8 * MOST_AXES), this.bytes("array", ARRAY_BYTES)];
    new Uint8Array(this.core.memory.buffer, letters, text.length).set(text);
    const view = new DataView(this.core.memory.buffer, lengths, 8 * MOST_AXES);
    shape.forEach((length, axis) => view.setBigInt64(8 * axis, BigInt(length), true));
    this.require(this.core.gbpn_dense(array, pointer, 0, shape.length, lengths));
    const tell = written ? this.core.gbpn_inference_write : this.core.gbpn_inference_read;
    this.require(tell(inference, letters, array));
  }

  private floats(pointer: number, count: number): Float32Array {
    return new Float32Array(this.core.memory.buffer, pointer, count);
  }

  private place(name: string, shape: readonly number[]): number {
    return this.bytes(name, 4 * product(shape));
  }

  /** Memory of the core's under a name, kept for the next time. */
  private bytes(name: string, bytes: number): number {
    const there = this.kept.get(name);
    if (there && there.bytes === bytes) return there.pointer;
    if (there) this.core.free(there.pointer);
    this.kept.delete(name);
    const pointer = this.core.malloc(bytes);
    if (!pointer) throw new Error("out of memory: close other pages, or use a smaller picture");
    this.kept.set(name, { pointer, bytes });
    return pointer;
  }

  private require(status: number): void {
    if (status === 0) return;
    const memory = new Uint8Array(this.core.memory.buffer);
    const start = this.core.gbpn_error();
    throw new Error(new TextDecoder().decode(memory.slice(start, memory.indexOf(0, start))));
  }
}

function product(shape: readonly number[]): number {
  return shape.reduce((count, length) => count * length, 1);
}
