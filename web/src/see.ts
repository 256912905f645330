// The panel “See”: which layer, how opaque, split, colour bars; and the line that speaks of the pixel under the mouse.

import { overlayRange } from "./canvas";
import { paletteOf, PALETTES } from "./colours";
import { fill, find, make, say } from "./elements";
import { about, rangeOf, rmse, valuesOf } from "./layers";
import { LAYERS, pointAt, store } from "./store";
import type { LayerName, State } from "./store";
import { metres, percent } from "./words";

const NAMES: Record<LayerName, string> = {
  depth: "Depth", std: "Sigma", confidence: "Confidence", error: "Error", truth: "True depth", image: "Image",
};
const low = find<HTMLInputElement>("range-low");
const high = find<HTMLInputElement>("range-high");
const opacity = find<HTMLInputElement>("opacity");
const split = find<HTMLInputElement>("split");
const splitLayer = find<HTMLSelectElement>("split-layer");
const bar = find<HTMLCanvasElement>("bar");

function available(state: Readonly<State>, layer: LayerName): boolean {
  if (layer === "error" || layer === "truth") return Boolean(state.picture?.truth);
  if (layer === "std") return Boolean(state.welcome?.has_std);
  return true;
}

function buildChoices(): void {
  find("layers").replaceChildren(...LAYERS.map((layer) => {
    const input = make("input", { type: "radio", name: "layer", value: layer, id: `layer-${layer}` });
    input.addEventListener("change", () => store.update({ layer, overlay: null }));
    return make("label", { for: `layer-${layer}` }, input, make("span", {}, NAMES[layer]));
  }));
  splitLayer.replaceChildren(...LAYERS.map((layer) => make("option", { value: layer }, NAMES[layer])));
}

function showChoices(state: Readonly<State>): void {
  for (const layer of LAYERS) {
    const input = find<HTMLInputElement>(`layer-${layer}`);
    input.checked = layer === state.layer;
    input.disabled = !available(state, layer);
    input.parentElement?.classList.toggle("off", input.disabled);
  }
  splitLayer.value = state.splitLayer;
  splitLayer.disabled = !state.split;
  split.checked = state.split;
  fill(opacity, String(state.opacity));
}

/** The layer whose colours the bar explains. */
function barLayer(state: Readonly<State>): LayerName {
  if (state.view === "space") return find<HTMLSelectElement>("space-paint").value as LayerName;
  if (state.overlay?.kind === "film" || state.overlay?.kind === "beside") return "depth";
  return state.layer === "image" && state.split ? state.splitLayer : state.layer;
}

function showBar(state: Readonly<State>): void {
  const layer = barLayer(state);
  const values = valuesOf(state, layer);
  const overlay = state.view === "space" ? null : state.overlay;
  const shown = overlay ? overlay.kind !== "listening" : layer !== "image" && values !== null;
  find("bar-box").classList.toggle("empty", !shown);
  if (!shown) return;
  const film = overlay?.kind === "film" || overlay?.kind === "beside";
  const [from, to] = overlay && !film ? overlayRange(overlay.values, overlay.kind) : rangeOf(state, film ? "depth" : layer);
  const unit = !overlay && layer === "confidence" ? "" : ", m";
  say(find("bar-name"), `${overlay ? (film ? NAMES.depth : "Difference") : NAMES[layer]}${unit}`);
  for (const [end, value] of [[low, from], [high, to]] as const) {
    fill(end, String(Number(value.toPrecision(value < 0.1 ? 2 : 3)))); // as many digits as the field shows
  }
  const fixed = overlay !== null && !film;
  low.disabled = high.disabled = fixed;
  find<HTMLButtonElement>("range-free").disabled = fixed || !(layer in state.clamps);
  const colours = PALETTES[overlay ? (film ? "depth" : "error") : paletteOf(layer)];
  const context = bar.getContext("2d")!;
  const pixels = context.createImageData(256, 1);
  for (let i = 0; i < 256; i++) {
    pixels.data.set([colours[3 * i], colours[3 * i + 1], colours[3 * i + 2], 255], 4 * i);
  }
  context.putImageData(pixels, 0, 0);
}

function clampRange(): void {
  const layer = barLayer(store.state);
  if (low.valueAsNumber < high.valueAsNumber) {
    store.update({ clamps: { ...store.state.clamps, [layer]: [low.valueAsNumber, high.valueAsNumber] } });
  }
}

function freeRange(): void {
  const clamps = { ...store.state.clamps };
  delete clamps[barLayer(store.state)];
  store.update({ clamps });
}

function showReadout(state: Readonly<State>): void {
  const pixel = state.hover;
  const target = find("readout");
  if (!pixel || !state.picture) {
    const error = valuesOf(state, "error");
    say(target, error ? `RMSE ${rmse(error).toFixed(3)} m against the true depth` : "");
    say(find("readout-more"), "");
    return;
  }
  const { depth, std, truth, confidence } = about(pixel.x, pixel.y);
  const more = [`x ${pixel.x}, y ${pixel.y}`];
  const shown = state.overlay?.values[pixel.y * state.picture.width + pixel.x] ?? NaN;
  if (state.overlay?.kind === "film") {
    say(target, metres(shown));
    say(find("readout-more"), [...more, `in the end ${metres(depth, std)}`].join(" · "));
    return;
  }
  say(target, metres(depth, std));
  if (state.overlay?.other) more.push(`differs by ${metres(shown)}`);
  const index = pointAt(state.points, pixel.x, pixel.y);
  if (index >= 0) more.push(`measured ${metres(state.points[index].depth)}`);
  if (Number.isFinite(truth)) more.push(`true ${metres(truth)}`);
  if (Number.isFinite(confidence)) more.push(`confidence ${percent(confidence)}`);
  say(find("readout-more"), more.join(" · "));
}

export function startSee(): void {
  buildChoices();
  opacity.addEventListener("input", () => store.update({ opacity: Number(opacity.value) }));
  split.addEventListener("change", () => store.update({ split: split.checked, overlay: null }));
  splitLayer.addEventListener("change", () => store.update({ splitLayer: splitLayer.value as LayerName }));
  const at = find<HTMLInputElement>("split-at");
  at.addEventListener("input", () => store.update({ splitAt: Number(at.value) }));
  const marks = find<HTMLInputElement>("show-points");
  marks.addEventListener("change", () => store.update({ showPoints: marks.checked }));
  find("space-paint").addEventListener("input", () => showBar(store.state));
  low.addEventListener("change", clampRange);
  high.addEventListener("change", clampRange);
  find("range-free").addEventListener("click", freeRange);
  store.listen((state) => {
    showChoices(state);
    showBar(state);
    showReadout(state);
    fill(at, String(state.splitAt));
    at.disabled = !state.split;
  });
}
