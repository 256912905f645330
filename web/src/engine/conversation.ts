// One page's conversation with the engine in its worker; the twin of src/gbpn/studio/page.py: requests in order, the newest
// measurements first, answers never out of turn.

import { decode, VERSION } from "../protocol";
import type { Bytes, FromPage, FromServer, Maps, Opened, OpenUpload, SetPoints, TakePattern } from "../protocol";
import type { Completer } from "./completer";
import { readCamera, readDepth } from "./depth-files";
import type { Downloads, Site } from "./downloads";
import { FILES, made, WITHOUT_ANSWER } from "./files";
import { guessedCamera } from "./frame";
import type { Camera } from "./frame";
import { take } from "./patterns";
import { decoded, exifFocal, reduced } from "./pictures";
import { Session } from "./session";
import type { Completed, Measurement } from "./session";
import { scaledCamera, scaledPlace, workingScale } from "./sizes";

/** Measurements of a page; a depth file with more is kept as the map that points are taken from. */
const MOST_POINTS = 20_000;
const WORKING_PIXELS = 640 * 480;
const UPLOAD_BYTES = 64_000_000;
/** What of the studio this engine can do. */
const OFFERS = ["film", "compare", "outliers"];

interface Material {
  name: string; scene: string; pixels: Uint8Array<ArrayBuffer>; height: number; width: number; camera: Camera;
  truth: Float32Array<ArrayBuffer> | null; notices: string[];
}

export class Conversation {
  private readonly waiting: FromPage[] = [];
  private working = false;
  private material: Material | null = null;
  private session: Session | null = null;
  private points: { number: number; rows: readonly Measurement[] } = { number: 0, rows: [] };
  private told = 0;
  private answer: Completed | null = null;

  constructor(
    private readonly site: Site, private readonly downloads: Downloads, private readonly completer: Promise<Completer>,
    private readonly hasStd: boolean, private readonly stages: number, private readonly send: (message: FromServer) => void,
  ) {}

  welcome(): void {
    this.send({
      kind: "Welcome", protocol: VERSION, version: this.site.version, model: this.site.model, stages: this.stages,
      has_std: this.hasStd, has_exact: false, learned_edges: true, scenes: this.site.scenes, exports: FILES,
      most_points: MOST_POINTS, upload_bytes: UPLOAD_BYTES, offers: OFFERS,
    });
  }

  receive(message: FromPage): void {
    const replaces = ["SetPoints", "TakePattern"];
    const last = this.waiting.at(-1);
    if (message.kind.startsWith("Open")) this.waiting.length = 0; // they were about what was open before
    else if (last && replaces.includes(message.kind) && last.kind === message.kind) this.waiting.pop();
    this.waiting.push(message);
    void this.work();
  }

  private async work(): Promise<void> {
    if (this.working) return;
    this.working = true;
    for (;;) {
      const message = this.waiting.shift();
      if (message) await this.guarded(message.id, () => this.about(message));
      else if (this.points.rows.length && this.told !== this.points.number) {
        await this.guarded(this.points.number, () => this.refine());
      } else break;
      await new Promise((next) => setTimeout(next)); // newer messages come in
    }
    this.working = false;
  }

  private async guarded(reply: number, work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (reply === this.points.number) this.told = reply;
      this.send({ kind: "Failed", reply, message: inWords(error) });
    }
  }

  private async about(message: FromPage): Promise<void> {
    switch (message.kind) {
      case "OpenScene": return this.open(message.id, await this.fromScene(message.name));
      case "OpenUpload": return this.open(message.id, await fromUpload(message, (await this.completer).manifest.card.trained_for?.focal));
      case "SetPoints": return this.set(message);
      case "TakePattern": return this.take(message);
      case "Film": return this.film(message.id);
      case "Compare": {
        if (message.to === "exact") throw new Error("there is no exact solution in the browser: gbpn studio on your computer has it");
        const values = await (await this.measured()).quick();
        return this.send({ kind: "Compared", reply: message.id, to: "first", depth: this.grid(values) });
      }
      case "FindOutliers": return this.outliers(message.id, message.limit);
      case "Export": return this.file(message.id, message.what);
      default: throw new Error("this is not part of the page without a server: gbpn studio on your computer has it");
    }
  }

  private async fromScene(name: string): Promise<Material> {
    const file = this.site.pictures[name];
    if (!file) throw new Error(`there is no scene ${name} here`);
    const opened = decode((await this.downloads.one(file)).buffer) as Opened;
    const [height, width] = opened.picture.shape;
    return {
      name, scene: name, pixels: opened.picture.values, height, width, camera: opened.intrinsics as unknown as Camera,
      truth: opened.truth?.values ?? null, notices: [],
    };
  }

  private async open(id: number, found: Material & { points?: Measurement[] }): Promise<void> {
    this.material = found;
    this.points = { number: id, rows: [] };
    this.told = id;
    this.answer = this.session = null;
    const { name, pixels, height, width, camera, truth, notices, points = [] } = found;
    this.send({
      kind: "Opened", reply: id, name, intrinsics: [...camera], notices, picture: { values: pixels, shape: [height, width, 3] },
      ...(truth ? { truth: { values: truth, shape: [height, width] } } : {}),
      x: Int32Array.from(points, (p) => p.x), y: Int32Array.from(points, (p) => p.y), depth: Float32Array.from(points, (p) => p.depth),
    });
    await this.drawn();
  }

  /** The session over what is open; the network looks at a picture once. */
  private async drawn(): Promise<Session> {
    const { material } = this;
    if (!material) throw new Error("no picture is open: open a scene or a picture first");
    if (this.session) return this.session;
    const { pixels, height, width, camera } = material;
    const session = await Session.of(await this.completer, pixels, height, width, camera);
    if (this.material === material) this.session = session;
    return session;
  }

  private async measured(): Promise<Session> {
    const session = await this.drawn();
    if (session.measurements !== this.points.rows) session.measure(this.points.rows);
    return session;
  }

  private async set(message: SetPoints): Promise<void> {
    const rows = Array.from(message.x, (x, i) => ({ x, y: message.y[i], depth: message.depth[i], std: message.std[i] }));
    this.points = { number: message.id, rows };
    this.answer = null;
    if (!rows.length) return;
    const start = performance.now();
    const depth = await (await this.measured()).quick();
    this.send(this.maps("first", start, depth));
  }

  private async refine(): Promise<void> {
    const { number } = this.points;
    const start = performance.now();
    const answer = await (await this.measured()).result();
    this.told = number;
    this.answer = answer;
    this.send({
      ...this.maps("last", start, answer.depth), notices: answer.notices, confidence: this.grid(answer.confidence),
      ...(answer.std ? { std: this.grid(answer.std) } : {}),
    });
  }

  private maps(stage: "first" | "last", start: number, depth: Float32Array<ArrayBuffer>): Maps {
    const seconds = (performance.now() - start) / 1000;
    return { kind: "Maps", reply: this.points.number, stage, seconds, notices: [], depth: this.grid(depth) };
  }

  private async take(message: TakePattern): Promise<void> {
    const { material } = this;
    if (!material?.truth) throw new Error("this picture has no dense depth map to take points from: place them by hand");
    const found = take({ ...material, truth: material.truth }, message.pattern, message.count, message.seed);
    const [x, y, depth] = [Int32Array.from(found.x), Int32Array.from(found.y), Float32Array.from(found.depth)];
    this.send({ kind: "Taken", reply: message.id, x, y, depth });
    await this.set({ kind: "SetPoints", id: message.id, x, y, depth, std: new Float32Array(depth.length) });
  }

  private async film(reply: number): Promise<void> {
    const stills = await (await this.measured()).film();
    stills.forEach((still, number) => this.send({
      kind: "FilmStill", reply, number, count: stills.length, stage: still.stage, iteration: still.iteration, part: "iteration",
      depth: this.grid(still.depth),
    }));
  }

  private async outliers(reply: number, limit: number): Promise<void> {
    const found = await (await this.measured()).outliers(limit);
    this.send({
      kind: "Outliers", reply, x: Int32Array.from(found, (o) => o.x), y: Int32Array.from(found, (o) => o.y),
      expected: Float32Array.from(found, (o) => o.expected), sigmas: Float32Array.from(found, (o) => o.sigmas),
    });
  }

  private async file(reply: number, what: string): Promise<void> {
    const { material } = this;
    if (!material) throw new Error("no picture is open: open a scene or a picture first");
    const needed = !WITHOUT_ANSWER.includes(what);
    if (needed && !this.points.rows.length) throw new Error("there is nothing to take away yet: measure a point first");
    const nothing = { depth: new Float32Array(), confidence: new Float32Array(), std: null, notices: [], observed: 0 };
    const answer = needed ? this.answer ?? await (await this.measured()).result() : nothing;
    const { name, type, content } = await made(what, material, this.points.rows, answer, this.site.weights);
    this.send({ kind: "File", reply, name, media_type: type, content });
  }

  private grid(values: Float32Array<ArrayBuffer>): { values: Float32Array<ArrayBuffer>; shape: number[] } {
    return { values, shape: [this.material!.height, this.material!.width] };
  }
}

/** A photo at the size at which it is completed best, with what came along. */
async function fromUpload(message: OpenUpload, trained: number | undefined): Promise<Material & { points: Measurement[] }> {
  const bitmap = await decoded(message.picture);
  const { height, width } = bitmap;
  const notices: string[] = [];
  const camera = givenCamera(message, height, width, notices);
  const given = message.depth
    ? await readDepth(message.depth as Bytes, message.depth_type, message.scale, height, width) : { x: [], y: [], depth: [] };
  const focal = (camera[0] + camera[1]) / 2;
  const memory = Math.sqrt(WORKING_PIXELS / (height * width));
  const wanted = trained ? workingScale(height, width, focal, given.x.length, trained) : 1;
  const factor = Math.min(wanted, memory, 1);
  const [rows, columns] = [Math.floor(height * factor), Math.floor(width * factor)];
  const photo = reduced(bitmap, rows, columns);
  bitmap.close();
  if (factor < 1) notices.push(`completed at ${columns}×${rows}, the size that suits it; the photo has ${width}×${height}`);
  const nearest = new Map<number, Measurement>();
  given.x.forEach((x, i) => {
    const point = { x: scaledPlace(x, columns / width, columns), y: scaledPlace(given.y[i], rows / height, rows), depth: given.depth[i], std: 0 };
    const there = nearest.get(point.y * columns + point.x);
    if (!there || there.depth > point.depth) nearest.set(point.y * columns + point.x, point);
  });
  const dense = nearest.size > MOST_POINTS;
  let truth: Float32Array<ArrayBuffer> | null = null;
  if (dense) {
    truth = new Float32Array(rows * columns);
    for (const [place, point] of nearest) truth[place] = point.depth;
    notices.push("the depth map is dense: take points from it with the patterns");
  }
  return {
    name: message.name.slice(0, 80) || "picture", scene: "", pixels: photo.pixels, height: rows, width: columns,
    camera: scaledCamera(camera, columns / width, rows / height), truth, notices, points: dense ? [] : [...nearest.values()],
  };
}

function givenCamera(message: OpenUpload, height: number, width: number, notices: string[]): Camera {
  if (message.camera.length === 4) return message.camera as unknown as Camera;
  if (message.camera_file) return readCamera(message.camera_file, message.camera_type);
  const millimetres = exifFocal(message.picture);
  const camera = guessedCamera(height, width, millimetres);
  notices.push(millimetres ? `camera from EXIF: focal length ${camera[0].toFixed(0)} pixels`
    : "camera not given: a field of view of 60° along the longer side is assumed (give it to be exact)");
  return camera;
}

/** What went wrong, and what to do. */
export function inWords(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const memory = error instanceof RangeError || /out of memory|memory access|allocat|bad_alloc/i.test(text);
  return memory ? "out of memory: close other pages, or use a smaller picture. Your points are kept." : text;
}
