import { defaultClientConditions, defineConfig } from "vite";

// The npm package: the page's engine and worker under entries of their own, for other people's bundlers.
export default defineConfig({
  resolve: { conditions: ["onnxruntime-web-use-extern-wasm", ...defaultClientConditions] },
  publicDir: false,
  build: {
    target: "es2022",
    minify: false, // those who use it minify
    reportCompressedSize: false,
    lib: {
      entry: { index: "src/package/index.ts", element: "src/package/element.ts", worker: "src/engine/worker.ts" },
      formats: ["es"],
    },
    rollupOptions: { output: { chunkFileNames: "[name].js" } },
  },
});
