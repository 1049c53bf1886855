import { execFileSync } from 'node:child_process'
import { readdirSync } from 'node:fs'
import { join, relative } from 'node:path'
import type { Plugin, UserConfig } from 'vite'

const root = join(import.meta.dirname, '../..')
const outDir = join(root, '.cache/bench')

/** `vite build --mode bench`: .cache/bench/run.mjs, and so on. `vite build --mode gputests`: .cache/bench/tests.mjs. */
export const standalone: Readonly<Record<string, UserConfig>> = {
  bench: single('bench/run.ts', 'run'),
  likeness: single('bench/likeness.ts', 'likeness'),
  browser: installed(single('bench/browser.ts', 'browser')),
  gputests: {
    ...single('bench/standalone/main.ts', 'tests'),
    resolve: { alias: { vitest: join(import.meta.dirname, 'vitest.ts') } },
    plugins: [testFiles()],
  },
}

/** One file that needs Node and the package webgpu alone. */
function single(entry: string, name: string): UserConfig {
  return {
    publicDir: false,
    define: { __COMMIT__: JSON.stringify(commit()) },
    ssr: { noExternal: true },
    build: {
      ssr: entry,
      outDir,
      emptyOutDir: false,
      target: 'node20',
      rolldownOptions: {
        external: (id) => ['webgpu', 'sharp'].includes(id) || id.startsWith('node:'),
        output: { entryFileNames: `${name}.mjs`, codeSplitting: false },
      },
    },
  }
}

/** The same, beside what npm has installed: a browser cannot be driven by one file alone. */
function installed(config: UserConfig): UserConfig {
  const external = (id: string) => /^(node:|[a-z@])/.test(id) && !id.endsWith('.json')
  return {
    ...config,
    ssr: {},
    build: { ...config.build, rolldownOptions: { ...config.build!.rolldownOptions, external } },
  }
}

/** Of this working tree, for results. */
export function commit(): string {
  try {
    const args = ['describe', '--always', '--dirty', '--abbrev=40']
    return execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
  } catch {
    return 'unknown' // not a clone
  }
}

/** The tests of what runs on a device; a real GPU changes nothing for the others. */
const onDevice = /^tests\/(kernels\/.+|models\/.+|device\/.+|apps\/decider\/(model|heldout))\.test\.ts$/

const effects = { moduleSideEffects: true, map: null } // package.json denies them, for src

/** Imports all of them into tests.ts; each tells its name, and finds its files from the root where it is run. */
function testFiles(): Plugin {
  return {
    name: 'test-files',
    enforce: 'pre',
    transform(code, id) {
      const path = relative(root, id)
      if (path === 'bench/standalone/tests.ts') {
        const all = readdirSync(join(root, 'tests'), { recursive: true, encoding: 'utf8' }).map((p) => `tests/${p}`)
        const imports = all
          .filter((p) => onDevice.test(p))
          .sort()
          .map((p) => `import ${JSON.stringify(join(root, p))}`)
        return { code: imports.join('\n'), ...effects }
      }
      if (!path.startsWith('tests/')) return
      const name = path.endsWith('.test.ts')
        ? `import { file as beginFile } from 'vitest'; beginFile(${JSON.stringify(path)})\n`
        : ''
      const at = `new URL(${JSON.stringify(path)}, 'file://' + process.cwd() + '/')`
      const body = code
        .replaceAll('import.meta.url', `${at}.href`)
        .replaceAll('import.meta.dirname', `${at}.pathname.replace(/\\/[^/]*$/, '')`)
      return { code: name + body, ...effects }
    },
  }
}
