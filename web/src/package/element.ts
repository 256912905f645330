// <gbpn-depth src="photo.jpg" points="120,80,2.5 40,200,1.9">: a photo that turns into its depth, with metres under the mouse.
// Attributes: src, points (x,y,metres in pixels of the photo), camera (fx,fy,cx,cy), base (see Settings), alt.
// Events: "completed" (detail: Completion), "failed" (detail: Error), "measured" (detail: x, y, depth, std), a click or Enter.

import { paint, spread } from "../colours";
import { Engine } from "./index";
import type { Camera, Completion, Point } from "./index";

const STYLE = `:host { display: inline-block; position: relative; max-width: 100%; font: 14px/1.4 system-ui, sans-serif; }
canvas { display: block; width: 100%; height: auto; border-radius: 6px; cursor: crosshair; }
canvas:focus-visible { outline: 2px solid #2a5bd0; outline-offset: 2px; }
output { position: absolute; left: 8px; bottom: 8px; padding: 3px 10px; border-radius: 14px; color: #fff; background: rgb(15 20 30 / 78%);
  font-variant-numeric: tabular-nums; }
output:empty { display: none; }`;

export class GbpnDepth extends HTMLElement {
  static readonly observedAttributes = ["src", "points", "camera", "base"];
  private readonly canvas = document.createElement("canvas");
  private readonly told = document.createElement("output");
  private engine: Engine | null = null;
  private answer: Completion | null = null;
  private turn = 0;
  private place: { x: number; y: number } | null = null;

  constructor() {
    super();
    const sheet = new CSSStyleSheet(); // a policy that forbids inline styles allows it
    sheet.replaceSync(STYLE);
    const root = this.attachShadow({ mode: "open" });
    root.adoptedStyleSheets = [sheet];
    root.append(this.canvas, this.told);
    this.canvas.tabIndex = 0;
    this.canvas.setAttribute("role", "img");
    this.told.setAttribute("aria-live", "polite");
    this.canvas.addEventListener("pointermove", (event) => this.read(this.under(event)));
    this.canvas.addEventListener("pointerleave", () => this.read(null));
    this.canvas.addEventListener("click", (event) => this.picked(this.under(event)));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  get completion(): Completion | null {
    return this.answer;
  }

  connectedCallback(): void {
    void this.show();
  }

  disconnectedCallback(): void {
    this.turn += 1;
    this.engine?.close();
    this.engine = null;
  }

  attributeChangedCallback(name: string): void {
    if (!this.isConnected) return;
    if (name === "base") {
      this.engine?.close();
      this.engine = null;
    }
    void this.show();
  }

  /** Photo and points as the attributes say now; a later change overtakes an earlier one. */
  private async show(): Promise<void> {
    const turn = ++this.turn;
    await Promise.resolve(); // attributes that are set together are one change
    const src = this.getAttribute("src");
    if (turn !== this.turn || !src) return;
    try {
      const response = await fetch(new URL(src, document.baseURI));
      if (!response.ok) throw new Error(`${src} answered ${response.status}`);
      const photo = await response.blob();
      const bitmap = await createImageBitmap(photo, { imageOrientation: "from-image" });
      if (turn !== this.turn) return;
      this.answer = null;
      [this.canvas.width, this.canvas.height] = [bitmap.width, bitmap.height];
      this.canvas.getContext("2d")!.drawImage(bitmap, 0, 0);
      this.canvas.setAttribute("aria-label", this.getAttribute("alt") ?? "Photo");
      const points = numbers(this.getAttribute("points"), 3).map(([x, y, depth]): Point => ({ x, y, depth }));
      if (!points.length) return;
      this.told.textContent = "computing …";
      const [camera = null] = numbers(this.getAttribute("camera"), 4) as unknown as Camera[];
      const opened = await this.started().open(photo, camera, points.length);
      const answer = await opened.complete(points);
      if (turn === this.turn) this.completed(answer);
    } catch (error) {
      if (turn !== this.turn) return;
      this.told.textContent = error instanceof Error ? error.message : String(error);
      this.dispatchEvent(new CustomEvent("failed", { detail: error }));
    }
  }

  private started(): Engine {
    const base = this.getAttribute("base");
    this.engine ??= new Engine({
      ...(base === null ? {} : { base }),
      downloading: (done, total) => {
        this.told.textContent = done < total ? `${(done / 1e6).toFixed(1)} of ${(total / 1e6).toFixed(1)} MB: networks, once` : "computing …";
      },
    });
    return this.engine;
  }

  private completed(answer: Completion): void {
    this.answer = answer;
    const [low, high] = spread(answer.depth);
    const image = new ImageData(answer.width, answer.height);
    paint(answer.depth, low, high, "depth", image.data);
    [this.canvas.width, this.canvas.height] = [answer.width, answer.height];
    this.canvas.getContext("2d")!.putImageData(image, 0, 0);
    const name = this.getAttribute("alt") ?? "Photo";
    this.canvas.setAttribute("aria-label", `${name}: depth from ${low.toFixed(2)} to ${high.toFixed(2)} metres. Arrow keys read it.`);
    this.told.textContent = "";
    this.dispatchEvent(new CustomEvent("completed", { detail: answer }));
  }

  private under(event: MouseEvent): { x: number; y: number } {
    const box = this.canvas.getBoundingClientRect();
    const within = (share: number, length: number): number => Math.min(Math.max(Math.floor(share * length), 0), length - 1);
    return {
      x: within((event.clientX - box.left) / box.width, this.canvas.width),
      y: within((event.clientY - box.top) / box.height, this.canvas.height),
    };
  }

  private at({ x, y }: { x: number; y: number }): { x: number; y: number; depth: number; std: number } | null {
    if (!this.answer) return null;
    const index = y * this.answer.width + x;
    return { x, y, depth: this.answer.depth[index], std: this.answer.std?.[index] ?? NaN };
  }

  /** Metres where the mouse or the keys are. */
  private read(place: { x: number; y: number } | null): void {
    if (!this.answer) return;
    const found = place && this.at(place);
    this.told.textContent = !found ? "" : Number.isFinite(found.std) ? `${found.depth.toFixed(2)} ± ${found.std.toFixed(2)} m`
      : Number.isFinite(found.depth) ? `${found.depth.toFixed(2)} m` : "not known";
  }

  private picked(place: { x: number; y: number }): void {
    const found = this.at(place);
    if (found) this.dispatchEvent(new CustomEvent("measured", { detail: found }));
  }

  private key(event: KeyboardEvent): void {
    const steps: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const { width, height } = this.canvas;
    const place = this.place ?? { x: width >> 1, y: height >> 1 };
    if (event.key === "Enter") this.picked(place);
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const by = event.shiftKey ? 10 : 1;
    this.place = {
      x: Math.min(Math.max(place.x + by * step[0], 0), width - 1), y: Math.min(Math.max(place.y + by * step[1], 0), height - 1),
    };
    this.read(this.place);
  }
}

/** "1,2,3 4,5,6" as rows of `count` numbers; anything else is an error that says so. */
function numbers(text: string | null, count: number): number[][] {
  return (text ?? "").trim().split(/\s+/).filter(Boolean).map((word) => {
    const row = word.split(",").map(Number);
    if (row.length !== count || !row.every(Number.isFinite)) throw new Error(`wanted ${count} numbers with commas between; got “${word}”`);
    return row;
  });
}

if (!customElements.get("gbpn-depth")) customElements.define("gbpn-depth", GbpnDepth);

declare global {
  interface HTMLElementTagNameMap { "gbpn-depth": GbpnDepth }
}
