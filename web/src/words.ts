// Numbers as people read them.

/** `2.41 ± 0.07 m`, with as many digits as the doubt allows. */
export function metres(depth: number, std = NaN): string {
  if (!Number.isFinite(depth)) return "not known";
  const digits = depth >= 100 ? 1 : 2;
  if (!Number.isFinite(std)) return `${depth.toFixed(digits)} m`;
  const small = std < 0.005 ? 3 : digits;
  return `${depth.toFixed(small)} ± ${std.toFixed(small)} m`;
}

export function percent(share: number): string {
  const value = 100 * share;
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(1)} %`;
}

export function plural(count: number, word: string): string {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

/** `living_room` → `Living room`. */
export function title(name: string): string {
  const text = name.replaceAll("_", " ");
  return text.charAt(0).toUpperCase() + text.slice(1);
}

export const SWEEPS: Record<string, string> = {
  left_right: "left → right", top_bottom: "top → bottom", right_left: "right → left", bottom_top: "bottom → top",
  nonlocal: "learned edges", iteration: "all directions",
};

/** Lines of x, y, depth and perhaps noise; a first line of names may come first. Throws with the line at fault. */
export function parsePoints(text: string, width: number, height: number): { x: number; y: number; depth: number; std: number }[] {
  const found = new Map<number, { x: number; y: number; depth: number; std: number }>();
  text.split(/\r?\n/).forEach((line, number) => {
    const words = line.split("#")[0].split(/[\s,;]+/).filter((word) => word !== "");
    if (!words.length) return;
    const [x, y, depth, std = 0] = words.map(Number);
    if ([x, y, depth, std].some((value) => !Number.isFinite(value)) || words.length < 3) {
      if (number === 0) return;
      throw new Error(`line ${number + 1}: wanted x, y, depth; got “${line}”`);
    }
    const column = Math.round(x);
    const row = Math.round(y);
    if (column < 0 || column >= width || row < 0 || row >= height || depth <= 0 || std < 0) {
      throw new Error(`line ${number + 1}: wanted a pixel inside ${width}×${height} and a depth above 0`);
    }
    found.set(row * width + column, { x: column, y: row, depth, std });
  });
  return [...found.values()];
}

/** Position of a logarithmic slider in [0, 1] ↔ value. */
export function fromSlider(share: number, low: number, high: number): number {
  return low * (high / low) ** share;
}

export function toSlider(value: number, low: number, high: number): number {
  return Math.log(Math.max(value, low) / low) / Math.log(high / low);
}
