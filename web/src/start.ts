// The start: a gallery of scenes, and pictures of one's own, dropped or chosen, alone, with depth, or as a sequence.

import { connection } from "./connection";
import { find, make, say } from "./elements";
import { forgetRanges } from "./layers";
import { history, setPoints } from "./points";
import type { Opened } from "./protocol";
import { openProject, SUFFIX } from "./project";
import { store } from "./store";
import type { Picture, State } from "./store";
import { title } from "./words";

const PICTURES = /\.(jpe?g|png|webp|bmp|tiff?|heic|heif)$/i;
const DEPTHS = /\.(npy|csv|txt|ply|png)$/i;
const CAMERAS = /\.(json|ya?ml)$|(camera|intrinsics|calib)[^/]*\.txt$/i;
/** Pixels along the width of a photo that is looked at. */
const MOST_SHOWN = 1600;
const gallery = find("gallery");
const start = find("start");

/** A picture with what belongs to it. */
export interface Shot { picture: File; depth: File | null; camera: File | null }

/** Pair files: depth beside a single picture whatever its name, in a sequence by name; a single camera is that of all. */
export function pair(files: readonly File[]): Shot[] {
  const where = (file: File): string => (file.webkitRelativePath || file.name).toLowerCase();
  const isDepth = (file: File): boolean =>
    DEPTHS.test(file.name) && (!PICTURES.test(file.name) || /depth|sparse|lidar/.test(where(file)));
  const pictures = files.filter((file) => PICTURES.test(file.name) && !isDepth(file));
  const cameras = files.filter((file) => CAMERAS.test(file.name));
  const depths = files.filter((file) => isDepth(file) && !CAMERAS.test(file.name));
  const sorted = [...pictures].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
  if (sorted.length === 1) return [{ picture: sorted[0], depth: depths[0] ?? null, camera: cameras[0] ?? null }];
  const stem = (name: string): string => name.replace(/\.[^.]+$/, "").replace(/[_-]?(depth|sparse|lidar)$/i, "");
  return sorted.map((picture) => {
    const own = (file: File): boolean => stem(file.name) === stem(picture.name);
    return {
      picture, depth: depths.find(own) ?? null, camera: cameras.find(own) ?? (cameras.length === 1 ? cameras[0] : null),
    };
  });
}

function suffix(file: File | null): string {
  return file ? file.name.slice(file.name.lastIndexOf(".")).toLowerCase() : "";
}

let shots: Shot[] = [];
let shown = 0;

function numbers(id: string): number[] {
  const text = find<HTMLInputElement>(id).value.trim();
  return text ? text.split(/[\s,;]+/).map(Number) : [];
}

async function openShot(index: number): Promise<void> {
  const shot = shots[index];
  if (!shot) return;
  const size = shot.picture.size + (shot.depth?.size ?? 0) + (shot.camera?.size ?? 0);
  const most = store.state.welcome?.upload_bytes ?? Infinity;
  if (size > most) {
    store.update({ error: `${shot.picture.name} is too large: up to ${Math.round(most / 1e6)} MB can be sent` });
    return;
  }
  const camera = numbers("camera");
  if (camera.length && (camera.length !== 4 || camera.some((n) => !Number.isFinite(n)))) {
    store.update({ error: "a camera is four numbers: fx, fy, cx, cy in pixels" });
    return;
  }
  shown = index;
  store.update({ loading: `reading ${shot.picture.name}`, error: "" });
  connection.open({
    kind: "OpenUpload",
    name: shot.picture.name,
    depth_type: suffix(shot.depth),
    camera_type: suffix(shot.camera),
    scale: numbers("depth-scale")[0] ?? 0,
    camera,
    picture: new Uint8Array(await shot.picture.arrayBuffer()),
    ...(shot.depth ? { depth: new Uint8Array(await shot.depth.arrayBuffer()) } : {}),
    ...(shot.camera ? { camera_file: new Uint8Array(await shot.camera.arrayBuffer()) } : {}),
  });
}

function openFiles(files: readonly File[]): void {
  const project = files.find((file) => file.name.toLowerCase().endsWith(SUFFIX));
  if (project) {
    void openProject(project);
    return;
  }
  shots = pair(files);
  if (!shots.length) {
    store.update({ error: "there was no picture among these files: choose a JPEG or PNG" });
    return;
  }
  void openShot(0);
}

function openScene(name: string): void {
  shots = [];
  store.update({ loading: `opening ${title(name)}`, error: "" });
  connection.open({ kind: "OpenScene", name });
}

/** All files of a drop, folders included. */
async function dropped(event: DragEvent): Promise<File[]> {
  const entries = [...(event.dataTransfer?.items ?? [])].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  const files: File[] = [];
  const walk = async (entry: FileSystemEntry): Promise<void> => {
    if (entry.isFile) {
      files.push(await new Promise<File>((done, fail) => (entry as FileSystemFileEntry).file(done, fail)));
      return;
    }
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const batch = await new Promise<FileSystemEntry[]>((done, fail) => reader.readEntries(done, fail));
      if (!batch.length) return;
      for (const one of batch) await walk(one);
    }
  };
  for (const entry of entries) await walk(entry);
  return files;
}

/** Maps are computed at the size that suits them; the photo itself is shown with its own pixels. */
async function sharpen(picture: Picture): Promise<void> {
  const opening = connection.openedWith;
  if (opening?.kind !== "OpenUpload") return;
  try {
    const photo = new Blob([opening.picture]);
    const full = await createImageBitmap(photo, { imageOrientation: "from-image" });
    const width = Math.min(full.width, MOST_SHOWN);
    const sharp = await createImageBitmap(full, { resizeWidth: width, resizeQuality: "medium" });
    full.close();
    if (store.state.picture === picture && width > picture.width) store.update({ sharp });
    else sharp.close();
  } catch {
    // a format that only the server reads: its own pixels are shown
  }
}

function opened(message: Opened): void {
  const [height, width] = message.picture.shape;
  const picture = {
    name: message.name, width, height, pixels: message.picture.values, truth: message.truth?.values ?? null,
    camera: message.intrinsics, notices: message.notices,
  };
  if (connection.resumes(message)) {
    store.update({ picture, loading: "" });
    return;
  }
  history.clear();
  forgetRanges();
  store.state.sharp?.close();
  void sharpen(picture);
  store.update({
    picture, sharp: null, loading: "", points: [], selected: null, maps: null, std: null, confidence: null, line: null, overlay: null,
    listened: null,
    suggestions: [], outliers: [], clamps: {}, hover: null, tool: "point", cursor: null, computing: false,
    layer: ["error", "truth"].includes(store.state.layer) && !picture.truth ? "depth" : store.state.layer,
  });
  const returned = connection.returned(message);
  if (returned) shots = [];
  const points = returned ?? Array.from(message.x, (x, i) => ({ x, y: message.y[i], depth: message.depth[i], std: 0 }));
  if (points.length) setPoints(points, null);
  showStart(false);
}

/** The start covers everything; what is behind it cannot be reached meanwhile. */
function showStart(shown: boolean): void {
  start.hidden = !shown;
  for (const part of document.querySelectorAll<HTMLElement>("header, main")) part.inert = shown;
  if (shown) gallery.querySelector("button")?.focus();
  else find("picture").focus({ preventScroll: true });
}

function buildGallery(state: Readonly<State>): void {
  gallery.replaceChildren(...(state.welcome?.scenes ?? []).map((name) => {
    const views = make("span", { class: "views" },
      make("img", { src: `api/v1/scenes/${name}.jpg`, alt: "" }), make("img", { src: `api/v1/scenes/${name}/depth.jpg`, alt: "" }));
    const card = make("button", { type: "button", class: "card", "data-scene": name }, views,
      make("span", { class: "title" }, title(name)));
    card.addEventListener("click", () => {
      card.setAttribute("aria-busy", "true");
      openScene(name);
    });
    return card;
  }));
}

/** The picture before or after in a sequence. */
function step(by: number): void {
  const next = shown + by;
  if (shots[next]) void openShot(next);
}

function showSequence(): void {
  find("sequence").hidden = shots.length < 2;
  say(find("sequence-place"), `${shown + 1} / ${shots.length}`);
  find<HTMLButtonElement>("sequence-back").disabled = shown === 0;
  find<HTMLButtonElement>("sequence-on").disabled = shown + 1 >= shots.length;
}

export function startStart(): void {
  const chooser = find<HTMLInputElement>("choose-file");
  const folder = find<HTMLInputElement>("choose-folder");
  find("choose").addEventListener("click", () => chooser.click());
  find("choose-sequence").addEventListener("click", () => folder.click());
  const shooter = find<HTMLInputElement>("take-photo");
  find("shoot").addEventListener("click", () => shooter.click());
  for (const input of [chooser, folder, shooter]) {
    input.addEventListener("change", () => {
      openFiles([...(input.files ?? [])]);
      input.value = "";
    });
  }
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    document.body.classList.add("dropping");
  });
  document.addEventListener("dragleave", (event) => {
    if (!event.relatedTarget) document.body.classList.remove("dropping");
  });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dropping");
    void dropped(event).then(openFiles);
  });
  showStart(true);
  find("open-start").addEventListener("click", () => showStart(true));
  find("close-start").addEventListener("click", () => showStart(false));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !start.hidden && store.state.picture) showStart(false);
    if (event.target === find("picture") && event.key === "PageUp") step(-1);
    if (event.target === find("picture") && event.key === "PageDown") step(1);
  });
  find("sequence-back").addEventListener("click", () => step(-1));
  find("sequence-on").addEventListener("click", () => step(1));
  connection.on("Opened", opened);
  store.listen((state, changed) => {
    if (changed.has("welcome")) buildGallery(state);
    if (changed.has("picture")) showSequence();
    if (!state.loading) for (const card of gallery.querySelectorAll("[aria-busy]")) card.removeAttribute("aria-busy");
    find("close-start").hidden = state.picture === null;
  });
}
