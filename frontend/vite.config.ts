import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

export default defineConfig({
  // Relative addresses: the page also works below a path, as behind a notebook's proxy.
  base: "./",
  plugins: [react()],
  build: {
    outDir: "../src/endoscope/server/static",
    emptyOutDir: true,
    // The oldest browsers that know light-dark(); older targets would have it rewritten into something longer.
    target: ["chrome123", "firefox121", "safari17.5"],
    // Everything is served from the same machine: fewer requests beat inlined copies, and a strict
    // Content-Security-Policy needs no exception for data: addresses.
    assetsInlineLimit: 0,
    // From the same machine, half a megabyte takes a few milliseconds.
    chunkSizeWarningLimit: 700,
    modulePreload: { polyfill: false },
    license: { fileName: "licenses.md" },
  },
  worker: { format: "es" },
  server: { strictPort: true, port: 5317 },
  test: {
    include: ["tests/**/*.test.ts", "tests/**/*.test.tsx"],
    environment: "node",
  },
});
