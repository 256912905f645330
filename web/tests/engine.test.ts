import { describe, expect, it } from "vitest";
import { trust } from "../src/engine/agreement";
import { withoutCheckerboard } from "../src/engine/checkerboard";
import { drawnPatches, explain } from "../src/engine/held-out";
import { suspects } from "../src/engine/outliers";
import { triangle, workingScale } from "../src/engine/sizes";
import found from "./engine.json";

describe("the engine's parts are twins of Python's", () => {
  for (const { name, shape: [height, width], depth, held, trust: trusted, suspects: suspect } of found.checks) {
    const maps = Float32Array.from(depth);
    it(`holds out the measurements that Python holds out: ${name}`, () => {
      const patches = drawnPatches(maps, height, width);
      expect([...patches.keys()].filter((i) => patches[i])).toEqual(held);
    });
    it(`trusts measurements as far: ${name}`, () => expect(trust(maps, height, width, 32)).toBeCloseTo(trusted, 3));
    it(`suspects the same measurements: ${name}`, () => expect(suspects(maps, height, width)).toEqual(suspect));
  }

  it("asks the same of sigma", () => {
    for (const { error, sigma, found: [factor, noise] } of found.explained) {
      const [ownFactor, ownNoise] = explain(error, sigma);
      expect(ownFactor).toBeCloseTo(factor, 6);
      expect(ownNoise).toBeCloseTo(noise, 6);
    }
  });

  it("completes at the same size", () => {
    for (const { given: [height, width, focal, count, trained], factor } of found.sizes) {
      expect(workingScale(height, width, focal, count, trained)).toBeCloseTo(factor, 9);
    }
  });

  it("takes the same checkerboard out of the confidence", () => {
    const { shape: [height, width], logit, known, even } = found.even;
    const own = withoutCheckerboard(Float32Array.from(logit), (i) => known[i], height, width);
    own.forEach((value, i) => expect(value).toBeCloseTo(even[i], 5));
  });
});

describe("a picture that is reduced", () => {
  it("keeps its brightness, whatever the sizes", () => {
    for (const [from, to] of [[640, 296], [7, 7], [5, 2], [4032, 401]]) {
      const rows = triangle(from, to);
      expect(rows).toHaveLength(to);
      for (const { first, shares } of rows) {
        expect(shares.reduce((sum, share) => sum + share, 0)).toBeCloseTo(1, 9);
        expect(first + shares.length).toBeLessThanOrEqual(from);
      }
    }
  });
});
