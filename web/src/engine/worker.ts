// The engine in a worker: it loads the networks and the core, then talks with the page as the server would.

import type { FromPage, FromServer } from "../protocol";
import { Completer } from "./completer";
import { Conversation, inWords } from "./conversation";
import { Core } from "./core";
import { CutOff, Downloads, readSite } from "./downloads";
import type { Site } from "./downloads";
import { readManifest } from "./manifest";
import { Network, prepareRuntime } from "./networks";

/** To the worker: where the site is, then what a page says. */
export type ToWorker = { kind: "Start"; base: string; threads: number } | FromPage;
/** From the worker: besides what a server says, how the download goes and what ended it. */
export type FromWorker =
  | FromServer
  | { kind: "Download"; done: number; total: number }
  | { kind: "Ready"; notKept: boolean }
  | { kind: "Ended"; reason: string; cut: boolean };

const send = (message: FromWorker): void => (self as unknown as Worker).postMessage(message);
const end = (error: unknown): void => send({ kind: "Ended", reason: inWords(error), cut: error instanceof CutOff });
let conversation: Conversation | null = null;

async function start(base: string, threads: number): Promise<void> {
  const site = await readSite(base);
  const downloads = new Downloads(base);
  const manifest = readManifest(new TextDecoder().decode(await downloads.one(site.manifest)));
  const completer = loaded(site, downloads, base, threads);
  completer.catch(end);
  const { calibration, networks } = manifest;
  const stages = networks.some((network) => network.name === "second") ? 2 : 1;
  conversation = new Conversation(site, downloads, completer, calibration !== null, stages, send);
  conversation.welcome();
  await completer;
  send({ kind: "Ready", notKept: downloads.notKept });
}

async function loaded(site: Site, downloads: Downloads, base: string, threads: number): Promise<Completer> {
  const told = (done: number, total: number): void => send({ kind: "Download", done, total });
  const files = await downloads.all([site.runtime, site.core, site.manifest, ...site.networks], told);
  const [runtime, core, description, ...networks] = files;
  const manifest = readManifest(new TextDecoder().decode(description));
  prepareRuntime(runtime.buffer, new URL(site.script, base).href, threads);
  const models: Network[] = [];
  for (const file of manifest.networks) { // one after the other: the runtime starts once
    const index = site.networks.findIndex((one) => one.path.endsWith(`/${file.file}`));
    if (index < 0) throw new Error(`the site lacks ${file.file}: write it again with gbpn studio --static`);
    models.push(await Network.load(file, networks[index]));
  }
  return new Completer(manifest, models, await Core.load(core));
}

self.addEventListener("message", (event: MessageEvent<ToWorker>) => {
  const message = event.data;
  if (message.kind === "Start") {
    start(message.base, message.threads).catch(end);
  } else {
    conversation?.receive(message);
  }
});
