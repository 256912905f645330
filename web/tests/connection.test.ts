import { beforeEach, describe, expect, it, vi } from "vitest";
import { Connection } from "../src/connection";
import { SocketChannel } from "../src/socket";
import { decode, encode, VERSION, type FromPage, type Opened } from "../src/protocol";
import { store } from "../src/store";

/** The browser's socket, with the server's side in the hands of the test. */
class Socket {
  static readonly OPEN = 1;
  static all: Socket[] = [];
  readyState = Socket.OPEN;
  binaryType = "";
  sent: FromPage[] = [];
  onmessage: (event: { data: ArrayBuffer }) => void = () => {};
  onclose: (event: { code: number; reason: string }) => void = () => {};
  constructor() { Socket.all.push(this); }
  send(data: ArrayBuffer): void { this.sent.push(decode(data) as never); }
  tell(message: object): void { this.onmessage({ data: encode(message as never) as ArrayBuffer }); }
}

const openedA = { kind: "Opened", name: "A", intrinsics: [1, 1, 0, 0], notices: [], picture: null, truth: null };

function opened(name: string, reply: number): object {
  const picture = { shape: [1, 1, 3], values: new Uint8Array(3) };
  const none = { x: new Int32Array(0), y: new Int32Array(0), depth: new Float32Array(0) };
  return { ...openedA, ...none, picture, name, reply };
}

describe("a connection that broke", () => {
  let connection: Connection;
  let shown: string[];

  beforeEach(() => {
    Socket.all = [];
    vi.useFakeTimers();
    vi.stubGlobal("WebSocket", Socket);
    vi.stubGlobal("location", { protocol: "http:", href: "http://127.0.0.1/" });
    vi.stubGlobal("window", {});
    vi.stubGlobal("requestAnimationFrame", (run: () => void) => run());
    shown = [];
    connection = new Connection(new SocketChannel());
    connection.on("Opened", (message: Opened) => {
      shown.push(message.name);
      connection.resumes(message);
    });
    connection.connect();
    welcome();
    const id = connection.open({ kind: "OpenScene", name: "A" } as never);
    server().tell(opened("A", id));
    store.update({ points: [{ x: 1, y: 2, depth: 3, std: 0 }] });
    server().onclose({ code: 1006, reason: "" });
    vi.runAllTimers();
  });

  const server = (): Socket => Socket.all[Socket.all.length - 1];
  const welcome = (): void => server().tell({ kind: "Welcome", protocol: VERSION, reply: 0, scenes: [], weights: "", stages: 2 });
  const asked = (kind: string): FromPage[] => server().sent.filter((message) => message.kind === kind);

  it("opens the picture again, with its points", () => {
    welcome();
    const [again] = asked("OpenScene");
    server().tell(opened("A", again.id));
    expect(shown).toEqual(["A", "A"]);
    expect(asked("SetPoints")).toHaveLength(1);
  });

  it("forgets picture and points when another is opened before the first is back", () => {
    welcome();
    const [again] = asked("OpenScene");
    const other = connection.open({ kind: "OpenScene", name: "B" } as never);
    server().tell(opened("A", again.id));
    server().tell(opened("B", other));
    expect(shown).toEqual(["A", "B"]);
    expect(asked("SetPoints")).toHaveLength(0);
  });
});
