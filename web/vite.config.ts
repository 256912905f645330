import { readFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { defaultClientConditions, defineConfig } from "vite";
import type { Plugin } from "vite";

const RUNTIME = "node_modules/onnxruntime-web/dist/ort-wasm-simd-threaded";
const names = { entryFileNames: "assets/[name].js", chunkFileNames: "assets/[name].js", assetFileNames: "assets/[name][extname]" };

/** The networks' runtime beside the page: packed, for static hosts do not all pack what they send. */
function engineFiles(): Plugin {
  return {
    name: "engine-files",
    generateBundle() {
      const script = readFileSync(`${RUNTIME}.mjs`, "utf8").replaceAll("/home/web_user", "/"); // no path of any machine
      this.emitFile({ type: "asset", fileName: "engine/runtime.wasm.gz", source: gzipSync(readFileSync(`${RUNTIME}.wasm`), { level: 9 }) });
      this.emitFile({ type: "asset", fileName: "engine/runtime.js", source: script });
    },
  };
}

// Names without hashes: the built page is committed, and a change shows as a change of the same file.
export default defineConfig({
  base: "./",
  plugins: [engineFiles()],
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  worker: { format: "es", rollupOptions: { output: names } },
  build: {
    outDir: "../src/gbpn/studio/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1500,
    rollupOptions: { output: names },
  },
});
