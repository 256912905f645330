// From a picture and its measurements to depth and sigma; the twin of src/gbpn/runtime/completer.py.

import { trust } from "./agreement";
import { withoutCheckerboard } from "./checkerboard";
import { EDGES } from "./core";
import type { Beliefs, Core } from "./core";
import { crop, frameOf, pad } from "./frame";
import type { Camera, Frame } from "./frame";
import { drawnPatches, explain, factorOfFew } from "./held-out";
import type { Manifest } from "./manifest";
import { fromOrt, toOrt } from "./networks";
import type { Drawn, Network } from "./networks";
import { countMeasured, sigmoid } from "./tensor";
import type { Tensor } from "./tensor";
import { DepthUnit } from "./unit";

export type Numbers = Float32Array<ArrayBuffer>;
/** [H, W] metres each; 0 where not measured. `std`: noise beyond what the network expects. */
export interface Sparse { readonly depth: Numbers; readonly std?: Numbers }
/** What the first network knows of a picture without any depth. */
export interface Encoding { readonly frame: Frame; readonly drawn: Drawn }
/** Maps [H, W]: metres (NaN where nothing is known), before the sigmoid, and of the belief. */
export interface Answer { readonly mean: Numbers; readonly logit: Numbers; readonly precision: Numbers }
/** What one stage did; maps of beliefs have the padded size. */
export interface Stage {
  readonly unit: DepthUnit; readonly drawn: Drawn; readonly weight: Float32Array; readonly beliefs: Beliefs;
  readonly answer: Answer;
}
/** What the picture's own measurements ask of sigma: a factor, and sigma / depth to add. */
export type Widening = readonly [number, number];

export class Completer {
  private readonly networks: Map<string, Network>;

  constructor(readonly manifest: Manifest, networks: readonly Network[], private readonly core: Core) {
    this.networks = new Map(networks.map((network) => [network.file.name, network]));
    if (!this.networks.has("first")) throw new Error("there is no first network: export the networks again");
  }

  get stages(): number {
    return this.networks.has("second") ? 2 : 1;
  }

  /** Run the first network over [H, W, 3] bytes. */
  async look(pixels: Uint8Array, height: number, width: number, camera: Camera): Promise<Encoding> {
    const frame = frameOf(pixels, height, width, camera, this.manifest);
    const drawn = await this.networks.get("first")!.run({ image: toOrt(frame.image), intrinsics: toOrt(frame.intrinsics) });
    return { frame, drawn };
  }

  /** The first stage, from empty messages. */
  async first(encoding: Encoding, sparse: Sparse): Promise<Stage> {
    const { frame } = encoding;
    const there: Tensor = { data: pad(frame, sparse.depth.map((depth) => Number(depth > 0))), dims: [1, 1, ...frame.padded] };
    const field = this.networks.get("field");
    const answered = field ? await field.run({ ...encoding.drawn, measured: toOrt(there) }) : {};
    const drawn = { ...encoding.drawn, ...answered };
    const unit = DepthUnit.of(this.manifest.config.depth_scale, sparse.depth);
    return this.infer(encoding, sparse, unit, drawn, 0, null);
  }

  /** The second stage looks at the first one's answer and goes on from its messages. */
  async second(encoding: Encoding, sparse: Sparse, first: Stage): Promise<Stage> {
    const { frame, drawn } = encoding;
    const { unit, beliefs } = first;
    const dims = [1, 1, ...frame.padded];
    const depth = pad(frame, sparse.depth);
    const maps = (data: Float32Array): ReturnType<typeof toOrt> => toOrt({ data, dims });
    const given = {
      ...first.drawn, ...drawn, image: toOrt(frame.image), intrinsics: toOrt(frame.intrinsics),
      depth: maps(beliefs.precision.map((precision, i) => unit.seen(precision > 0 ? beliefs.information[i] / precision : 0))),
      confidence: maps(this.logit(first.drawn, beliefs).map(sigmoid)),
      measured: maps(depth.map((metres) => (metres > 0 ? unit.seen(unit.into(metres)) : 0))),
    };
    const drawnAnew = await this.networks.get("second")!.run(given);
    return this.infer(encoding, sparse, unit, drawnAnew, 1, beliefs.messages);
  }

  /** All stages. */
  async last(encoding: Encoding, sparse: Sparse): Promise<Stage> {
    const first = await this.first(encoding, sparse);
    return this.stages === 2 ? this.second(encoding, sparse, first) : first;
  }

  /** Complete from most of the measurements, compare with the rest; null where the weights state no sigma. */
  async check(encoding: Encoding, sparse: Sparse): Promise<Widening | null> {
    const { height, width } = encoding.frame;
    if (!this.manifest.calibration) return null;
    const patches = drawnPatches(sparse.depth, height, width);
    const held = sparse.depth.map((depth, i) => (patches[i] ? depth : 0));
    if (!countMeasured(held)) return [factorOfFew(countMeasured(sparse.depth)), 0];
    const rest = { ...sparse, depth: sparse.depth.map((depth, i) => (held[i] > 0 ? 0 : depth)) };
    const blind = (await this.last(encoding, rest)).answer;
    const error: number[] = [];
    const sigma: number[] = [];
    held.forEach((metres, i) => {
      if (!(metres > 0) || !(blind.precision[i] > 0)) return;
      error.push(Math.abs(blind.mean[i] - metres) / metres);
      sigma.push(this.stated(blind.mean[i], blind.logit[i]) / metres);
    });
    return explain(error, sigma);
  }

  /** [H, W]: confidence in [0, 1), and sigma in metres where the weights state one. */
  sure(answer: Answer, encoding: Encoding, widening: Widening | null): { confidence: Numbers; std: Numbers | null } {
    const { height, width } = encoding.frame;
    const known = (i: number): boolean => answer.precision[i] > 0;
    const logit = withoutCheckerboard(answer.logit, known, height, width);
    const confidence = logit.map((value, i) => (known(i) ? sigmoid(value) : 0));
    if (!widening) return { confidence, std: null };
    const std = logit.map((value, i) =>
      (known(i) ? Math.hypot(this.stated(answer.mean[i], value) * widening[0], widening[1] * answer.mean[i]) : NaN));
    return { confidence, std };
  }

  /** One more iteration of a stage, which is trained for several: its field as that iteration reads it. */
  one(stage: Stage, encoding: Encoding, sparse: Sparse, iteration: number, messages: Beliefs["messages"] | null): Beliefs {
    const edges: Record<string, Tensor> = {};
    for (const name of EDGES) {
      const tensor = stage.drawn[name];
      if (!tensor) continue;
      const { data, dims } = fromOrt(tensor);
      const [batch, count, ...rest] = dims;
      const length = data.length / count;
      const part = Math.min(iteration, count - 1);
      edges[name] = { data: data.subarray(part * length, (part + 1) * length), dims: [batch, 1, ...rest] };
    }
    const counted = pad(encoding.frame, sparse.depth).map((metres) => stage.unit.into(metres));
    return this.core.infer(edges, counted.map((value, i) => value * stage.weight[i]), stage.weight, encoding.frame.padded, messages,
      this.schedule(1));
  }

  /** Beliefs at the padded size as metres of the picture. */
  metres(encoding: Encoding, unit: DepthUnit, beliefs: Beliefs): Numbers {
    return crop(encoding.frame, beliefs.precision.map((p, i) => (p > 0 ? unit.out(beliefs.information[i] / p) : NaN)));
  }

  get iterations(): readonly number[] {
    return this.manifest.config.iterations;
  }

  private schedule(iterations: number): { iterations: number; steps: number; reweighting: number } {
    const { nonlocal_steps: steps, reweighting } = this.manifest.config;
    return { iterations, steps, reweighting };
  }

  private infer(
    encoding: Encoding, sparse: Sparse, unit: DepthUnit, drawn: Drawn, stage: number, messages: Beliefs["messages"] | null,
  ): Stage {
    const { frame } = encoding;
    const trusted = trust(sparse.depth, frame.height, frame.width, this.manifest.config.agreement_trust);
    const depth = pad(frame, sparse.depth);
    const std = sparse.std ? pad(frame, sparse.std) : null;
    const unary = fromOrt(drawn.unary).data;
    const weight = new Float32Array(depth.length);
    const information = new Float32Array(depth.length);
    depth.forEach((metres, i) => {
      if (!(metres > 0)) return;
      const full = unary[i] * trusted;
      weight[i] = std && std[i] > 0 ? full / (1 + full * unit.variance(metres, std[i])) : full;
      information[i] = unit.into(metres) * weight[i];
    });
    const edges: Record<string, Tensor> = {};
    for (const name of EDGES) if (drawn[name]) edges[name] = fromOrt(drawn[name]);
    const beliefs = this.core.infer(edges, information, weight, frame.padded, messages, this.schedule(this.iterations[stage]));
    const answer = {
      mean: this.metres(encoding, unit, beliefs),
      logit: crop(frame, this.logit(drawn, beliefs)), precision: crop(frame, beliefs.precision),
    };
    return { unit, drawn, weight, beliefs, answer };
  }

  private logit(drawn: Drawn, beliefs: Beliefs): Float32Array {
    const residual = fromOrt(drawn.residual).data;
    const logarithm = this.manifest.config.confidence === "log";
    return beliefs.precision.map((value, i) => (logarithm ? Math.log(Math.max(value, 1e-9)) : value) + residual[i]);
  }

  /** Sigma in metres as the calibration alone states it. */
  private stated(mean: number, logit: number): number {
    const { knots, log_std: values, relative } = this.manifest.calibration!;
    let upper = 1;
    while (upper < knots.length - 1 && knots[upper] < logit) upper += 1;
    const share = Math.min(Math.max((logit - knots[upper - 1]) / (knots[upper] - knots[upper - 1]), 0), 1);
    const std = Math.exp(values[upper - 1] + share * (values[upper] - values[upper - 1]));
    return relative ? std * Math.abs(mean) : std;
  }
}
