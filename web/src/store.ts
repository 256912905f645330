// The one state of the page. Modules read it, change it through `update`, and are told of changes.

import type { Grid, Listened, Maps, Welcome } from "./protocol";

export interface Point {
  readonly x: number;
  readonly y: number;
  /** Metres. */
  readonly depth: number;
  /** Metres of noise beyond what the network expects. */
  readonly std: number;
}

export interface Picture {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  /** RGB. */
  readonly pixels: Uint8Array;
  readonly truth: Float32Array | null;
  /** fx, fy, cx, cy. */
  readonly camera: readonly number[];
  readonly notices: readonly string[];
}

export type LayerName = "image" | "depth" | "std" | "confidence" | "error" | "truth";
export const LAYERS: readonly LayerName[] = ["depth", "std", "confidence", "error", "truth", "image"];

/** Something shown in place of the answer: a still of the film, another answer, what a pixel listens to. */
export interface Overlay {
  readonly title: string;
  readonly kind: "film" | "difference" | "beside" | "listening";
  readonly values: Float32Array;
  /** Of a difference: the answer that this one is compared with. */
  readonly other?: Float32Array;
}

export interface Suggestion { readonly x: number; readonly y: number; readonly gain: number }
export interface Outlier { readonly x: number; readonly y: number; readonly expected: number; readonly sigmas: number }
export interface Line { readonly x0: number; readonly y0: number; readonly x1: number; readonly y1: number }
export type Tool = "point" | "line" | "listen";
export type Connection = "connecting" | "open" | "lost" | "asleep" | "refused";

export interface State {
  connection: Connection;
  /** Why the connection ended, in words. */
  reason: string;
  welcome: Welcome | null;
  picture: Picture | null;
  /** The photo of `picture` with more pixels, to look at; null where there are no more. */
  sharp: ImageBitmap | null;
  loading: string;
  points: readonly Point[];
  selected: number | null;
  maps: Maps | null;
  /** Of the newest answer that carries them. */
  std: Float32Array | null;
  confidence: Float32Array | null;
  computing: boolean;
  /** Of the engine's files, bytes; null where none is under way. */
  download: { done: number; total: number } | null;
  ahead: number;
  error: string;
  view: "picture" | "space";
  tool: Tool;
  layer: LayerName;
  opacity: number;
  split: boolean;
  splitLayer: LayerName;
  splitAt: number;
  showPoints: boolean;
  /** Colour ranges set by hand. */
  clamps: Partial<Record<LayerName, readonly [number, number]>>;
  hover: { x: number; y: number } | null;
  cursor: { x: number; y: number } | null;
  line: Line | null;
  overlay: Overlay | null;
  listened: Listened | null;
  suggestions: readonly Suggestion[];
  outliers: readonly Outlier[];
  /** Whether a click on a picture with a dense map measures that map. */
  sceneAnswers: boolean;
  defaultDepth: number;
  defaultStd: number;
}

export const initial: State = {
  connection: "connecting", reason: "", welcome: null, picture: null, sharp: null, loading: "", points: [], selected: null,
  maps: null, std: null, confidence: null, computing: false, download: null, ahead: 0, error: "", view: "picture", tool: "point", layer: "depth",
  opacity: 0.85, split: false, splitLayer: "image", splitAt: 0.5, showPoints: true, clamps: {}, hover: null,
  cursor: null, line: null, overlay: null, listened: null, suggestions: [], outliers: [], sceneAnswers: true,
  defaultDepth: 2, defaultStd: 0,
};

type Listener = (state: Readonly<State>, changed: ReadonlySet<keyof State>) => void;

export class Store {
  state: Readonly<State> = initial;
  private listeners: Listener[] = [];
  private changed = new Set<keyof State>();
  private scheduled = false;

  constructor(private readonly schedule: (run: () => void) => void = (run) => requestAnimationFrame(run)) {}

  /** Change some fields; listeners hear of all changes of one frame at once. */
  update(change: Partial<State>): void {
    const before = this.state;
    this.state = { ...before, ...change };
    for (const key of Object.keys(change) as (keyof State)[]) {
      if (before[key] !== this.state[key]) this.changed.add(key);
    }
    if (!this.changed.size || this.scheduled) return;
    this.scheduled = true;
    this.schedule(() => this.tell());
  }

  listen(listener: Listener): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    this.scheduled = false;
    const changed = this.changed;
    this.changed = new Set();
    for (const listener of this.listeners) listener(this.state, changed);
  }
}

export const store = new Store();

/** Value of a map at a pixel. */
export function at(grid: Grid | null | undefined, width: number, x: number, y: number): number {
  return grid ? grid.values[y * width + x] : NaN;
}

/** The point at a pixel, or −1. */
export function pointAt(points: readonly Point[], x: number, y: number): number {
  return points.findIndex((point) => point.x === x && point.y === y);
}
