import { describe, expect, it } from "vitest";
import { colourOf, paint, percentile, spread } from "../src/colours";
import type { PaletteName } from "../src/colours";
import fixture from "./colours.json";

describe("colours", () => {
  it.each(fixture.palettes)("of $name are those of the previews", ({ name, low, high, values, colours }) => {
    const numbers = values.map((value) => (value === null ? NaN : value));
    expect(numbers.map((value) => colourOf(value, low, high, name as PaletteName))).toEqual(colours);
    const out = new Uint8ClampedArray(4 * numbers.length);
    paint(Float32Array.from(numbers), low, high, name as PaletteName, out);
    const painted = numbers.map((_, i) => [...out.slice(4 * i, 4 * i + 3)]);
    // float32 may fall into the neighbouring entry of the table
    painted.forEach((colour, i) => colour.forEach((part, c) => expect(Math.abs(part - colours[i][c])).toBeLessThan(12)));
  });

  it("range over percentiles of what is known and positive", () => {
    const [low, high] = spread(Float32Array.from(fixture.spread.values.map((v) => v ?? NaN)));
    expect(low).toBeCloseTo(fixture.spread.low, 5);
    expect(high).toBeCloseTo(fixture.spread.high, 5);
    expect(spread(new Float32Array(3))).toEqual([0, 1]);
    expect(percentile(Float32Array.from([1, 2, 3]), 25)).toBe(1.5);
  });
});
