// The panel “Take away”: files, and Python that repeats the result.

import { connection } from "./connection";
import { download, find, make, say } from "./elements";
import { linkOf } from "./keeping";
import { savedProject } from "./project";
import { store } from "./store";
import type { State } from "./store";

const WORDS: Record<string, string> = {
  "depth.png": "Depth, 16-bit PNG", "depth.npy": "Depth, NumPy", "std.npy": "Sigma, NumPy",
  "confidence.npy": "Confidence, NumPy", "mask.png": "Where known, PNG", "cloud.ply": "Point cloud, PLY",
  "cloud.glb": "Point cloud, GLB", "mesh.glb": "Mesh, GLB", "preview.png": "Preview, PNG", "image.png": "The picture, PNG",
  "points.csv": "The points, CSV",
};
const SNIPPET = "repeat.py";
/** Points: addresses have an end. */
const MOST_IN_LINK = 100;
const code = find("snippet");
let snippetAsked = 0;

function build(state: Readonly<State>): void {
  const names = (state.welcome?.exports ?? []).filter((name) => name in WORDS && (name !== "std.npy" || state.welcome?.has_std));
  find("exports").replaceChildren(...names.map((name) => {
    const button = make("button", { type: "button", class: "row", "data-export": name },
      make("span", {}, WORDS[name]), make("span", { class: "faint" }, name));
    return button;
  }));
}

function ask(event: Event): void {
  const name = (event.target as HTMLElement).closest("button")?.dataset.export;
  if (name) connection.ask({ kind: "Export", what: name });
}

function received(name: string, type: string, content: Uint8Array<ArrayBuffer>, reply: number): void {
  if (reply !== snippetAsked) {
    download(name, new Blob([content], { type }));
    return;
  }
  say(code, new TextDecoder().decode(content));
  find("snippet-box").hidden = false;
}

async function copy(): Promise<void> {
  await navigator.clipboard.writeText(code.textContent ?? "");
  const button = find("snippet-copy");
  say(button, "Copied");
  setTimeout(() => say(button, "Copy"), 1500);
}

function saveProject(): void {
  const project = savedProject();
  if (project) download(project.name, new Blob([project.content], { type: "application/zip" }));
}

/** The scene with its points, for others. */
async function copyLink(): Promise<void> {
  const { picture, points } = store.state;
  if (!picture) return;
  await navigator.clipboard.writeText(location.href.split("#")[0] + linkOf(picture.name, points));
  const button = find("copy-link");
  say(button, "Copied");
  setTimeout(() => say(button, "Copy a link"), 1500);
}

export function startTake(): void {
  find("save-project").addEventListener("click", saveProject);
  find("copy-link").addEventListener("click", () => void copyLink());
  find("exports").addEventListener("click", ask);
  find("snippet-show").addEventListener("click", () => {
    snippetAsked = connection.ask({ kind: "Export", what: SNIPPET });
  });
  find("snippet-copy").addEventListener("click", () => void copy());
  find("snippet-save").addEventListener("click", () => {
    download(SNIPPET, new Blob([code.textContent ?? ""], { type: "text/x-python" }));
  });
  connection.on("File", (message) => received(message.name, message.media_type, message.content, message.reply));
  store.listen((state, changed) => {
    if (changed.has("welcome")) build(state);
    for (const button of find("exports").querySelectorAll("button")) {
      button.disabled = !state.picture || (!state.points.length && button.dataset.export !== "image.png");
    }
    find<HTMLButtonElement>("save-project").disabled = !state.picture;
    find("copy-link").hidden = connection.openedWith?.kind !== "OpenScene" || state.points.length > MOST_IN_LINK;
    find<HTMLButtonElement>("snippet-show").disabled = !state.points.length;
    if (changed.has("points") || changed.has("picture")) find("snippet-box").hidden = true;
  });
}
