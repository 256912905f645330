import { defineConfig } from "vite";

// Names without hashes: the built page is committed, and a change shows as a change of the same file.
export default defineConfig({
  base: "./",
  build: {
    outDir: "../src/gbpn/studio/static",
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 1500,
    rollupOptions: {
      output: {
        entryFileNames: "assets/[name].js",
        chunkFileNames: "assets/[name].js",
        assetFileNames: "assets/[name][extname]",
      },
    },
  },
});
