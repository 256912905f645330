// The engine in a worker, as a site without a server has it.

import type { Channel, Listener } from "./channel";
import type { FromWorker, ToWorker } from "./engine/worker";
import type { FromPage } from "./protocol";

/** A module of one function with vectors of 128 bits: browsers that take it have what the engine needs. */
const VECTORS = Uint8Array.of(
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11,
);
const MOST_THREADS = 4;

export class WorkerChannel implements Channel {
  private worker: Worker | null = null;

  /** `start` begins the worker's code (engine/worker.ts, wherever it was built to); `base`: the folder of site.json. */
  constructor(private readonly start: () => Worker, private readonly base: () => string) {}

  open(listener: Listener): void {
    this.worker?.terminate();
    this.worker = null;
    const lacks = lacking();
    if (lacks) {
      queueMicrotask(() => listener.ended({ how: "refused", reason: lacks }));
      return;
    }
    const worker = this.start();
    const end = (reason: string): void => {
      worker.terminate();
      if (this.worker !== worker) return;
      this.worker = null;
      listener.ended({ how: "refused", reason });
    };
    worker.onmessage = (event: MessageEvent<FromWorker>) => {
      const message = event.data;
      if (message.kind === "Download") listener.downloading(message.done, message.total);
      else if (message.kind === "Ended") end(message.cut ? cutOff() : message.reason);
      else if (message.kind === "Ready") {
        listener.downloading(1, 1);
        if (message.notKept) listener.notice("This browser keeps no files (its storage is full or switched off): the next visit downloads the networks again.");
      } else listener.hear(message);
    };
    worker.onerror = (event) => end(`the engine stopped (${event.message || "no reason given"})`);
    this.worker = worker;
    const threads = crossOriginIsolated ? Math.min(navigator.hardwareConcurrency || 1, MOST_THREADS) : 1;
    worker.postMessage({ kind: "Start", base: this.base(), threads } satisfies ToWorker);
  }

  send(message: FromPage): boolean {
    this.worker?.postMessage(message satisfies ToWorker);
    return this.worker !== null;
  }

  /** The worker and its memory are gone. */
  close(): void {
    this.worker?.terminate();
    this.worker = null;
  }
}

/** What this browser lacks, in words. */
function lacking(): string {
  if (typeof WebAssembly !== "object") {
    return "this browser has WebAssembly switched off, which computes here: switch it on, or use gbpn studio on your computer";
  }
  if (!WebAssembly.validate(VECTORS) || typeof DecompressionStream === "undefined" || typeof OffscreenCanvas === "undefined") {
    return "this browser is too old to compute here: use one of 2023 or later";
  }
  return "";
}

function cutOff(): string {
  return navigator.onLine ? "the download was cut: what has come is kept, try again"
    : "offline, and the networks are not here yet: try again with a connection";
}
