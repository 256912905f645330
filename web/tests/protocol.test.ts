import { describe, expect, it } from "vitest";
import { isNewer } from "../src/connection";
import { decode, encode, VERSION } from "../src/protocol";
import type { FromPage, Maps } from "../src/protocol";
import frames from "./frames.json";

function bytes(hex: string): ArrayBuffer {
  return Uint8Array.from(hex.match(/../g) ?? [], (pair) => parseInt(pair, 16)).buffer;
}

/** Arrays as the fixture writes them: {type, shape, values}. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return { type: "u1", shape: [value.length], values: [...value] };
  if (value instanceof Int32Array) return { type: "i4", shape: [value.length], values: [...value] };
  if (value instanceof Float32Array) return { type: "f4", shape: [value.length], values: [...value] };
  if (value !== null && typeof value === "object" && "shape" in value && "values" in value) {
    return { ...(plain(value.values) as object), shape: value.shape };
  }
  return value;
}

function array(value: { type: string; values: number[] }): unknown {
  const kinds = { u1: Uint8Array, i4: Int32Array, f4: Float32Array };
  return kinds[value.type as "u1"].from(value.values);
}

describe("protocol", () => {
  it("is of the server's version", () => expect(VERSION).toBe(frames.version));

  it.each(frames.server)("reads $fields.kind as the server means it", ({ frame, fields }) => {
    const read = Object.fromEntries(Object.entries(decode(bytes(frame))).map(([name, value]) => [name, plain(value)]));
    expect(read).toEqual(fields);
  });

  it.each(frames.page)("writes $fields.kind as the server reads it", ({ frame, fields }) => {
    const message = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [
        name, value !== null && typeof value === "object" && "type" in value ? array(value as never) : value,
      ]),
    );
    const hex = [...new Uint8Array(encode(message as unknown as FromPage))].map((b) => b.toString(16).padStart(2, "0"));
    expect(hex.join("")).toBe(frame);
  });
});

describe("answers", () => {
  const maps = (reply: number, stage: "first" | "last"): Maps => ({ reply, stage }) as Maps;
  it("never let an older one overwrite a newer one", () => {
    expect(isNewer(null, maps(3, "first"), 1)).toBe(true);
    expect(isNewer(maps(3, "first"), maps(3, "last"), 1)).toBe(true);
    expect(isNewer(maps(3, "last"), maps(3, "first"), 1)).toBe(false);
    expect(isNewer(maps(4, "first"), maps(3, "last"), 1)).toBe(false);
    expect(isNewer(maps(3, "last"), maps(4, "first"), 1)).toBe(true);
    expect(isNewer(null, maps(3, "last"), 4)).toBe(false);
  });
});
