// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vite';

export default defineConfig({
  // The page may be served from any path.
  base: './',
  esbuild: { jsx: 'automatic', jsxImportSource: 'preact' },
  build: { target: 'es2022', modulePreload: false, reportCompressedSize: false, assetsInlineLimit: 0 }
});
