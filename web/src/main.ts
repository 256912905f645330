// Puts the parts together: tools, theme, states, and the connection.

import { startCanvas } from "./canvas";
import { connection, withoutServer } from "./connection";
import { find, make, say } from "./elements";
import { startKeeping } from "./keeping";
import { startMeasure } from "./measure";
import { startNext } from "./next";
import { startPointing } from "./pointing";
import { startProfile } from "./profile";
import { startSee } from "./see";
import { startStart } from "./start";
import { store } from "./store";
import type { State, Tool } from "./store";
import "./style.css";
import { startTake } from "./take";
import { startUnderstand } from "./understand";
import { shownInSpace, startViews } from "./views";
import { metres, title } from "./words";

function startTools(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
    button.addEventListener("click", () => store.update({ tool: button.dataset.tool as Tool, overlay: null, listened: null }));
  }
}

function startTheme(): void {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const apply = (): void => {
    const chosen = localStorage.getItem("theme");
    root.dataset.theme = chosen ?? (dark.matches ? "dark" : "light");
    store.update({ hover: null });
  };
  for (const button of document.querySelectorAll(".theme")) {
    button.addEventListener("click", () => {
      localStorage.setItem("theme", root.dataset.theme === "dark" ? "light" : "dark");
      apply();
      store.update({ line: store.state.line && { ...store.state.line } });
    });
  }
  dark.addEventListener("change", apply);
  apply();
}

/** Server or engine may do less than the page knows of. */
function showOffers(state: Readonly<State>): void {
  const offers = state.welcome?.offers ?? [];
  find("tab-next").hidden = !offers.includes("suggest");
  find("listen-section").hidden = !offers.includes("listen");
  document.querySelector<HTMLElement>("[data-tool=listen]")!.hidden = !offers.includes("listen");
}

/** Whether there are fingers and no mouse. */
const fingers = matchMedia("(pointer: coarse)");
const wakes = [...document.querySelectorAll<HTMLElement>(".wake")];

function status(state: Readonly<State>): [string, string] {
  if (state.connection === "connecting") return ["connecting …", "busy"];
  if (state.connection !== "open") return [state.reason, "bad"];
  if (state.download) {
    const [done, total] = [state.download.done, state.download.total].map((bytes) => (bytes / 1e6).toFixed(1));
    return [`${done} of ${total} MB: networks, downloaded once`, "busy"];
  }
  if (state.loading) return [`${state.loading} …`, "busy"];
  if (state.ahead > 0) return [`waiting: ${state.ahead} ahead`, "busy"];
  if (state.computing) return [state.maps?.stage === "first" ? "refining …" : "computing …", "busy"];
  if (state.maps) return [`answered in ${Math.max(1, Math.round(1000 * state.maps.seconds))} ms`, "good"];
  return ["ready", "good"];
}

function showState(state: Readonly<State>): void {
  const [text, kind] = status(state);
  for (const chip of [find("status"), find("start-status")]) {
    say(chip, text);
    chip.dataset.kind = kind;
    chip.title = text;
  }
  document.body.dataset.view = state.view;
  document.body.classList.toggle("open", state.picture !== null);
  say(find("open-start"), state.picture ? title(state.picture.name) : "Open");
  for (const button of document.querySelectorAll<HTMLButtonElement>("[data-tool]")) {
    button.setAttribute("aria-pressed", String(button.dataset.tool === state.tool));
  }
  const measurable = Boolean(state.picture?.truth) && state.sceneAnswers;
  const press = fingers.matches ? "Tap" : "Click";
  say(find("invite"), measurable ? `${press} anywhere: that is a measurement` : `${press} anywhere and say how far that is`);
  find("invite").hidden = !state.picture || state.points.length > 0 || state.tool !== "point" || state.view !== "picture";
  find("space-empty").hidden = !state.picture || state.maps !== null || state.view !== "space";
  find("caption").hidden = !state.overlay;
  say(find("caption-text"), state.overlay?.title ?? "");
  say(find("error-text"), state.error);
  find("error").hidden = !state.error;
  for (const wake of wakes) {
    wake.hidden = state.connection !== "asleep" && state.connection !== "refused";
    say(wake, state.connection === "asleep" ? "Wake up" : "Try again");
  }
  const notices = [...(state.picture?.notices ?? []), ...(state.maps?.notices ?? [])];
  const box = find("notices");
  if (box.dataset.shown !== notices.join("\n")) {
    box.dataset.shown = notices.join("\n");
    box.replaceChildren(...[...new Set(notices)].map((notice) => make("p", {}, notice)));
  }
}

function startAnswers(): void {
  connection.on("Welcome", (welcome) => store.update({ welcome }));
  connection.on("Maps", (maps) => {
    store.update({
      maps, computing: maps.stage === "first" || connection.isOvertaken(maps.reply), ahead: 0, error: "",
      ...(maps.std ? { std: maps.std.values } : {}),
      ...(maps.confidence ? { confidence: maps.confidence.values } : {}),
    });
  });
  connection.on("Waiting", (message) => store.update({ ahead: message.ahead }));
  connection.on("Failed", (message) => store.update({ error: message.message, computing: false, loading: "", ahead: 0 }));
  connection.on("Taken", () => store.update({ ahead: 0 }));
  find("error-close").addEventListener("click", () => store.update({ error: "" }));
  for (const wake of wakes) {
    wake.addEventListener("click", () => {
      store.update({ connection: "connecting", reason: "" });
      connection.connect();
    });
  }
}

startViews();
startTools();
startCanvas();
startPointing();
startMeasure();
startSee();
startProfile();
startNext();
startUnderstand();
startTake();
startStart();
startAnswers();
startKeeping();
store.listen(showState);
store.listen((state, changed) => {
  if (changed.has("welcome")) showOffers(state);
});
startTheme();
connection.connect();
// what keeps the page for visits without a network; a failure only means that there will be none
if (withoutServer) navigator.serviceWorker?.register("service-worker.js").catch(() => undefined);

declare global {
  interface Window {
    /** For those who want to look inside: the state, and how long answers took. */
    gbpn: { readonly state: Readonly<State>; readonly latencies: readonly unknown[]; readonly shownInSpace: number; metres: typeof metres };
  }
}
window.gbpn = {
  get state() { return store.state; },
  latencies: connection.latencies,
  get shownInSpace() { return shownInSpace(); },
  metres,
};
