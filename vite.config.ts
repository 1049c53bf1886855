import type { Plugin } from 'vite'
import { defineConfig } from 'vitest/config'

/** `import source from 'x.wgsl' with { type: 'text' }`, which Deno understands without help. */
const wgsl: Plugin = {
  name: 'wgsl',
  transform: {
    filter: { id: /\.wgsl$/ },
    handler: (code) => ({ code: `export default ${JSON.stringify(code)}`, moduleType: 'js' }),
  },
}

export default defineConfig({
  plugins: [wgsl],
  test: {
    include: ['tests/**/*.test.ts'],
    globalSetup: 'tests/hosts/setup.ts',
    pool: 'forks',
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
})
