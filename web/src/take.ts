// The panel “Take away”: files, and Python that repeats the result.

import { connection } from "./connection";
import { download, find, make, say } from "./elements";
import { store } from "./store";
import type { State } from "./store";

const WORDS: Record<string, string> = {
  "depth.png": "Depth, 16-bit PNG", "depth.npy": "Depth, NumPy", "std.npy": "Sigma, NumPy",
  "confidence.npy": "Confidence, NumPy", "mask.png": "Where known, PNG", "cloud.ply": "Point cloud, PLY",
  "cloud.glb": "Point cloud, GLB", "mesh.glb": "Mesh, GLB", "preview.png": "Preview, PNG", "image.png": "The picture, PNG",
  "points.csv": "The points, CSV",
};
const SNIPPET = "repeat.py";
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

export function startTake(): void {
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
    find<HTMLButtonElement>("snippet-show").disabled = !state.points.length;
    if (changed.has("points") || changed.has("picture")) find("snippet-box").hidden = true;
  });
}
