// The unit in which a field counts depth; the twin of src/gbpn/runtime/depth_unit.py.

import { countMeasured } from "./tensor";

export class DepthUnit {
  constructor(readonly kind: "metric" | "median" | "log", readonly metres: number) {}

  /** From measurements [H, W]; a frame without any counts in metres. */
  static of(kind: "metric" | "median" | "log", sparse: Float32Array): DepthUnit {
    const count = countMeasured(sparse);
    if (kind === "metric" || !count) return new DepthUnit(kind, 1);
    const sorted = sparse.filter((value) => value > 0).sort();
    return new DepthUnit(kind, sorted[(count - 1) >> 1]); // the lower median
  }

  /** Metres → the field's unit; what is not measured stays 0. */
  into(depth: number): number {
    if (!(depth > 0)) return 0;
    if (this.kind === "metric") return depth;
    return this.kind === "median" ? depth / this.metres : Math.log(depth / this.metres);
  }

  /** The field's unit → what the second stage looks at: metres, or multiples of the unit. */
  seen(value: number): number {
    return this.kind === "log" ? Math.exp(value) : value;
  }

  /** The field's unit → metres. */
  out(value: number): number {
    return this.kind === "metric" ? value : this.seen(value) * this.metres;
  }

  /** Of a measurement with standard deviation `std`, both metres, in the field's unit squared. */
  variance(depth: number, std: number): number {
    return (std / (this.kind === "log" ? depth : this.metres)) ** 2;
  }
}
