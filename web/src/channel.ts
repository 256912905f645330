// What the page talks to: one interface, and two that answer, a server behind a socket and an engine in a worker.

import type { FromPage, FromServer } from "./protocol";

/** Why a channel ended: "lost" may come back by itself, the others when the person asks for it. */
export interface Ended { how: "lost" | "asleep" | "refused"; reason: string }

export interface Listener {
  hear(message: FromServer): void;
  ended(why: Ended): void;
  /** Files of the engine that come from the network, bytes; equal numbers mean that all is there. */
  downloading(done: number, total: number): void;
  notice(text: string): void;
}

export interface Channel {
  /** Begin anew; what was before is over. */
  open(listener: Listener): void;
  /** False while nobody listens. */
  send(message: FromPage): boolean;
}
