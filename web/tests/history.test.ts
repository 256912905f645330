import { describe, expect, it } from "vitest";
import { History } from "../src/history";

const one = [{ x: 1, y: 2, depth: 3, std: 0 }];
const two = [...one, { x: 4, y: 5, depth: 6, std: 0 }];

describe("history", () => {
  it("leads back and forth through the same lists", () => {
    const history = new History();
    history.push([]);
    history.push(one);
    expect(history.undo(two)).toBe(one);
    expect(history.undo(one)).toEqual([]);
    expect(history.undo([])).toBeNull();
    expect(history.redo([])).toBe(one);
    expect(history.redo(one)).toBe(two);
    expect(history.redo(two)).toBeNull();
  });

  it("counts a gesture as one step, and two gestures as two", () => {
    const history = new History();
    history.push([], "drag");
    history.push(one, "drag");
    history.settle();
    history.push(two, "drag");
    expect(history.undo(two)).toBe(two);
    expect(history.undo(two)).toEqual([]);
    expect(history.canUndo).toBe(false);
  });

  it("forgets what was undone once something new is done", () => {
    const history = new History();
    history.push([]);
    history.undo(one);
    history.push([]);
    expect(history.canRedo).toBe(false);
  });
});
