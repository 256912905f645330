// The server behind a socket, as `gbpn studio` runs it.

import type { Channel, Listener } from "./channel";
import { decode, encode } from "./protocol";
import type { FromPage } from "./protocol";

const IDLE = 4000;
const REFUSED = 4001;

export class SocketChannel implements Channel {
  private socket: WebSocket | null = null;

  open(listener: Listener): void {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    const path = new URL("socket", location.href);
    const socket = new WebSocket(`${scheme}://${path.host}${path.pathname}`);
    socket.binaryType = "arraybuffer";
    socket.onmessage = (event) => listener.hear(decode(event.data as ArrayBuffer));
    socket.onclose = ({ code, reason }) => {
      if (code === IDLE) listener.ended({ how: "asleep", reason: "the connection slept after a long pause" });
      else if (code === REFUSED) listener.ended({ how: "refused", reason });
      else listener.ended({ how: "lost", reason: "the server does not answer; trying again" });
    };
    this.socket = socket;
  }

  send(message: FromPage): boolean {
    if (this.socket?.readyState !== WebSocket.OPEN) return false;
    this.socket.send(encode(message));
    return true;
  }
}
