// The panel “Understand”: the film of the sweeps, whom a pixel listens to, other answers, outliers.

import { connection } from "./connection";
import { find, make, say } from "./elements";
import { setPoints } from "./points";
import type { FilmStill, OtherAnswer } from "./protocol";
import { pointAt, store } from "./store";
import type { State } from "./store";
import { metres, percent, SWEEPS } from "./words";

const FRAME = 420;
const scrub = find<HTMLInputElement>("film-scrub");
const play = find<HTMLButtonElement>("film-play");
let film: FilmStill[] = [];
let asked = 0;
let timer: number | undefined;

function caption(still: FilmStill): string {
  return `Stage ${still.stage} · iteration ${still.iteration} · ${SWEEPS[still.part] ?? still.part}`;
}

function showStill(number: number): void {
  const still = film[number];
  if (!still) return;
  scrub.value = String(number);
  say(find("film-caption"), `${number + 1} of ${film.length}`);
  store.update({ overlay: { title: caption(still), kind: "film", values: still.depth.values }, listened: null, view: "picture" });
}

function stop(): void {
  window.clearInterval(timer);
  timer = undefined;
  say(play, "Play");
}

function start(from: number): void {
  let number = from;
  say(play, "Pause");
  showStill(number);
  timer = window.setInterval(() => {
    number += 1;
    if (number >= film.length) stop();
    else showStill(number);
  }, FRAME);
}

function pressed(): void {
  if (timer !== undefined) {
    stop();
  } else if (film.length && Number(scrub.value) < film.length - 1) {
    start(Number(scrub.value));
  } else if (film.length) {
    start(0);
  } else if (needsPoints()) {
    say(find("film-caption"), "filming …");
    asked = connection.ask({ kind: "Film" });
  }
}

function needsPoints(): boolean {
  const some = store.state.points.length > 0;
  if (!some) store.update({ error: "measure a point first: without one there is nothing to explain" });
  return some;
}

function received(still: FilmStill): void {
  if (still.reply !== asked) return;
  film.push(still);
  if (film.length < still.count) return;
  scrub.max = String(film.length - 1);
  scrub.disabled = false;
  start(0);
}

/** The film belongs to the points it was made with. */
function forget(): void {
  stop();
  film = [];
  asked = 0;
  scrub.disabled = true;
  scrub.value = "0";
  say(find("film-caption"), "");
  say(find("compare-result"), "");
  say(find("outlier-result"), "");
}

/** Requests of this panel that failed are not waited for any longer. */
function failed(): void {
  for (const id of ["film-caption", "compare-result", "outlier-result"]) {
    if (find(id).textContent?.endsWith("…")) say(find(id), "");
  }
}

const OTHERS: Record<OtherAnswer, string> = { first: "the first stage alone", exact: "the exact solution" };

function compare(to: OtherAnswer): void {
  if (!needsPoints()) return;
  stop();
  say(find("compare-result"), to === "exact" ? "solving exactly …" : "comparing …");
  connection.ask({ kind: "Compare", to });
}

function compared(to: OtherAnswer, other: Float32Array): void {
  const depth = store.state.maps?.depth.values;
  if (!depth) return;
  const difference = other.map((value, i) => Math.abs(value - depth[i]));
  const known = difference.filter((value) => Number.isFinite(value));
  const mean = known.reduce((sum, value) => sum + value, 0) / Math.max(known.length, 1);
  const most = known.reduce((a, b) => Math.max(a, b), 0);
  say(find("compare-result"), `This answer and ${OTHERS[to]} differ by ${metres(mean)} on average, ${metres(most)} at most.`);
  const title = `Difference to ${OTHERS[to]}`;
  store.update({ overlay: { title, kind: "difference", values: difference, other }, listened: null });
  layBeside();
}

const beside = find<HTMLInputElement>("compare-beside");

/** Show the compared answers as their difference, or on both sides of the divider. */
function layBeside(): void {
  const overlay = store.state.overlay;
  if (!overlay?.other) return;
  store.update({ overlay: { ...overlay, kind: beside.checked ? "beside" : "difference" } });
}

function showOutliers(state: Readonly<State>): void {
  const list = find("outlier-list");
  list.replaceChildren(...state.outliers.slice(0, 50).map((one) => {
    const index = pointAt(state.points, one.x, one.y);
    const row = make("button", { type: "button", class: "row", title: "choose this point" },
      make("span", {}, `${metres(state.points[index]?.depth ?? NaN)}, the others say ${metres(one.expected)}`),
      make("span", {}, `${one.sigmas.toFixed(one.sigmas < 100 ? 1 : 0)} σ`));
    row.addEventListener("click", () => store.update({ selected: index < 0 ? null : index }));
    return row;
  }));
  find<HTMLButtonElement>("outlier-drop").disabled = !state.outliers.length;
}

function dropOutliers(): void {
  const { points, outliers } = store.state;
  const bad = new Set(outliers.map((one) => `${one.x} ${one.y}`));
  setPoints(points.filter((point) => !bad.has(`${point.x} ${point.y}`)), null);
}

function showListened(state: Readonly<State>): void {
  const heard = state.listened;
  const order = heard ? [...heard.shares.keys()].sort((a, b) => Math.abs(heard.shares[b]) - Math.abs(heard.shares[a])) : [];
  find("listen-result").replaceChildren(...order.slice(0, 5).flatMap((i) => {
    const point = state.points[i];
    const share = heard!.shares[i];
    if (!point || Math.abs(share) < 0.001) return [];
    const line = make("span", { class: "share", style: `--part: ${Math.min(100 * Math.abs(share), 100)}%` });
    return [make("p", { class: "row" }, make("span", {}, metres(point.depth)), line, make("span", {}, percent(share)))];
  }));
}

export function startUnderstand(): void {
  play.addEventListener("click", pressed);
  scrub.addEventListener("input", () => {
    stop();
    showStill(Number(scrub.value));
  });
  connection.on("FilmStill", received);
  connection.on("Failed", failed);
  for (const to of ["first", "exact"] as const) find(`compare-${to}`).addEventListener("click", () => compare(to));
  beside.addEventListener("change", layBeside);
  connection.on("Compared", (message) => compared(message.to, message.depth.values));
  find("overlay-clear").addEventListener("click", () => {
    stop();
    store.update({ overlay: null, listened: null });
  });
  find("outlier-find").addEventListener("click", () => {
    if (!needsPoints()) return;
    say(find("outlier-result"), "asking every point what the others say of it …");
    connection.ask({ kind: "FindOutliers", limit: find<HTMLInputElement>("outlier-limit").valueAsNumber || 4 });
  });
  find("outlier-drop").addEventListener("click", dropOutliers);
  connection.on("Outliers", (message) => {
    const outliers = Array.from(message.x, (x, i) => ({
      x, y: message.y[i], expected: message.expected[i], sigmas: message.sigmas[i],
    }));
    say(find("outlier-result"), outliers.length ? `${outliers.length} found` : "None: all points agree.");
    store.update({ outliers });
  });
  connection.on("Listened", (message) => {
    stop();
    // faint voices are lifted by a square root, or one would see the loudest only
    const values = message.strength.values.map((value) => Math.sqrt(value));
    store.update({ listened: message, overlay: { title: `What pixel ${message.x}, ${message.y} listens to`, kind: "listening", values } });
  });
  store.listen((state, changed) => {
    if (changed.has("points") || changed.has("picture")) forget();
    if (changed.has("outliers")) showOutliers(state);
    if (changed.has("listened")) showListened(state);
    find("compare-beside-box").hidden = !state.overlay?.other;
    if (changed.has("welcome") && state.welcome) {
      const { learned_edges, has_exact, model } = state.welcome;
      if (learned_edges) say(find("film-ways"), "left to right, down, right to left, up and along learned edges");
      const why = learned_edges ? "has learned edges" : "changes from iteration to iteration";
      say(find("compare-note"), `No exact solution: the field of these weights (${model}) ${why}, so it is no single energy to minimise.`);
      find("compare-note").hidden = has_exact;
    }
    const exact = find<HTMLButtonElement>("compare-exact");
    exact.disabled = !state.welcome?.has_exact;
    find("compare-first").toggleAttribute("hidden", (state.welcome?.stages ?? 1) < 2);
  });
}
