// What an exported folder says of itself (gbpn.json); the twin of src/gbpn/runtime/manifest.py.

export interface NetworkFile { name: string; file: string; sha256: string; inputs: string[]; outputs: string[] }
export interface Calibration { knots: number[]; log_std: number[]; relative: boolean }
export interface Config {
  name: string; image_mean: number[]; image_std: number[]; depth_scale: "metric" | "median" | "log"; iterations: number[];
  nonlocal_steps: number; nonlocal_edges: number; reweighting: number; confidence: string; agreement_trust: number;
}
export interface Card { licence?: string; trained_for?: { points?: number[]; depth?: number[]; focal?: number } }
export interface Manifest {
  networks: NetworkFile[]; config: Config; calibration: Calibration | null; card: Card; size: [number, number] | null;
  multiple: number; smallest: number;
}

const FORMAT = "gbpn-export";
const VERSION = 2;

/** A manifest that this page understands; throws in words. */
export function readManifest(text: string): Manifest {
  const stored = JSON.parse(text) as Manifest & { format: string; version: number; form: string };
  if (stored.format !== FORMAT || stored.version !== VERSION || stored.form !== "runtime") {
    throw new Error(`networks must be of format ${FORMAT} ${VERSION}, form runtime; got ${stored.format} ${stored.version}: `
      + "export them again");
  }
  for (const wanted of ["config", "networks", "multiple", "smallest"] as const) {
    if (stored[wanted] === undefined) throw new Error(`the manifest of the networks lacks ${wanted}: export them again`);
  }
  return stored;
}
