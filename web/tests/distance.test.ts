import { describe, expect, it } from "vitest";
import { distanceBetween } from "../src/distance";

const camera = [100, 100, 50, 50];

describe("a distance in space", () => {
  it("is the difference of depths along one ray, with both sigmas", () => {
    const found = distanceBetween({ x: 50, y: 50, depth: 2, std: 0.3 }, { x: 50, y: 50, depth: 5, std: 0.4 }, camera);
    expect(found.metres).toBeCloseTo(3, 9);
    expect(found.std).toBeCloseTo(0.5, 9);
  });

  it("grows with the angle; its sigma is that of its derivatives", () => {
    const [one, other] = [{ x: 0, y: 50, depth: 2, std: 0.01 }, { x: 100, y: 20, depth: 3, std: 0.02 }];
    const at = (a: number, b: number): number => distanceBetween({ ...one, depth: a }, { ...other, depth: b }, camera).metres;
    expect(at(2, 3)).toBeCloseTo(Math.hypot(-1 - 1.5, 0.9, -1), 9);
    const slopes = [(at(2 + 1e-6, 3) - at(2 - 1e-6, 3)) / 2e-6, (at(2, 3 + 1e-6) - at(2, 3 - 1e-6)) / 2e-6];
    expect(distanceBetween(one, other, camera).std).toBeCloseTo(Math.hypot(0.01 * slopes[0], 0.02 * slopes[1]), 6);
  });
});
