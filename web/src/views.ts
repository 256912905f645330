// Which activity's panel is shown, and whether the picture or the view in space.

import { find } from "./elements";
import type { Space } from "./space";
import { store } from "./store";

export type Activity = "measure" | "see" | "space" | "next" | "understand" | "take";
const tabs = [...document.querySelectorAll<HTMLButtonElement>("[role=tab]")];
let space: Space | null = null;

/** Points or triangles now shown in space. */
export function shownInSpace(): number {
  return space?.shown ?? 0;
}

export function showActivity(name: Activity): void {
  for (const one of tabs) {
    const on = one.id === `tab-${name}`;
    one.setAttribute("aria-selected", String(on));
    one.tabIndex = on ? 0 : -1;
    find(one.getAttribute("aria-controls")!).hidden = !on;
  }
  if (name === "space") showView("space");
  else if (store.state.view === "space") showView("picture");
}

/** three.js is loaded when it is first needed. */
function showView(view: "picture" | "space"): void {
  store.update({ view });
  if (view === "space" && !space) void import("./space").then((module) => (space = module.startSpace()));
}

/** Tabs as a toolbar: arrows move, the shown one is in the order of Tab. */
export function startViews(): void {
  tabs.forEach((tab) => {
    tab.addEventListener("click", () => showActivity(tab.id.slice("tab-".length) as Activity));
    tab.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (step === undefined) return;
      const there = tabs.filter((one) => !one.hidden);
      const next = there[(there.indexOf(tab) + step + there.length) % there.length];
      next.focus();
      next.click();
    });
  });
}
