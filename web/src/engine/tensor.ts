// Numbers with their shape, as networks give and take them.

export interface Tensor { readonly data: Float32Array; readonly dims: readonly number[] }

/** Of finite numbers; the median is the mean of the middle two, as NumPy's. */
export function median(values: Float32Array): number {
  const sorted = values.slice().sort();
  const last = sorted.length - 1;
  return (sorted[last >> 1] + sorted[(last + 1) >> 1]) / 2;
}

/** Halves to the even number, as Python rounds. */
export function roundEven(value: number): number {
  const down = Math.floor(value);
  if (value - down !== 0.5) return Math.round(value);
  return down % 2 === 0 ? down : down + 1;
}

export function sigmoid(value: number): number {
  const small = Math.exp(-Math.abs(value));
  return (value >= 0 ? 1 : small) / (1 + small);
}

/** Linear interpolation between sorted samples, as NumPy's `quantile`. */
export function quantile(values: readonly number[], level: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const place = level * (sorted.length - 1);
  const low = Math.floor(place);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low] + (place - low) * (sorted[high] - sorted[low]);
}

/** How many pixels are measured: the one rule, a depth above 0. */
export function countMeasured(depth: Float32Array): number {
  let count = 0;
  for (const value of depth) if (value > 0) count += 1;
  return count;
}
