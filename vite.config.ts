import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'
import { standalone } from './bench/standalone/build.ts'

/** `import source from 'x.wgsl' with { type: 'text' }`, which Deno understands without help. */
const wgsl: Plugin = {
  name: 'wgsl',
  transform: {
    filter: { id: /\.wgsl$/ },
    handler: (code) => ({ code: `export default ${JSON.stringify(code)}`, moduleType: 'js', map: { mappings: '' } }),
  },
}

/** The page: `vite --mode demo`, `vite build --mode demo`. Paths are relative, so it can be served from anywhere. */
const demo = {
  root: 'demo',
  base: './',
  publicDir: '../public',
  optimizeDeps: { exclude: ['webgpu'] }, // Node's; a browser has its own
  build: { outDir: '../dist-demo', emptyOutDir: true, target: 'es2022' },
}

/** The package: dist/index.js and dist/server.js for every host, dist/cli.js for Node. What npm installs stays outside. */
const library = {
  publicDir: false as const,
  build: {
    lib: { entry: { index: 'src/index.ts', server: 'src/server.ts', cli: 'src/cli.ts' }, formats: ['es' as const] },
    target: 'es2022',
    minify: false,
    sourcemap: true,
    rolldownOptions: { external: [/^node:/, /^[@a-z]/], output: { chunkFileNames: '[name].js' } },
  },
}

export default defineConfig(({ mode }) => ({
  ...(mode === 'demo' ? demo : (standalone[mode] ?? library)),
  plugins: [wgsl, standalone[mode]?.plugins],
  test: {
    include: ['tests/**/*.test.ts'],
    globalSetup: 'tests/hosts/setup.ts',
    pool: 'forks' as const,
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
}))
