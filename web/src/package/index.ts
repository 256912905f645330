// The npm package `gbpn`: the studio's engine for other pages. Everything computes in a worker of the visitor's browser.

import type { Ended, Listener } from "../channel";
import { scaledPlace } from "../engine/sizes";
import { WorkerChannel } from "../in-worker";
import type { FromPage, FromServer, Maps, Opened } from "../protocol";

/** Anything that shows a picture: a file, an element that is loaded, a canvas, pixels. */
export type Picture = Blob | ImageBitmapSource;
/** A measurement: pixels of the picture, metres, and the noise of the measurement beyond what is usual, metres. */
export interface Point { readonly x: number; readonly y: number; readonly depth: number; readonly std?: number }
/** fx, fy, cx, cy in pixels of the picture. */
export type Camera = readonly [number, number, number, number];

export interface Completion {
  /** Of the maps, rows first: the size at which the picture is completed best, 640×480 pixels at most. */
  readonly width: number; readonly height: number;
  /** Metres; NaN where nothing is known. */
  readonly depth: Float32Array;
  /** Standard deviation of `depth`, metres; null where the weights state none. */
  readonly std: Float32Array | null;
  /** From 0 to 1. */
  readonly confidence: Float32Array;
  /** What to know of this answer: a camera that was guessed, measurements that were left out. */
  readonly notices: readonly string[];
}

export interface Settings {
  /** The folder with site.json, engine and networks: `assets` beside this package's code, or any site that was written. */
  readonly base?: string | URL;
  /** Bytes of the networks that came and all of them; they are kept for the next visit. */
  readonly downloading?: (done: number, total: number) => void;
}

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;
interface Waiting { readonly kind: "Opened" | "Maps"; done(message: Opened | Maps): void; fail(error: Error): void }

/** The networks in a worker, loaded once for many pictures. */
export class Engine implements Listener {
  private readonly channel: WorkerChannel;
  private readonly waiting = new Map<number, Waiting>();
  private readonly ready: Promise<void>;
  private welcomed = (): void => undefined;
  private refused: (error: Error) => void = () => undefined;
  private queue: Promise<unknown> = Promise.resolve();
  private shown: OpenPicture | null = null;
  private last = 0;

  constructor(private readonly settings: Settings = {}) {
    const base = new URL(settings.base ?? new URL(/* @vite-ignore */ "./assets/", import.meta.url), document.baseURI).href;
    this.channel = new WorkerChannel(startWorker, () => (base.endsWith("/") ? base : `${base}/`));
    this.ready = new Promise((done, fail) => { this.welcomed = done; this.refused = fail; });
    this.ready.catch(() => undefined); // whoever waits for an answer is told
    this.channel.open(this);
  }

  /** Look at a picture. `count`: of the points to come, which decides at what size it is completed best. */
  async open(image: Picture, camera: Camera | null = null, count = 10): Promise<OpenPicture> {
    return new OpenPicture(this, await encoded(image), camera, count);
  }

  close(): void {
    this.channel.close();
    this.fail(new Error("this engine was closed"));
  }

  /** Depth of one picture; what others ask waits. */
  answer(picture: OpenPicture, points: readonly Point[]): Promise<Completion> {
    const found = this.queue.then(() => this.answered(picture, points));
    this.queue = found.catch(() => undefined);
    return found;
  }

  private async answered(picture: OpenPicture, points: readonly Point[]): Promise<Completion> {
    if (!points.length) throw new Error("measure a point first: without one there is no answer");
    await this.ready;
    if (this.shown !== picture) {
      this.shown = null;
      picture.opened = await this.ask(picture.request, "Opened");
      this.shown = picture;
    }
    const { opened } = picture;
    const maps = await this.ask(measured(points, opened!, picture), "Maps");
    const [height, width] = maps.depth.shape;
    return {
      width, height, depth: maps.depth.values, std: maps.std?.values ?? null, confidence: maps.confidence!.values,
      notices: [...opened!.notices, ...maps.notices],
    };
  }

  private ask<K extends "Opened" | "Maps">(request: WithoutId<FromPage>, kind: K): Promise<Extract<FromServer, { kind: K }>> {
    const id = ++this.last;
    return new Promise((done, fail) => {
      this.waiting.set(id, { kind, done: done as Waiting["done"], fail });
      if (!this.channel.send({ ...request, id } as FromPage)) this.fail(new Error("this engine was closed"));
    });
  }

  hear(message: FromServer): void {
    if (message.kind === "Welcome") this.welcomed();
    if (!("reply" in message)) return;
    const waiting = this.waiting.get(message.reply);
    if (!waiting || (message.kind === "Maps" && message.stage === "first")) return;
    if (message.kind === "Failed") waiting.fail(new Error(message.message));
    else if (message.kind === waiting.kind) waiting.done(message as Opened | Maps);
    else return;
    this.waiting.delete(message.reply);
  }

  ended({ reason }: Ended): void {
    this.fail(new Error(reason));
  }

  downloading(done: number, total: number): void {
    this.settings.downloading?.(done, total);
  }

  notice(text: string): void {
    console.info(text);
  }

  private fail(error: Error): void {
    this.refused(error);
    for (const one of this.waiting.values()) one.fail(error);
    this.waiting.clear();
  }
}

/** A picture that the network has looked at: new points need no new look. */
export class OpenPicture {
  readonly request: WithoutId<FromPage>;
  opened: Opened | null = null;

  constructor(private readonly engine: Engine, readonly picture: Encoded, camera: Camera | null, count: number) {
    const rows = Array.from({ length: count }, (_, i) => `${i % picture.width},${Math.floor(i / picture.width)},1`);
    this.request = {
      kind: "OpenUpload", name: "picture", depth_type: ".csv", camera_type: "", scale: 0, camera: camera ? [...camera] : [],
      picture: picture.content, depth: new TextEncoder().encode(rows.join("\n")),
    };
  }

  complete(points: readonly Point[]): Promise<Completion> {
    return this.engine.answer(this, points);
  }
}

let shared: { engine: Engine; base: string } | null = null;

/**
 * Metric depth of a picture from measurements of single pixels.
 * The networks are loaded at the first call and kept for the next; `new Engine()` holds them by itself and can be closed.
 */
export async function complete(
  image: Picture, points: readonly Point[], settings: Settings & { readonly camera?: Camera } = {},
): Promise<Completion> {
  const base = String(settings.base ?? "");
  if (shared?.base !== base) {
    shared?.engine.close();
    shared = { base, engine: new Engine(settings) };
  }
  const { engine } = shared;
  try {
    return await (await engine.open(image, settings.camera ?? null, points.length)).complete(points);
  } catch (error) {
    if (shared?.engine === engine) shared = null; // the next call begins anew
    engine.close();
    throw error;
  }
}

function startWorker(): Worker {
  return new Worker(new URL(/* @vite-ignore */ "./worker.js", import.meta.url), { type: "module" });
}

interface Encoded { readonly content: Uint8Array<ArrayBuffer>; readonly width: number; readonly height: number }

/** A file as it is, with the camera that it may tell of; anything else as PNG, which loses nothing. */
async function encoded(image: Picture): Promise<Encoded> {
  const bitmap = await createImageBitmap(image, image instanceof Blob ? { imageOrientation: "from-image" } : {});
  const { width, height } = bitmap;
  let file: Blob;
  if (image instanceof Blob) file = image;
  else {
    const canvas = new OffscreenCanvas(width, height);
    canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
    file = await canvas.convertToBlob({ type: "image/png" });
  }
  bitmap.close();
  return { content: new Uint8Array(await file.arrayBuffer()), width, height };
}

/** Points of the picture in the pixels at which it is completed; of two in one pixel the nearer. */
function measured(points: readonly Point[], opened: Opened, picture: OpenPicture): WithoutId<FromPage> {
  const [height, width] = opened.picture.shape;
  const whole = picture.picture;
  const nearest = new Map<number, Point>();
  for (const { x, y, depth, std = 0 } of points) {
    if (!(x >= 0 && y >= 0 && x < whole.width && y < whole.height && depth > 0 && Number.isFinite(depth) && std >= 0)) {
      throw new Error(`a point must lie in the picture of ${whole.width}×${whole.height}, with a depth above 0 metres; `
        + `got x ${x}, y ${y}, depth ${depth}, std ${std}`);
    }
    const point = { x: scaledPlace(x, width / whole.width, width), y: scaledPlace(y, height / whole.height, height), depth, std };
    const there = nearest.get(point.y * width + point.x);
    if (!there || there.depth > depth) nearest.set(point.y * width + point.x, point);
  }
  const rows = [...nearest.values()];
  return {
    kind: "SetPoints", x: Int32Array.from(rows, (p) => p.x), y: Int32Array.from(rows, (p) => p.y),
    depth: Float32Array.from(rows, (p) => p.depth), std: Float32Array.from(rows, (p) => p.std ?? 0),
  };
}
