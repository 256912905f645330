// The view in space: points or mesh, pins of the measurements, the camera's frustum. Rendered only on change.

import {
  BufferAttribute, BufferGeometry, CanvasTexture, LineBasicMaterial, LineSegments, Mesh, MeshBasicMaterial, PerspectiveCamera,
  Points, PointsMaterial, Scene, SRGBColorSpace, Vector3, WebGLRenderer, DoubleSide,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { paint, paletteOf, percentile, spread } from "./colours";
import { distanceBetween } from "./distance";
import type { Place } from "./distance";
import { find, say } from "./elements";
import { kept, meshIndex, placesOf, pointIndex } from "./geometry";
import { rangeOf, valuesOf } from "./layers";
import { store } from "./store";
import type { LayerName, Picture, State } from "./store";
import { metres } from "./words";

const canvas = find<HTMLCanvasElement>("space");
const shape = find<HTMLSelectElement>("space-shape");
const paintBy = find<HTMLSelectElement>("space-paint");
const cut = find<HTMLInputElement>("space-cut");
const size = find<HTMLInputElement>("space-size");

const PIN = 0xff2e63;
const RULER = 0xffb300;
/** Screen pixels: a press that moved less is a click, and what is nearer to it was meant. */
const STILL = 5;
const NEAR = 6;

/** A round dot as a texture, for the heads of pins. */
function disc(): CanvasTexture {
  const dot = document.createElement("canvas");
  dot.width = dot.height = 32;
  const context = dot.getContext("2d")!;
  context.arc(16, 16, 15, 0, 2 * Math.PI);
  context.fillStyle = "#fff";
  context.fill();
  return new CanvasTexture(dot);
}

class Space {
  private readonly renderer = new WebGLRenderer({ canvas, antialias: true, alpha: true });
  private readonly scene = new Scene();
  private readonly camera = new PerspectiveCamera(50, 1, 0.01, 1000);
  private readonly controls = new OrbitControls(this.camera, canvas);
  private readonly geometry = new BufferGeometry();
  private readonly points = new Points(this.geometry, new PointsMaterial({ vertexColors: true, sizeAttenuation: true }));
  private readonly mesh = new Mesh(this.geometry, new MeshBasicMaterial({ vertexColors: true, side: DoubleSide }));
  private readonly pins = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: PIN }));
  private readonly heads = new Points(new BufferGeometry(), new PointsMaterial({ color: PIN, size: 9, sizeAttenuation: false, map: disc(), alphaTest: 0.5 }));
  private readonly frustum = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: 0x8893a5 }));
  private readonly ruler = new LineSegments(new BufferGeometry(), new LineBasicMaterial({ color: RULER, depthTest: false }));
  private readonly rulerEnds = new Points(new BufferGeometry(), new PointsMaterial({ color: RULER, size: 8, sizeAttenuation: false, map: disc(), alphaTest: 0.5, depthTest: false }));
  private ends: Place[] = [];
  private asked = false;
  /** The answer that `ends` are places of. */
  private measured: State["maps"] = null;
  private seen: Picture | null = null;
  /** Points or triangles now shown. */
  shown = 0;

  constructor() {
    this.renderer.outputColorSpace = SRGBColorSpace;
    const parts = [this.points, this.mesh, this.pins, this.heads, this.frustum, this.ruler, this.rulerEnds];
    this.scene.add(...parts);
    for (const part of parts) part.frustumCulled = false;
    this.controls.enableDamping = false;
    this.controls.addEventListener("change", () => this.ask());
    this.controls.listenToKeyEvents(canvas);
    new ResizeObserver(() => this.ask()).observe(canvas);
    let pressed: { x: number; y: number } | null = null;
    canvas.addEventListener("pointerdown", (event) => (pressed = { x: event.clientX, y: event.clientY }));
    canvas.addEventListener("pointerup", (event) => {
      const still = pressed && Math.hypot(event.clientX - pressed.x, event.clientY - pressed.y) < STILL;
      if (still) this.measure(event.offsetX, event.offsetY);
    });
  }

  /** Draw in the next frame. */
  ask(): void {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      const { clientWidth: width, clientHeight: height } = canvas;
      if (!width || !height || store.state.view !== "space") return;
      this.renderer.setPixelRatio(devicePixelRatio || 1);
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
      this.renderer.render(this.scene, this.camera);
    });
  }

  show(state: Readonly<State>): void {
    const { picture, maps } = state;
    this.pins.visible = this.heads.visible = this.frustum.visible = maps !== null;
    if (!picture || !maps) {
      this.geometry.setDrawRange(0, 0);
      this.shown = 0;
      this.ask();
      return;
    }
    if (this.ends.length && this.measured !== maps) this.ends = [];
    this.measured = maps;
    this.showEnds(picture);
    const depth = maps.depth.values;
    const most = cutAt(state);
    const keep = kept(depth, state.std, most);
    const places = placesOf(depth, picture);
    for (let i = 0; i < places.length; i++) if (!Number.isFinite(places[i])) places[i] = 0;
    this.geometry.setAttribute("position", new BufferAttribute(places, 3));
    this.geometry.setAttribute("color", new BufferAttribute(coloursOf(state, picture, depth), 3));
    const mesh = shape.value === "mesh";
    const index = mesh ? meshIndex(depth, keep, picture.width, picture.height) : pointIndex(keep);
    this.geometry.setIndex(new BufferAttribute(index, 1));
    this.geometry.setDrawRange(0, index.length);
    this.points.visible = !mesh;
    this.mesh.visible = mesh;
    this.shown = mesh ? index.length / 3 : index.length;
    const [near, far] = spread(depth, 2, 98);
    (this.points.material as PointsMaterial).size = Number(size.value) * ((near + far) / 2) * (3 / picture.camera[0]);
    this.showPins(state, picture, (near + far) / 2);
    this.showFrustum(picture, near * 0.3);
    if (this.seen !== picture) {
      this.seen = picture;
      this.home();
    }
    this.ask();
  }

  /** A click: the first of two places, or the second one and the distance between them. */
  private measure(left: number, top: number): void {
    const { picture, maps, std } = store.state;
    const pixel = this.nearest(left, top);
    if (!picture || !maps || pixel === null) return;
    const place = {
      x: pixel % picture.width, y: Math.floor(pixel / picture.width), depth: maps.depth.values[pixel], std: std?.[pixel] ?? NaN,
    };
    this.ends = this.ends.length === 1 ? [this.ends[0], place] : [place];
    this.showEnds(picture);
    this.ask();
  }

  /** The shown pixel under a place of the canvas: of those within a few screen pixels the one in front. */
  private nearest(left: number, top: number): number | null {
    const { index } = this.geometry;
    const places = this.geometry.getAttribute("position");
    if (!index || !places) return null;
    const found = { pixel: -1, ahead: Infinity };
    const place = new Vector3();
    const { clientWidth: width, clientHeight: height } = canvas;
    for (let i = 0; i < index.count; i++) {
      place.fromBufferAttribute(places as BufferAttribute, index.getX(i)).project(this.camera);
      const away = Math.hypot(((place.x + 1) / 2) * width - left, ((1 - place.y) / 2) * height - top);
      if (away < NEAR && place.z > -1 && place.z < found.ahead) Object.assign(found, { pixel: index.getX(i), ahead: place.z });
    }
    return found.pixel < 0 ? null : found.pixel;
  }

  private showEnds(picture: Picture): void {
    const [fx, fy, cx, cy] = picture.camera;
    const places = this.ends.flatMap(({ x, y, depth }) => [((x - cx) / fx) * depth, (-(y - cy) / fy) * depth, -depth]);
    this.ruler.geometry.setAttribute("position", new BufferAttribute(Float32Array.from(places), 3));
    this.rulerEnds.geometry = this.ruler.geometry;
    this.ruler.visible = this.ends.length === 2;
    this.rulerEnds.visible = this.ends.length > 0;
    const [one, other] = this.ends;
    const found = other && distanceBetween(one, other, picture.camera);
    say(find("space-distance"), found ? metres(found.metres, found.std) : one ? `${metres(one.depth, one.std)} from the camera; and to …` : "");
  }

  private showPins(state: Readonly<State>, picture: Picture, scale: number): void {
    const [fx, fy, cx, cy] = picture.camera;
    const pins = find<HTMLInputElement>("space-pins").checked ? state.points : [];
    const places = new Float32Array(6 * pins.length);
    const crowd = Math.min(1, Math.sqrt(60 / Math.max(pins.length, 1)));
    const length = 0.06 * scale * crowd;
    const heads = new Float32Array(3 * pins.length);
    pins.forEach((point, i) => {
      const x = ((point.x - cx) / fx) * point.depth;
      const y = (-(point.y - cy) / fy) * point.depth;
      const head = [x, y + length, -point.depth + 0.6 * length];
      places.set([x, y, -point.depth, ...head], 6 * i);
      heads.set(head, 3 * i);
    });
    this.heads.geometry.setAttribute("position", new BufferAttribute(heads, 3));
    (this.heads.material as PointsMaterial).size = (canvas.clientWidth < 500 ? 0.6 : 1) * (2.5 + 6 * crowd);
    this.pins.geometry.setAttribute("position", new BufferAttribute(places, 3));
  }

  private showFrustum(picture: Picture, depth: number): void {
    const [fx, fy, cx, cy] = picture.camera;
    const corners = [[0, 0], [picture.width, 0], [picture.width, picture.height], [0, picture.height]].map(
      ([x, y]) => [((x - cx) / fx) * depth, (-(y - cy) / fy) * depth, -depth],
    );
    const lines = corners.flatMap((corner, i) => [[0, 0, 0], corner, corner, corners[(i + 1) % 4]]);
    this.frustum.geometry.setAttribute("position", new BufferAttribute(Float32Array.from(lines.flat()), 3));
    this.frustum.visible = find<HTMLInputElement>("space-frustum").checked;
  }

  /** Back to a place a little above and beside the camera that took the picture. */
  home(): void {
    const depth = store.state.maps?.depth.values;
    const middle = depth ? percentile(depth.filter((d) => d > 0).sort(), 50) : 2;
    const picture = store.state.picture;
    const narrow = Math.tan((this.camera.fov * Math.PI) / 360) * Math.min(1, canvas.clientWidth / canvas.clientHeight);
    const away = picture ? (0.92 * Math.max(picture.width, picture.height)) / 2 / picture.camera[0] / narrow : 1.2;
    this.controls.target.set(0, 0, -middle);
    this.camera.position.set(0.34 * middle, 0.2 * middle, Math.max(away - 1, 0.2) * middle);
    this.camera.near = middle / 100;
    this.camera.far = middle * 100;
    this.controls.update();
    this.ask();
  }
}

/** The largest sigma that is shown, metres. */
function cutAt(state: Readonly<State>): number {
  const share = Number(cut.value);
  if (!state.std || share >= 1) {
    say(find("space-cut-value"), "all");
    return Infinity;
  }
  const sorted = state.std.filter((value) => Number.isFinite(value)).sort();
  const most = percentile(sorted, 100 * share);
  say(find("space-cut-value"), `σ ≤ ${most.toPrecision(2)} m`);
  return most;
}

function coloursOf(state: Readonly<State>, picture: Picture, depth: Float32Array): Float32Array {
  const out = new Float32Array(3 * depth.length);
  const layer = paintBy.value as LayerName;
  const values = valuesOf(state, layer);
  const bytes = new Uint8ClampedArray(4 * depth.length);
  if (layer !== "image" && values) paint(values, ...rangeOf(state, layer), paletteOf(layer), bytes);
  const step = layer !== "image" && values ? 4 : 3;
  const source = step === 4 ? bytes : picture.pixels;
  for (let i = 0; i < depth.length; i++) {
    for (let c = 0; c < 3; c++) out[3 * i + c] = LINEAR[source[step * i + c]];
  }
  return out;
}

/** sRGB bytes as the linear light that vertex colours are. */
const LINEAR = Float32Array.from({ length: 256 }, (_, i) => {
  const share = i / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
});

/** Begin; called when the view is opened for the first time. */
export function startSpace(): Space {
  const space = new Space();
  const again = (): void => space.show(store.state);
  for (const id of ["space-shape", "space-paint", "space-cut", "space-size", "space-pins", "space-frustum"]) {
    find(id).addEventListener("input", again);
  }
  find("space-home").addEventListener("click", () => space.home());
  store.listen((state, changed) => {
    if (state.view !== "space") return;
    if (["maps", "std", "points", "picture", "view"].some((key) => changed.has(key as keyof State))) space.show(state);
  });
  again();
  return space;
}

export type { Space };
