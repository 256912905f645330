import { describe, expect, it } from "vitest";
import { kept, meshIndex, placesOf, pointIndex } from "../src/geometry";
import { along, beside, ticks } from "../src/profile-line";

const picture = {
  name: "", width: 2, height: 2, pixels: new Uint8Array(12), truth: null, camera: [2, 2, 0.5, 0.5], notices: [],
};

describe("geometry", () => {
  it("puts pixels where the camera saw them", () => {
    const places = placesOf(Float32Array.from([2, 2, 2, 4]), picture);
    expect([...places.slice(0, 3)]).toEqual([-0.5, 0.5, -2]);
    expect([...places.slice(9)]).toEqual([1, -1, -4]);
  });

  it("cuts by sigma and leaves out what is not known", () => {
    const keep = kept(Float32Array.from([1, NaN, 2, 3]), Float32Array.from([0.1, 0.1, 0.5, NaN]), 0.2);
    expect([...keep]).toEqual([1, 0, 0, 1]);
    expect([...pointIndex(keep)]).toEqual([0, 3]);
  });

  it("makes no walls across steps in depth", () => {
    const all = new Uint8Array([1, 1, 1, 1]);
    expect(meshIndex(Float32Array.from([1, 1, 1, 1]), all, 2, 2)).toHaveLength(6);
    expect(meshIndex(Float32Array.from([1, 1, 1, 2]), all, 2, 2)).toHaveLength(3);
    expect(meshIndex(Float32Array.from([1, 2, 1, 2]), all, 2, 2)).toHaveLength(0);
  });
});

describe("profile", () => {
  it("takes every pixel of the line once", () => {
    const samples = along({ x0: 0, y0: 0, x1: 3, y1: 4 });
    expect(samples.map(({ y }) => y)).toEqual([0, 1, 2, 3, 4]);
    expect(samples[4].distance).toBe(5);
  });

  it("finds the measurements beside it", () => {
    const points = [{ x: 5, y: 2, depth: 1, std: 0 }, { x: 5, y: 9, depth: 1, std: 0 }, { x: 20, y: 0, depth: 1, std: 0 }];
    expect(beside({ x0: 0, y0: 0, x1: 10, y1: 0 }, points, 3)).toEqual([{ distance: 5, point: points[0] }]);
  });

  it("labels round numbers", () => {
    expect(ticks(0.3, 4.1)).toEqual([1, 2, 3, 4]);
  });
});
