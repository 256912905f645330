// Projects: a photo, its points and its camera as one file, which the page and `gbpn complete` open. A ZIP without packing.

import { crc32, joined, plain } from "./engine/files";
import { isSafe, present, restore } from "./keeping";
import type { Opening, Work } from "./keeping";
import type { Bytes } from "./protocol";
import { store } from "./store";
import { parsePoints } from "./words";

export const SUFFIX = ".gbpn";
const FORMAT = "gbpn-project";
const VERSION = 1;

interface Told {
  format: string; version: number; written_by: string; name: string; scene?: string; photo?: string;
  size: [number, number]; camera: number[]; camera_file?: string; how: Record<string, never>;
}

const text = (content: string): Bytes => new TextEncoder().encode(content);

/** The work as a file. */
export function packed(work: Work, version: string, camera: readonly number[]): { name: string; content: Bytes } {
  const { opening, points, size } = work;
  const told: Told = {
    format: FORMAT, version: VERSION, written_by: `gbpn ${version}`, name: opening.name, size: [...size], camera: [], how: {},
  };
  const files: [string, Uint8Array][] = [];
  if (opening.kind === "OpenScene") {
    told.scene = opening.name;
    told.camera = [...camera];
  } else {
    told.photo = `photo${suffix(opening.name) || ".jpg"}`;
    told.camera = opening.camera;
    files.push([told.photo, opening.picture]);
    if (opening.camera_file && !opening.camera.length) {
      told.camera_file = `camera${opening.camera_type}`;
      files.push([told.camera_file, opening.camera_file]);
    }
  }
  const rows = points.map((p) => `${p.x},${p.y},${p.depth},${p.std}`);
  files.push(["points.csv", text(`${["x,y,depth,std", ...rows].join("\n")}\n`)]);
  files.unshift(["project.json", text(`${JSON.stringify(told, null, 1)}\n`)]);
  return { name: `${plain(opening.name)}${SUFFIX}`, content: zip(files) };
}

/** What a project file holds; throws in words. */
export function unpacked(content: Bytes, usual: Omit<Work, "opening" | "points" | "size">): Work {
  const files = unzip(content);
  const told = JSON.parse(new TextDecoder().decode(file(files, "project.json"))) as Told;
  if (told.format !== FORMAT || told.version !== VERSION) {
    throw new Error(`a project must be of format ${FORMAT} ${VERSION}; got ${told.format} ${told.version}`);
  }
  const [height, width] = told.size;
  const points = parsePoints(new TextDecoder().decode(file(files, "points.csv")), width, height);
  const opening: Opening = told.scene ? { kind: "OpenScene", name: told.scene } : {
    kind: "OpenUpload", name: told.name, depth_type: "", scale: 0, camera: told.camera,
    camera_type: told.camera_file ? suffix(told.camera_file) : "", picture: file(files, told.photo ?? ""),
    ...(told.camera_file ? { camera_file: file(files, told.camera_file) } : {}),
  };
  return { ...usual, opening, points, size: [height, width] };
}

/** The present work as a file to save; null where nothing is open. */
export function savedProject(): { name: string; content: Bytes } | null {
  const work = present();
  const { picture, welcome } = store.state;
  if (!work || !picture) return null;
  isSafe();
  return packed(work, welcome?.version ?? "", picture.camera);
}

export async function openProject(chosen: Blob): Promise<void> {
  const { layer, opacity, defaultDepth, defaultStd } = store.state;
  try {
    restore(unpacked(new Uint8Array(await chosen.arrayBuffer()), { layer, opacity, defaultDepth, defaultStd }));
  } catch (error) {
    store.update({ error: `this project cannot be opened: ${(error as Error).message}`, loading: "" });
  }
}

function suffix(name: string): string {
  return name.includes(".") ? name.slice(name.lastIndexOf(".")).toLowerCase() : "";
}

function file(files: ReadonlyMap<string, Bytes>, name: string): Bytes {
  const found = files.get(name);
  if (!found) throw new Error(`it lacks ${name || "its photo"}`);
  return found;
}

/** Files one after the other, then the list of them. */
function zip(files: readonly [string, Uint8Array][]): Bytes {
  const parts: Uint8Array[] = [];
  const list: Uint8Array[] = [];
  let start = 0;
  for (const [name, content] of files) {
    const facts = new Uint8Array(26);
    const view = new DataView(facts.buffer);
    view.setUint16(0, 20, true);
    view.setUint16(8, 0x21, true); // 1 January 1980, at midnight: files have no other date
    view.setUint32(10, crc32(content), true);
    view.setUint32(14, content.length, true);
    view.setUint32(18, content.length, true);
    view.setUint16(22, name.length, true);
    const local = joined([Uint8Array.of(0x50, 0x4b, 3, 4), facts, text(name), content]);
    const tail = new Uint8Array(14);
    new DataView(tail.buffer).setUint32(10, start, true);
    list.push(joined([Uint8Array.of(0x50, 0x4b, 1, 2, 20, 0), facts, tail, text(name)]));
    parts.push(local);
    start += local.length;
  }
  const end = new Uint8Array(22);
  const view = new DataView(end.buffer);
  const length = list.reduce((sum, part) => sum + part.length, 0);
  view.setUint32(0, 0x06054b50, true);
  view.setUint16(8, files.length, true);
  view.setUint16(10, files.length, true);
  view.setUint32(12, length, true);
  view.setUint32(16, start, true);
  return joined([...parts, ...list, end]);
}

/** Files of a ZIP whose contents are not packed, as `zip` writes it. */
function unzip(content: Bytes): Map<string, Bytes> {
  const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
  const out = new Map<string, Bytes>();
  let at = 0;
  while (at + 30 <= content.length && view.getUint32(at, true) === 0x04034b50) {
    if (view.getUint16(at + 8, true) !== 0) throw new Error("its files are packed: save it from the studio");
    const [size, letters, more] = [view.getUint32(at + 22, true), view.getUint16(at + 26, true), view.getUint16(at + 28, true)];
    const start = at + 30 + letters + more;
    const inside = content.slice(start, start + size);
    if (inside.length !== size || crc32(inside) !== view.getUint32(at + 14, true)) throw new Error("it is damaged");
    out.set(new TextDecoder().decode(content.subarray(at + 30, at + 30 + letters)), inside);
    at = start + size;
  }
  return out;
}
