// The panel “Where next?”: pixels whose measurement would help most, and measuring them.

import { connection } from "./connection";
import { find, make, say } from "./elements";
import { typeDepth } from "./measure";
import { depthFor, place, setPoints } from "./points";
import { pointAt, store } from "./store";
import type { State } from "./store";
import { percent } from "./words";

const list = find("suggestion-list");
const count = find<HTMLInputElement>("suggest-count");
const button = find<HTMLButtonElement>("suggest");
const all = find<HTMLButtonElement>("suggest-take");

function ask(): void {
  button.disabled = true;
  say(find("suggest-state"), "weighing every pixel …");
  connection.ask({ kind: "Suggest", count: Math.min(Math.max(Math.round(count.valueAsNumber || 5), 1), 50) });
}

function show(state: Readonly<State>): void {
  list.replaceChildren(...state.suggestions.map((one, index) => {
    const row = make("button", { type: "button", class: "row", "data-index": String(index) },
      make("span", {}, `${index + 1} · ${one.x}, ${one.y}`),
      make("span", { class: "share", style: `--part: ${Math.min(100 * one.gain, 100)}%` }),
      make("span", {}, `−${percent(one.gain)}`));
    row.title = "measure here";
    return row;
  }));
  all.disabled = !state.suggestions.length || !state.picture?.truth;
  all.hidden = !state.picture?.truth;
}

/** Measure all suggested pixels on the dense map. */
function takeAll(): void {
  const { points, suggestions, picture, defaultStd } = store.state;
  const truth = picture?.truth;
  if (!picture || !truth) return;
  const fresh = suggestions.filter((one) => pointAt(points, one.x, one.y) < 0 && truth[one.y * picture.width + one.x] > 0);
  const more = fresh.map((one) => ({ x: one.x, y: one.y, depth: depthFor(one.x, one.y), std: defaultStd }));
  setPoints([...points, ...more], null);
}

export function startNext(): void {
  button.addEventListener("click", ask);
  all.addEventListener("click", takeAll);
  list.addEventListener("click", (event) => {
    const index = (event.target as HTMLElement).closest("button")?.dataset.index;
    const one = index === undefined ? undefined : store.state.suggestions[Number(index)];
    if (!one) return;
    const rest = store.state.suggestions.filter((other) => other !== one);
    place(one.x, one.y);
    store.update({ suggestions: rest });
    if (!store.state.picture?.truth || !store.state.sceneAnswers) typeDepth(); // only a person can say how far it is
  });
  connection.on("Suggested", (message) => {
    button.disabled = false;
    say(find("suggest-state"), "Best first; each as if those before it were measured.");
    const suggestions = Array.from(message.x, (x, i) => ({ x, y: message.y[i], gain: message.gain[i] }));
    store.update({ suggestions });
  });
  connection.on("Failed", () => {
    button.disabled = false;
    say(find("suggest-state"), "");
  });
  store.listen((state, changed) => {
    if (changed.has("suggestions") || changed.has("picture")) show(state);
    if (changed.has("points") && !state.suggestions.length) say(find("suggest-state"), "");
  });
}
