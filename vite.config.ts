import { join } from 'node:path'
import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'
import { commit, standalone } from './bench/standalone/build.ts'
import { contentSecurityPolicy, licences, offlineList } from './demo/build.ts'
import pronounce from './package.json' with { type: 'json' }

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
  define: { __COMMIT__: JSON.stringify(commit()), __VERSION__: JSON.stringify(pronounce.version) },
  optimizeDeps: { exclude: ['webgpu', 'sharp', '@echogarden/espeak-ng-emscripten'] }, // Node's; its data lies beside it
  worker: { format: 'es' as const, plugins: () => [wgsl], rolldownOptions: { external: ['sharp'] } }, // Node's
  build: {
    outDir: '../dist-demo',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0, // data: URLs are no part of the policy
    rolldownOptions: {
      input: {
        index: join(import.meta.dirname, 'demo/index.html'),
        service_worker: join(import.meta.dirname, 'demo/service_worker.ts'),
      },
      output: {
        entryFileNames: ({ name }: { name: string }) =>
          name === 'service_worker' ? '[name].js' : 'assets/[name]-[hash].js',
      },
    },
  },
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
  plugins: [wgsl, standalone[mode]?.plugins, mode === 'demo' && [contentSecurityPolicy, licences, offlineList]],
  test: {
    include: ['tests/**/*.test.ts'],
    globalSetup: 'tests/hosts/setup.ts',
    pool: 'forks' as const,
    expect: { poll: { timeout: 30_000 } }, // pages share the machine with other tests
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
}))
