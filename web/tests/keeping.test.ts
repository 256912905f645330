import { beforeAll, describe, expect, it, vi } from "vitest";
import { fitted } from "../src/connection";
import type { Work } from "../src/keeping";

const points = [{ x: 3, y: 4, depth: 2.5, std: 0 }, { x: 29, y: 19, depth: 1.25, std: 0.1 }];
const view = { layer: "depth", opacity: 0.8, defaultDepth: 2, defaultStd: 0 } as const;

describe("what is kept", () => {
  let keeping: typeof import("../src/keeping");
  let project: typeof import("../src/project");

  beforeAll(async () => {
    vi.stubGlobal("document", { getElementById: () => ({}), documentElement: { dataset: {} } });
    keeping = await import("../src/keeping");
    project = await import("../src/project");
  });

  it("comes back from a project, photo and noise included", () => {
    const picture = Uint8Array.from({ length: 999 }, (_, i) => i % 251);
    const opening = {
      kind: "OpenUpload", name: "my photo.jpg", depth_type: "", scale: 0, camera: [100, 101, 15, 10], camera_type: "", picture,
    } as const;
    const work: Work = { opening: { ...opening, camera: [...opening.camera] }, points, size: [20, 30], ...view };
    const { name, content } = project.packed(work, "1.0", []);
    expect(name).toBe("my_photo.gbpn");
    const back = project.unpacked(content, view);
    expect(back).toEqual({ ...work, opening: { ...work.opening, name: "my photo.jpg" } });
    content[60] ^= 1;
    expect(() => project.unpacked(content, view)).toThrow("damaged");
  });

  it("comes back from a link", () => {
    expect(keeping.readLink(keeping.linkOf("kitchen", points))).toEqual({ scene: "kitchen", points });
    expect(keeping.readLink("#scene=a&points=1,2;x,y,z;3,4,-5;6,7,1.5")?.points).toEqual([{ x: 6, y: 7, depth: 1.5, std: 0 }]);
    expect(keeping.readLink("#else")).toBeNull();
  });
});

describe("points of a picture of another size", () => {
  it("keep their places, and lie inside", () => {
    expect(fitted(points, [20, 30], [20, 30, 3])).toBe(points);
    expect(fitted(points, [20, 30], [40, 60, 3]).map((p) => [p.x, p.y])).toEqual([[7, 9], [59, 39]]);
    expect(fitted(points, [20, 30], [10, 15, 3]).map((p) => [p.x, p.y])).toEqual([[1, 2], [14, 9]]);
    expect(fitted(points, null, [10, 10, 3])).toEqual([points[0]]);
  });
});
