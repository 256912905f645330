// The conversation with server or engine: numbered requests, the newest points last, and answers that never overwrite newer ones.

import type { Channel, Ended, Listener } from "./channel";
import { WorkerChannel } from "./in-worker";
import { VERSION } from "./protocol";
import type { FromPage, FromServer, Maps, Opened } from "./protocol";
import { SocketChannel } from "./socket";
import { store } from "./store";
import type { Point } from "./store";

type WithoutId<T> = T extends unknown ? Omit<T, "id"> : never;
type Request = WithoutId<FromPage>;
type Handler<K extends FromServer["kind"]> = (message: Extract<FromServer, { kind: K }>) => void;

const RETRIES = [300, 1000, 2000, 5000];

/** Whether answer `a` may follow what is shown: later points win, then the later stage. */
export function isNewer(shown: Maps | null, found: Maps, since: number): boolean {
  if (found.reply < since) return false;
  if (shown === null || found.reply !== shown.reply) return shown === null || found.reply > shown.reply;
  return shown.stage === "first" && found.stage === "last";
}

/** Points of a picture of `size` in one of another. */
export function fitted(
  points: readonly Point[], size: readonly [number, number] | null, [height, width]: readonly [number, number, number],
): readonly Point[] {
  if (!size || (size[0] === height && size[1] === width)) {
    const inside = (p: Point): boolean => p.x >= 0 && p.y >= 0 && p.x < width && p.y < height;
    return points.every(inside) ? points : points.filter(inside);
  }
  const moved = (place: number, from: number, to: number): number =>
    Math.min(Math.max(Math.round((place + 0.5) * to / from - 0.5), 0), to - 1);
  const found = new Map<number, Point>();
  for (const point of points) {
    const x = moved(point.x, size[1], width);
    const y = moved(point.y, size[0], height);
    if (!found.has(y * width + x)) found.set(y * width + x, { ...point, x, y });
  }
  return [...found.values()];
}

/** Milliseconds from the event that changed points to its first and its refined answer, drawn. */
export interface Latency { id: number; first: number; last: number }

/** When what a person did happened, milliseconds on the page's clock. */
function eventTime(): number {
  const now = performance.now();
  const event = window.event?.timeStamp ?? now;
  return now - event < 1000 ? event : now;
}

export class Connection implements Listener {
  /** Measured so far, for those who ask. */
  readonly latencies: Latency[] = [];
  private last = 0;
  /** Id from which on answers belong to what is shown: the picture was opened, or all points taken away. */
  private since = 0;
  /** Id of the newest request for an answer, and of the newest points that a person set. */
  private newestAsked = 0;
  private byHand = 0;
  private opening: Request | null = null;
  /** Id of the newest request to open a picture: only its answer is shown. */
  private openingId = 0;
  private returning: { points: readonly Point[]; size: readonly [number, number] | null } | null = null;
  private pending: (() => FromPage) | null = null;
  private underway = 0;
  private sent = new Map<number, number>();
  private handlers = new Map<string, ((message: never) => void)[]>();
  private attempt = 0;

  constructor(private readonly channel: Channel) {}

  on<K extends FromServer["kind"]>(kind: K, handler: Handler<K>): void {
    const list = this.handlers.get(kind) ?? [];
    list.push(handler as (message: never) => void);
    this.handlers.set(kind, list);
  }

  connect(): void {
    this.channel.open(this);
  }

  /** Ask for something; the id of the request. */
  ask(request: Request): number {
    const id = ++this.last;
    this.send({ ...request, id } as FromPage);
    return id;
  }

  /** The request that opened what is shown. */
  get openedWith(): Request | null {
    return this.opening;
  }

  /** Open a picture with points, pixels of a picture of this size ([H, W]; null: of its own). */
  reopen(request: Request, points: readonly Point[], size: readonly [number, number] | null): void {
    this.open(request);
    this.returning = { points, size };
  }

  /** The points of a picture that was reopened, once it is here; null for any other. */
  returned(message: Opened): readonly Point[] | null {
    const { returning } = this;
    this.returning = null;
    return returning && fitted(returning.points, returning.size, message.picture.shape as [number, number, number]);
  }

  /** Open a picture; remembered for when the connection comes back. */
  open(request: Request): number {
    this.opening = request;
    this.returning = null;
    this.pending = null;
    this.underway = 0;
    this.opened = null;
    this.since = this.openingId = this.last + 1;
    return this.ask(request);
  }

  /** Tell the server all points; while an answer is under way only the newest list waits. */
  setPoints(points: readonly Point[]): void {
    const id = ++this.last;
    this.newestAsked = this.byHand = id;
    this.sent.set(id, eventTime());
    if (!points.length) this.since = id;
    if (!points.length) store.update({ maps: null, std: null, confidence: null, computing: false });
    else store.update({ computing: true });
    this.newest(id, () => ({
      kind: "SetPoints", id,
      x: Int32Array.from(points, (p) => p.x), y: Int32Array.from(points, (p) => p.y),
      depth: Float32Array.from(points, (p) => p.depth), std: Float32Array.from(points, (p) => p.std),
    }));
  }

  /** Let the server measure the dense map. */
  takePattern(pattern: "points" | "lidar" | "tof" | "corners", count: number, seed: number): void {
    const id = ++this.last;
    this.newestAsked = id;
    this.sent.set(id, eventTime());
    store.update({ computing: true });
    this.newest(id, () => ({ kind: "TakePattern", id, pattern, count, seed }));
  }

  /** Whether points were changed after those of an answer: it is shown, and a newer one will come. */
  isOvertaken(reply: number): boolean {
    return reply < this.newestAsked;
  }

  private newest(id: number, make: () => FromPage): void {
    if (this.underway) {
      this.pending = make;
      return;
    }
    const message = make();
    const waits = message.kind !== "SetPoints" || message.x.length > 0; // no points, no answer
    this.underway = waits ? id : 0;
    this.send(message);
  }

  private next(): void {
    const make = this.pending;
    this.pending = null;
    this.underway = 0;
    if (make) this.newest(this.newestAsked, make);
  }

  private send(message: FromPage): void {
    this.channel.send(message);
  }

  hear(message: FromServer): void {
    if (message.kind === "Welcome") this.welcomed(message.protocol);
    if (message.kind === "Opened" && message.reply < this.openingId) return;
    if (message.kind === "Maps") {
      if (message.stage === "first" && message.reply >= this.underway) this.next();
      if (!isNewer(store.state.maps, message, this.since)) return;
      this.timed(message);
    }
    if (message.kind === "Taken" && message.reply < Math.max(this.since, this.byHand)) return;
    if (message.kind === "Failed" && message.reply === this.underway) this.next();
    for (const handler of this.handlers.get(message.kind) ?? []) handler(message as never);
  }

  private timed(message: Maps): void {
    const start = this.sent.get(message.reply);
    if (start === undefined) return;
    requestAnimationFrame(() => setTimeout(() => {
      const milliseconds = performance.now() - start;
      if (message.stage === "first") this.latencies.push({ id: message.reply, first: milliseconds, last: NaN });
      const found = this.latencies.find((one) => one.id === message.reply);
      if (message.stage === "last" && found) found.last = milliseconds;
      if (message.stage !== "last") return;
      for (const id of this.sent.keys()) if (id <= message.reply) this.sent.delete(id);
    }));
  }

  private welcomed(protocol: number): void {
    this.attempt = 0;
    if (protocol !== VERSION) {
      store.update({ connection: "refused", reason: "page and server are of different versions: reload the page" });
      return;
    }
    store.update({ connection: "open", reason: "" });
    if (this.opening) {
      const points = store.state.points;
      this.since = this.openingId = this.last + 1;
      this.ask(this.opening);
      this.opened = () => this.setPoints(points);
    }
  }

  /** What to do once a picture that was open before the connection broke is open again. */
  private opened: (() => void) | null = null;

  /** Whether this picture was opened anew after a break: the points of the page stay then. */
  resumes(_: Opened): boolean {
    const resume = this.opened;
    this.opened = null;
    this.underway = 0;
    resume?.();
    return resume !== null;
  }

  ended({ how, reason }: Ended): void {
    this.underway = 0;
    this.pending = null;
    store.update({ computing: false, ahead: 0, loading: "", download: null, connection: how, reason });
    if (how !== "lost") return;
    const wait = RETRIES[Math.min(this.attempt++, RETRIES.length - 1)];
    setTimeout(() => this.connect(), wait);
  }

  downloading(done: number, total: number): void {
    store.update({ download: done < total ? { done, total } : null });
  }

  notice(text: string): void {
    store.update({ error: text });
  }
}

/** The page of a site without a server says so in its first element. */
export const withoutServer = globalThis.document?.documentElement.dataset.engine === "worker";
export const connection = new Connection(withoutServer ? worker() : new SocketChannel());

function worker(): WorkerChannel {
  const start = (): Worker => new Worker(new URL("./engine/worker.ts", import.meta.url), { type: "module" });
  return new WorkerChannel(start, () => new URL(".", document.baseURI).href);
}
