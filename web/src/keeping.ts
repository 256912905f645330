// Nothing is lost: what a person works on is kept in the browser as it changes, and comes back after a reload, Back or a crash.

import { connection } from "./connection";
import { find, say } from "./elements";
import type { OpenScene, OpenUpload } from "./protocol";
import { store } from "./store";
import type { LayerName, Point, State } from "./store";
import { plural, title } from "./words";

export type Opening = Omit<OpenScene, "id"> | Omit<OpenUpload, "id">;
/** What a project is made of, too. `size`: [H, W] of the picture that the points are pixels of. */
export interface Work {
  opening: Opening; points: readonly Point[]; size: readonly [number, number]; layer: LayerName; opacity: number;
  defaultDepth: number; defaultStd: number;
}

const BASE = "gbpn-studio";
const TABLE = "work";
const LATEST = "latest";
const PAUSE = 300;
let timer: number | undefined;
let database: Promise<IDBDatabase> | null = null;
/** Points as they were when they were last saved as a project, or came from somewhere. */
let safe: readonly Point[] = [];

/** This tab's own work; another tab has another. */
function tab(): string {
  const there = sessionStorage.getItem("tab");
  if (there) return there;
  const made = crypto.getRandomValues(new Uint32Array(2)).join("-");
  sessionStorage.setItem("tab", made);
  return made;
}

function opened(): Promise<IDBDatabase> {
  database ??= new Promise((done, fail) => {
    const request = indexedDB.open(BASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(TABLE);
    request.onsuccess = () => done(request.result);
    request.onerror = () => fail(request.error ?? new Error("no storage"));
  });
  return database;
}

async function put(work: Work): Promise<void> {
  const table = (await opened()).transaction(TABLE, "readwrite").objectStore(TABLE);
  table.put(work, LATEST);
  table.put(work, tab());
}

async function get(key: string): Promise<Work | null> {
  const request = (await opened()).transaction(TABLE).objectStore(TABLE).get(key);
  return new Promise((done) => {
    request.onsuccess = () => done((request.result as Work | undefined) ?? null);
    request.onerror = () => done(null);
  });
}

/** What is open now; null where nothing is. */
export function present(): Work | null {
  const { picture, points, layer, opacity, defaultDepth, defaultStd } = store.state;
  const opening = connection.openedWith as Opening | null;
  if (!picture || !opening) return null;
  return { opening, points, size: [picture.height, picture.width], layer, opacity, defaultDepth, defaultStd };
}

/** Open it again, points and view included. */
export function restore(work: Work): void {
  const { layer, opacity, defaultDepth, defaultStd } = work;
  store.update({ layer, opacity, defaultDepth, defaultStd, loading: "opening what you were working on" });
  connection.reopen(work.opening, work.points, work.size);
  safe = work.points;
}

/** The points are in a file of the person's own now. */
export function isSafe(): void {
  safe = store.state.points;
}

function unsaved(): boolean {
  const { picture, points } = store.state;
  return picture !== null && connection.openedWith?.kind === "OpenUpload" && points.length > 0 && points !== safe;
}

function keepSoon(state: Readonly<State>, changed: ReadonlySet<keyof State>): void {
  if (!state.picture || !["points", "layer", "opacity", "defaultDepth", "defaultStd", "picture"].some((key) => changed.has(key as keyof State))) return;
  window.clearTimeout(timer);
  timer = window.setTimeout(keep, PAUSE);
}

function keep(): void {
  window.clearTimeout(timer);
  const work = present();
  if (work) put(work).catch(() => undefined); // storage full or switched off: leaving asks
}

/** `#scene=kitchen&points=102,115,5.18;180,77,4.64,0.2`: a scene with points, as a link. */
export function linkOf(scene: string, points: readonly Point[]): string {
  const rows = points.map((p) => [p.x, p.y, Number(p.depth.toPrecision(6)), ...(p.std ? [p.std] : [])].join(","));
  return `#scene=${encodeURIComponent(scene)}${rows.length ? `&points=${rows.join(";")}` : ""}`;
}

export function readLink(hash: string): { scene: string; points: Point[] } | null {
  const told = new URLSearchParams(hash.replace(/^#/, ""));
  const scene = told.get("scene");
  if (!scene) return null;
  const rows = (told.get("points") ?? "").split(";").filter(Boolean).map((row) => row.split(",").map(Number));
  const sound = rows.filter((row) => row.length >= 3 && row.every((n) => Number.isFinite(n) && n >= 0) && row[2] > 0);
  return { scene, points: sound.map(([x, y, depth, std = 0]) => ({ x: Math.round(x), y: Math.round(y), depth, std })) };
}

/** Once, when the page is welcomed: the link's scene, else this tab's work; a new tab is offered the latest. */
async function goOn(): Promise<void> {
  const link = readLink(location.hash);
  if (link) {
    history.replaceState(null, "", location.pathname + location.search);
    connection.reopen({ kind: "OpenScene", name: link.scene }, link.points, null);
    return;
  }
  const own = await get(tab()).catch(() => null);
  if (own) {
    restore(own);
    return;
  }
  const latest = await get(LATEST).catch(() => null);
  if (!latest) return;
  const button = find("go-on");
  const name = latest.opening.name;
  say(button, `Go on with ${title(name)}, ${plural(latest.points.length, "point")}`);
  button.hidden = false;
  button.addEventListener("click", () => restore(latest), { once: true });
}

export function startKeeping(): void {
  let welcomed = false;
  store.listen((state, changed) => {
    keepSoon(state, changed);
    if (state.picture) find("go-on").hidden = true;
    if (!state.welcome || welcomed) return;
    welcomed = true;
    void goOn();
  });
  window.addEventListener("pagehide", keep);
  window.addEventListener("beforeunload", (event) => {
    if (unsaved()) event.preventDefault();
  });
}
