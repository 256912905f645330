import { describe, expect, it } from "vitest";
import { fromSlider, metres, parsePoints, percent, title, toSlider } from "../src/words";

describe("words", () => {
  it("says depth with its doubt", () => {
    expect(metres(2.414, 0.0712)).toBe("2.41 ± 0.07 m");
    expect(metres(2.4142, 0.0031)).toBe("2.414 ± 0.003 m");
    expect(metres(112.34)).toBe("112.3 m");
    expect(metres(NaN, 1)).toBe("not known");
  });

  it("says shares and names", () => {
    expect(percent(0.5)).toBe("50 %");
    expect(percent(0.0312)).toBe("3.1 %");
    expect(title("living_room")).toBe("Living room");
  });

  it("reads tables of points, with or without a line of names, the last of a pixel counting", () => {
    expect(parsePoints("x,y,depth,std\n1,2,3.5,0.1\n\n4;5;6 # far\n1 2 4", 10, 10)).toEqual([
      { x: 1, y: 2, depth: 4, std: 0 }, { x: 4, y: 5, depth: 6, std: 0 },
    ]);
  });

  it.each(["1,2,3\nfoo,2,3", "1,2,0", "10,2,1", "1,2,3,-1", "1,2,3\n1,2"])("refuses %j and says where", (text) => {
    expect(() => parsePoints(text, 10, 10)).toThrow(/line \d/);
  });

  it("goes through its whole range by slider and back", () => {
    expect(fromSlider(0, 1, 20000)).toBe(1);
    expect(fromSlider(1, 1, 20000)).toBeCloseTo(20000);
    expect(fromSlider(toSlider(345, 1, 20000), 1, 20000)).toBeCloseTo(345);
  });
});
