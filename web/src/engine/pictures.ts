// Photos of the user's: decoded by the browser, upright, reduced as Python reduces them.

import { triangle } from "./sizes";

export interface Photo { pixels: Uint8Array<ArrayBuffer>; height: number; width: number; originalHeight: number; originalWidth: number }

const MOST_PIXELS = 60e6;
const BAND = 256;
const EXIF_FOLDER = 0x8769;
const FOCAL_35MM = 0xa405;

/** Decode without reducing yet: its size decides by how much. */
export async function decoded(content: Uint8Array<ArrayBuffer>): Promise<ImageBitmap> {
  let bitmap: ImageBitmap;
  try {
    bitmap = await createImageBitmap(new Blob([content]), { imageOrientation: "from-image" });
  } catch {
    throw new Error("this is not a picture that this browser can read: use JPEG, PNG or WebP");
  }
  if (bitmap.width * bitmap.height > MOST_PIXELS) {
    throw new Error(`at most ${MOST_PIXELS / 1e6} megapixels are taken; got ${bitmap.width}×${bitmap.height}: reduce the picture`);
  }
  return bitmap;
}

/** [H, W, 3] bytes at a new size: a triangle filter down the columns and along the rows. Bands of rows keep memory small. */
export function reduced(bitmap: ImageBitmap, height: number, width: number): Photo {
  const across = triangle(bitmap.width, width);
  const down = triangle(bitmap.height, height);
  const sums = new Float32Array(3 * height * width);
  const row = new Float32Array(3 * width);
  const band = new OffscreenCanvas(bitmap.width, Math.min(BAND, bitmap.height));
  const context = band.getContext("2d", { willReadFrequently: true })!;
  let lowest = 0;
  for (let start = 0; start < bitmap.height; start += band.height) {
    context.clearRect(0, 0, band.width, band.height);
    context.fillStyle = "#000"; // what is transparent is black, as it is for Python
    context.fillRect(0, 0, band.width, band.height);
    context.drawImage(bitmap, 0, -start);
    const { data } = context.getImageData(0, 0, band.width, band.height);
    for (let y = start; y < Math.min(start + band.height, bitmap.height); y++) {
      filtered(data, (y - start) * bitmap.width, across, row);
      while (lowest < height && down[lowest].first + down[lowest].shares.length <= y) lowest += 1;
      for (let i = lowest; i < height && down[i].first <= y; i++) {
        const share = down[i].shares[y - down[i].first];
        for (let k = 0; k < row.length; k++) sums[i * row.length + k] += share * row[k];
      }
    }
  }
  const pixels = Uint8Array.from(sums, (value) => Math.round(value));
  return { pixels, height, width, originalHeight: bitmap.height, originalWidth: bitmap.width };
}

function filtered(
  data: Uint8ClampedArray, start: number, across: ReturnType<typeof triangle>, row: Float32Array,
): void {
  for (let i = 0; i < across.length; i++) {
    const { first, shares } = across[i];
    let [red, green, blue] = [0, 0, 0];
    for (let k = 0; k < shares.length; k++) {
      const at = 4 * (start + first + k);
      red += shares[k] * data[at];
      green += shares[k] * data[at + 1];
      blue += shares[k] * data[at + 2];
    }
    row[3 * i] = red;
    row[3 * i + 1] = green;
    row[3 * i + 2] = blue;
  }
}

/** Millimetres as on film, as the photo's EXIF gives them; 0 where it does not. */
export function exifFocal(content: Uint8Array): number {
  try {
    const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
    for (let at = 2; view.getUint16(0) === 0xffd8 && at + 10 < view.byteLength; at += 2 + view.getUint16(at + 2)) {
      const marker = view.getUint16(at);
      if (marker === 0xffda) break;
      if (marker === 0xffe1 && view.getUint32(at + 4) === 0x45786966) return focalOf(view, at + 10);
    }
  } catch {
    // damaged EXIF is no reason to refuse the picture
  }
  return 0;
}

function focalOf(view: DataView, start: number): number {
  const little = view.getUint16(start) === 0x4949;
  const find = (folder: number, tag: number): number | null => {
    const count = view.getUint16(start + folder, little);
    for (let i = 0; i < count; i++) {
      const entry = start + folder + 2 + 12 * i;
      if (view.getUint16(entry, little) !== tag) continue;
      return view.getUint16(entry + 2, little) === 3 ? view.getUint16(entry + 8, little) : view.getUint32(entry + 8, little);
    }
    return null;
  };
  const folder = find(view.getUint32(start + 4, little), EXIF_FOLDER);
  return folder === null ? 0 : find(folder, FOCAL_35MM) ?? 0;
}
