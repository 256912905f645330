// Exported networks in ONNX Runtime (WebAssembly): tensors by name in, tensors by name out.

import * as ort from "onnxruntime-web/wasm";
import type { NetworkFile } from "./manifest";
import type { Tensor } from "./tensor";

export type Drawn = Record<string, ort.Tensor>;

/** Where the runtime's parts are, and on how many threads it works. */
export function prepareRuntime(binary: ArrayBuffer, script: string, threads: number): void {
  ort.env.wasm.wasmBinary = binary;
  ort.env.wasm.wasmPaths = { mjs: script };
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = "error";
}

export class Network {
  private constructor(readonly file: NetworkFile, private readonly session: ort.InferenceSession) {}

  static async load(file: NetworkFile, model: Uint8Array): Promise<Network> {
    const session = await ort.InferenceSession.create(model, { executionProviders: ["wasm"], graphOptimizationLevel: "all" });
    return new Network(file, session);
  }

  /** `inputs` may hold more than this network takes. */
  async run(inputs: Drawn): Promise<Drawn> {
    const taken: Drawn = {};
    for (const name of this.file.inputs) {
      const tensor = inputs[name];
      if (!tensor) throw new Error(`the network ${this.file.name} wants ${name}, which nothing gives: export the networks again`);
      taken[name] = tensor;
    }
    return await this.session.run(taken) as Drawn;
  }
}

export function toOrt(tensor: Tensor): ort.Tensor {
  return new ort.Tensor("float32", tensor.data, tensor.dims);
}

export function fromOrt(tensor: ort.Tensor): Tensor {
  return { data: tensor.data as Float32Array, dims: tensor.dims };
}
