// Single measurements that the rest contradicts; the twin of src/gbpn/measurements/outliers.py, which says why.

import { countMeasured } from "./tensor";

const FEWEST = 20;
const NEIGHBOURS = 6;
const ALIKE = 0.3;
const SUPPORT = 2;
const MOST_SUSPECTS = 0.3;
const CONTRADICTION = 0.8;
const SURE = 0.05;
const ABSURD = 2.3;

/** Indices of the measurements in [H, W] that too few neighbours support. */
export function suspects(depth: Float32Array, height: number, width: number): number[] {
  const count = countMeasured(depth);
  if (count < Math.max(FEWEST, NEIGHBOURS + 1)) return [];
  const nearest = new Nearest(depth, height, width, count);
  const lonely: number[] = [];
  depth.forEach((value, index) => {
    if (!(value > 0)) return;
    const own = Math.log(value);
    const alike = nearest.of(index).filter((other) => Math.abs(Math.log(depth[other]) - own) < ALIKE).length;
    if (alike < SUPPORT) lonely.push(index);
  });
  return lonely.length / count <= MOST_SUSPECTS ? lonely : [];
}

/** Those of the suspects that are far from the answer without them. */
export function contradicted(
  depth: Float32Array, suspect: readonly number[], mean: Float32Array, precision: Float32Array,
): number[] {
  const reached = (i: number): boolean => precision[i] > 0 && mean[i] > 0;
  const usual = lowerMedian(precision.filter((_, i) => reached(i)));
  const middle = lowerMedian(mean.filter((_, i) => reached(i)));
  return suspect.filter((i) => {
    const expected = reached(i) ? mean[i] : middle;
    if (!(expected > 0)) return false;
    const distance = Math.abs(Math.log(depth[i] / expected));
    return (reached(i) && precision[i] > SURE * usual && distance > CONTRADICTION) || distance > ABSURD;
  });
}

function lowerMedian(values: Float32Array): number {
  return values.length ? values.slice().sort()[(values.length - 1) >> 1] : NaN;
}

/** The nearest other measurements of each, sought in square cells that hold about two. */
class Nearest {
  private readonly cells = new Map<number, number[]>();
  private readonly side: number;
  private readonly across: number;
  private readonly down: number;

  constructor(depth: Float32Array, height: number, private readonly width: number, count: number) {
    this.side = Math.max(1, Math.round(Math.sqrt(2 * height * width / count)));
    this.across = Math.ceil(width / this.side);
    this.down = Math.ceil(height / this.side);
    depth.forEach((value, index) => {
      if (!(value > 0)) return;
      const cell = this.cell(index);
      const there = this.cells.get(cell);
      if (there) there.push(index);
      else this.cells.set(cell, [index]);
    });
  }

  of(index: number): number[] {
    const [row, column] = [Math.floor(index / this.width), index % this.width];
    const distance = (other: number): number => (Math.floor(other / this.width) - row) ** 2 + (other % this.width - column) ** 2;
    let found: number[] = [];
    for (let ring = 0; ring <= Math.max(this.across, this.down); ring++) {
      found.push(...this.ring(index, ring));
      // everything within `ring` cells' sides has been seen
      found.sort((a, b) => distance(a) - distance(b) || a - b);
      const sixth = found[NEIGHBOURS - 1];
      if (sixth !== undefined && distance(sixth) <= (ring * this.side) ** 2) break;
      found = found.slice(0, 4 * NEIGHBOURS);
    }
    return found.slice(0, NEIGHBOURS);
  }

  private cell(index: number): number {
    return Math.floor(Math.floor(index / this.width) / this.side) * this.across + Math.floor(index % this.width / this.side);
  }

  private ring(index: number, ring: number): number[] {
    const middle = this.cell(index);
    const [row, column] = [Math.floor(middle / this.across), middle % this.across];
    const out: number[] = [];
    for (let i = row - ring; i <= row + ring; i++) {
      for (let j = column - ring; j <= column + ring; j++) {
        if (i < 0 || j < 0 || i >= this.down || j >= this.across) continue;
        if (Math.max(Math.abs(i - row), Math.abs(j - column)) !== ring) continue;
        for (const other of this.cells.get(i * this.across + j) ?? []) if (other !== index) out.push(other);
      }
    }
    return out;
  }
}
