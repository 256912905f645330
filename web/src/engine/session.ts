// Measurements that come and go over one picture, which the network looks at once; the twin of
// src/gbpn/engine/session.py with the gates of every answer.

import type { Answer, Completer, Encoding, Numbers, Sparse, Stage } from "./completer";
import type { Camera } from "./frame";
import { contradicted, suspects } from "./outliers";

export interface Measurement { readonly x: number; readonly y: number; readonly depth: number; readonly std: number }
export interface Outlier { x: number; y: number; expected: number; sigmas: number }
export interface Completed { depth: Numbers; confidence: Numbers; std: Numbers | null; notices: string[]; observed: number }

/** Answers lie between the nearest measurement over this and the farthest times this. */
const REACH = 10;
const SUSPECT = 4;
const FEWEST_FOR_SPREAD = 8;
const USUAL_OF_GAUSSIAN = 0.6745;

interface Found { used: Sparse; dropped: number; first: Stage }

export class Session {
  private points: readonly Measurement[] = [];
  private found: Found | null = null;
  private refined: Stage | null = null;

  private constructor(private readonly completer: Completer, readonly encoding: Encoding) {}

  static async of(completer: Completer, pixels: Uint8Array, height: number, width: number, camera: Camera): Promise<Session> {
    return new Session(completer, await completer.look(pixels, height, width, camera));
  }

  get measurements(): readonly Measurement[] {
    return this.points;
  }

  /** All measurements anew; the picture is not looked at again. */
  measure(points: readonly Measurement[]): void {
    this.points = points;
    this.found = this.refined = null;
  }

  /** [H, W] metres of the first stage alone. */
  async quick(): Promise<Numbers> {
    const { first } = await this.now();
    return kept(first.answer, this.sparse(this.points)).mean;
  }

  /** The whole answer. */
  async result(): Promise<Completed> {
    const { used, dropped } = await this.now();
    const { answer } = await this.last();
    const sure = this.completer.sure(answer, this.encoding, await this.completer.check(this.encoding, used));
    const given = this.sparse(this.points);
    const shown = kept(answer, given);
    const widest = Math.max(...range(given.depth)) * REACH;
    const known = (i: number): boolean => shown.precision[i] > 0;
    const notices = [...this.outOfRange()];
    if (dropped) notices.push(`${dropped} of ${this.points.length} measurements contradict the rest and were left out`);
    return {
      depth: shown.mean, notices, confidence: sure.confidence.map((value, i) => (known(i) ? value : 0)),
      std: sure.std?.map((value, i) => (known(i) ? Math.min(value, widest) : NaN)) ?? null,
      observed: shown.precision.reduce((count, value) => count + Number(value > 0), 0),
    };
  }

  /** Every iteration of every stage. */
  async film(): Promise<{ stage: number; iteration: number; depth: Numbers }[]> {
    const { used, first } = await this.now();
    const stages = this.completer.stages === 2 ? [first, await this.last()] : [first];
    const stills = [];
    let messages: Stage["beliefs"]["messages"] | null = null;
    for (const [number, stage] of stages.entries()) {
      for (let iteration = 0; iteration < this.completer.iterations[number]; iteration++) {
        const beliefs = this.completer.one(stage, this.encoding, used, iteration, messages);
        messages = beliefs.messages;
        const depth = this.completer.metres(this.encoding, stage.unit, beliefs);
        stills.push({ stage: number + 1, iteration: iteration + 1, depth });
      }
    }
    return stills;
  }

  /** Measurements more than `limit` sigmas from what the others say, worst first. */
  async outliers(limit: number): Promise<Outlier[]> {
    const points = this.points;
    if (points.length < 2) return [];
    const everything = await this.completer.first(this.encoding, this.sparse(points));
    const scores = this.scores(points, everything, null);
    const usual = usualOf(scores);
    const lonely = new Set(suspects(this.sparse(points).depth, this.encoding.frame.height, this.encoding.frame.width));
    const suspect = points.map((point, i) => ({ point, sigmas: scores[i].sigmas / usual, expected: scores[i].expected }))
      .filter(({ point, sigmas }) => sigmas > Math.min(limit, SUSPECT) || lonely.has(this.index(point)));
    if (!suspect.length) return [];
    const places = new Set(suspect.map(({ point }) => this.index(point)));
    const rest = points.filter((point) => !places.has(this.index(point)));
    const told = (found: typeof suspect): Outlier[] => found.filter(({ sigmas }) => sigmas > limit)
      .sort((a, b) => b.sigmas - a.sigmas).map(({ point, sigmas, expected }) => ({ x: point.x, y: point.y, expected, sigmas }));
    if (!rest.length) return told(suspect);
    const answer = await this.completer.first(this.encoding, this.sparse(rest));
    const spread = usualOf(this.scores(rest, answer, null));
    const again = this.scores(suspect.map(({ point }) => point), answer, everything);
    return told(suspect.map(({ point }, i) => ({ point, sigmas: again[i].sigmas / spread, expected: again[i].expected })));
  }

  /** What the others say at each point; `weighed`: where the points' own weights come from, if `stage` has not seen them. */
  private scores(points: readonly Measurement[], stage: Stage, weighed: Stage | null): { expected: number; sigmas: number }[] {
    const { frame } = this.encoding;
    return points.map(({ x, y, depth }) => {
      const at = (y + frame.top) * frame.padded[1] + x + frame.left;
      const value = stage.unit.into(depth);
      const weight = (weighed ?? stage).weight[at];
      const own = weighed ? 0 : weight;
      const precision = Math.max(stage.beliefs.precision[at] - own, 1e-12);
      const mean = (stage.beliefs.information[at] - own * value) / precision;
      return { expected: stage.unit.out(mean), sigmas: Math.abs(value - mean) / Math.sqrt(1 / precision + 1 / weight) };
    });
  }

  private async now(): Promise<Found> {
    if (this.found) return this.found;
    if (!this.points.length) throw new Error("measure a point first: without one there is no answer");
    const { frame } = this.encoding;
    let used = this.sparse(this.points);
    let dropped: number[] = [];
    const suspect = suspects(used.depth, frame.height, frame.width);
    if (suspect.length) {
      const without = (await this.completer.first(this.encoding, less(used, suspect))).answer;
      dropped = contradicted(used.depth, suspect, without.mean, without.precision);
      used = less(used, dropped);
    }
    this.found = { used, dropped: dropped.length, first: await this.completer.first(this.encoding, used) };
    return this.found;
  }

  private async last(): Promise<Stage> {
    const { used, first } = await this.now();
    this.refined ??= this.completer.stages === 2 ? await this.completer.second(this.encoding, used, first) : first;
    return this.refined;
  }

  private *outOfRange(): Generator<string> {
    const trained = this.completer.manifest.card.trained_for ?? {};
    const depths = this.points.map((point) => point.depth);
    const [low, high] = depths.reduce(([a, b], depth) => [Math.min(a, depth), Math.max(b, depth)], [Infinity, 0]);
    const facts: [string, number, number, string, number[] | undefined][] = [
      ["points", depths.length, depths.length, "", trained.points], ["depth", low, high, " m", trained.depth],
    ];
    for (const [name, least, most, unit, known] of facts) {
      if (!known || (least >= known[0] && most <= known[1])) continue;
      const told = least === most ? `${least} ${name}` : `${name} from ${least.toPrecision(3)} to ${most.toPrecision(3)}${unit}`;
      yield `${told}: these weights were trained for ${known[0]} to ${known[1]}${unit}, expect more error than sigma says`;
    }
  }

  private index({ x, y }: Measurement): number {
    return y * this.encoding.frame.width + x;
  }

  private sparse(points: readonly Measurement[]): Sparse {
    const { height, width } = this.encoding.frame;
    const maps = { depth: new Float32Array(height * width), std: new Float32Array(height * width) };
    for (const point of points) {
      maps.depth[this.index(point)] = point.depth;
      maps.std[this.index(point)] = point.std;
    }
    return points.some((point) => point.std > 0) ? maps : { depth: maps.depth };
  }
}

function usualOf(scores: readonly { sigmas: number }[]): number {
  if (scores.length < FEWEST_FOR_SPREAD) return 1;
  const sorted = scores.map((one) => one.sigmas).sort((a, b) => a - b);
  return Math.max(sorted[(sorted.length - 1) >> 1] / USUAL_OF_GAUSSIAN, 1e-6);
}

function less(sparse: Sparse, dropped: readonly number[]): Sparse {
  const depth = sparse.depth.slice();
  for (const index of dropped) depth[index] = 0;
  return { ...sparse, depth };
}

function range(depth: Float32Array): [number, number] {
  let [low, high] = [Infinity, 0];
  for (const value of depth) {
    if (!(value > 0)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  return [low, high];
}

/** The answer without depths that are not finite or out of reach of what was given. */
function kept(answer: Answer, given: Sparse): Answer {
  const [low, high] = range(given.depth);
  const within = answer.mean.map((mean) => Number(mean >= low / REACH && mean <= high * REACH));
  return {
    ...answer,
    mean: answer.mean.map((mean, i) => (within[i] ? mean : NaN)),
    precision: answer.precision.map((precision, i) => (within[i] ? precision : 0)),
  };
}
