// The panel “Measure”: the selected point, patterns from a dense map, import and export.

import { connection } from "./connection";
import { download, fill, find, make, say } from "./elements";
import { adopt, change, FARTHEST, history, NEAREST, redo, remove, removeAll, setPoints, undo } from "./points";
import type { PatternName } from "./protocol";
import { store } from "./store";
import type { State } from "./store";
import { showActivity } from "./views";
import { fromSlider, parsePoints, plural, toSlider } from "./words";

const SLOTS = 1000;
const LISTED = 200;
const depth = find<HTMLInputElement>("point-depth");
const slider = find<HTMLInputElement>("point-slider");
const noise = find<HTMLInputElement>("point-noise");
const pattern = find<HTMLSelectElement>("pattern");
const count = find<HTMLInputElement>("pattern-count");
const list = find("point-list");
const number = find<HTMLInputElement>("pattern-number");
let seed = 1;
/** Whether the points are those of a sensor: measuring again then means other ones. */
let fromSensor = false;

function selectedChange(part: { depth?: number; std?: number }, group: string): void {
  const { selected } = store.state;
  if (selected !== null) change(selected, part, group);
}

function most(): number {
  return store.state.welcome?.most_points ?? 20_000;
}

function wanted(): number {
  return Math.min(Math.max(Math.round(number.valueAsNumber || 1), 1), most());
}

/** The slider has moved: the number follows, and what it measures. */
function slid(): void {
  number.value = String(Math.round(fromSlider(Number(count.value) / SLOTS, 1, most())));
  take();
}

function typedNumber(): void {
  number.value = String(wanted());
  count.value = String(SLOTS * toSlider(wanted(), 1, most()));
  take();
}

/** Let the dense map be measured by the chosen pattern. */
function take(): void {
  if (store.state.picture?.truth) connection.takePattern(pattern.value as PatternName, wanted(), seed);
}

async function importPoints(file: Blob): Promise<void> {
  const { picture, welcome } = store.state;
  if (!picture) return;
  try {
    const points = parsePoints(await file.text(), picture.width, picture.height);
    if (points.length > (welcome?.most_points ?? Infinity)) throw new Error(`at most ${welcome?.most_points} points`);
    setPoints(points, null);
  } catch (error) {
    store.update({ error: `these points cannot be read: ${(error as Error).message}` });
  }
}

function exportPoints(): void {
  const lines = store.state.points.map((p) => `${p.x},${p.y},${p.depth},${p.std}`);
  const name = `${store.state.picture?.name ?? "picture"}_points.csv`;
  download(name, new Blob([["x,y,depth,std", ...lines].join("\n") + "\n"], { type: "text/csv" }));
}

/** Let the person type the depth of the selected point. */
export function typeDepth(): void {
  showActivity("measure");
  depth.focus();
  depth.select();
}

function showSelected(state: Readonly<State>): void {
  const point = state.selected === null ? undefined : state.points[state.selected];
  find("point-editor").classList.toggle("off", !point);
  for (const input of [depth, slider, noise]) input.disabled = !point;
  say(find("point-place"), point ? `Point at x ${point.x}, y ${point.y}` : "No point chosen");
  if (!point) {
    depth.value = noise.value = "";
    slider.value = "500";
    return;
  }
  fill(depth, String(Number(point.depth.toPrecision(5))));
  fill(noise, String(point.std));
  if (document.activeElement !== slider) {
    slider.value = String(SLOTS * toSlider(point.depth, NEAREST, FARTHEST));
  }
}

function showList(state: Readonly<State>): void {
  say(find("point-count"), plural(state.points.length, "point"));
  list.replaceChildren(
    ...state.points.slice(0, LISTED).map((point, index) => {
      const text = `${point.x}, ${point.y}`;
      const button = make("button", { type: "button", class: "row", "data-index": String(index) },
        make("span", {}, text), make("span", { class: "number" }, `${point.depth.toPrecision(4)} m`));
      button.setAttribute("aria-pressed", String(index === state.selected));
      return button;
    }),
    ...(state.points.length > LISTED ? [make("p", { class: "faint" }, `and ${state.points.length - LISTED} more`)] : []),
  );
}

function showSources(state: Readonly<State>): void {
  const dense = Boolean(state.picture?.truth);
  find("from-dense").toggleAttribute("hidden", !dense);
  find("own-depth").toggleAttribute("hidden", dense && state.sceneAnswers);
  find<HTMLButtonElement>("undo").disabled = !history.canUndo;
  find<HTMLButtonElement>("redo").disabled = !history.canRedo;
  find<HTMLButtonElement>("clear").disabled = !state.points.length;
  find<HTMLButtonElement>("export-points").disabled = !state.points.length;
}

export function startMeasure(): void {
  depth.addEventListener("input", () => {
    if (depth.valueAsNumber > 0) selectedChange({ depth: depth.valueAsNumber }, "typed");
  });
  depth.addEventListener("change", () => history.settle());
  slider.addEventListener("input", () => {
    const metres = fromSlider(Number(slider.value) / SLOTS, NEAREST, FARTHEST);
    selectedChange({ depth: Number(metres.toPrecision(4)) }, "slider");
  });
  slider.addEventListener("change", () => history.settle());
  noise.addEventListener("change", () => selectedChange({ std: noise.valueAsNumber || 0 }, ""));
  find("point-delete").addEventListener("click", () => {
    if (store.state.selected !== null) remove(store.state.selected);
  });
  list.addEventListener("click", (event) => {
    const index = (event.target as HTMLElement).closest("button")?.dataset.index;
    if (index !== undefined) store.update({ selected: Number(index) });
  });
  count.addEventListener("input", slid);
  count.addEventListener("change", () => history.settle());
  number.addEventListener("change", typedNumber);
  depth.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === "Escape") find("picture").focus({ preventScroll: true });
  });
  pattern.addEventListener("change", take);
  find("pattern-again").addEventListener("click", () => {
    if (fromSensor) seed += 1;
    history.settle();
    take();
  });
  const scene = find<HTMLInputElement>("scene-answers");
  scene.addEventListener("change", () => store.update({ sceneAnswers: scene.checked }));
  const own = find<HTMLInputElement>("default-depth");
  own.addEventListener("change", () => store.update({ defaultDepth: Math.max(own.valueAsNumber || 2, NEAREST) }));
  const file = find<HTMLInputElement>("import-file");
  find("import-points").addEventListener("click", () => file.click());
  file.addEventListener("change", () => {
    if (file.files?.[0]) void importPoints(file.files[0]);
    file.value = "";
  });
  find("export-points").addEventListener("click", exportPoints);
  find("undo").addEventListener("click", undo);
  find("redo").addEventListener("click", redo);
  find("clear").addEventListener("click", removeAll);
  connection.on("Taken", (message) => {
    const points = Array.from(message.x, (x, i) => ({ x, y: message.y[i], depth: message.depth[i], std: 0 }));
    fromSensor = true;
    adopt(points, "pattern");
  });
  store.listen((state, changed) => {
    if (changed.has("points") || changed.has("selected")) showSelected(state);
    if (changed.has("points") || changed.has("selected")) showList(state);
    if (changed.has("welcome")) {
      say(find("pattern-most"), most().toLocaleString("en"));
      number.value = String(Math.round(fromSlider(Number(count.value) / SLOTS, 1, most())));
    }
    if (changed.has("picture") || !state.points.length) fromSensor = false;
    say(find("pattern-again"), fromSensor ? "Other points" : `Measure ${plural(wanted(), "point")}`);
    showSources(state);
  });
}
