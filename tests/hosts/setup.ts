import { execFileSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')
const swiftshader = '/usr/lib/chromium/vk_swiftshader_icd.json'

/**
 * Gives the tests a Vulkan driver: the real one with PRONOUNCE_GPU=1, else lavapipe 25, unpacked on first use and
 * kept in .cache, else the SwiftShader of Debian's chromium. Workers inherit the environment set here.
 */
function findDriver(): void {
  if (process.platform !== 'linux') return // macOS and Windows come with a driver
  process.env.XDG_RUNTIME_DIR ??= '/tmp' // Vulkan loaders and drivers want one
  if (process.env.PRONOUNCE_GPU === '1' || process.env.VK_DRIVER_FILES) return
  process.env.MESA_SHADER_CACHE_DIR ??= join(root, '.cache/mesa')
  process.env.LP_NUM_THREADS ??= '2'
  try {
    const script = join(import.meta.dirname, 'lavapipe.sh')
    const icd = execFileSync('bash', [script, join(root, '.cache/lavapipe')], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    process.env.VK_DRIVER_FILES = icd.trim()
  } catch (error) {
    if (!existsSync(swiftshader)) {
      throw new Error(
        'No software Vulkan for the WebGPU tests. Run: apt-get update && apt-get install -y libvulkan1 mesa-vulkan-drivers chromium',
        { cause: error },
      )
    }
    console.warn('tests: lavapipe 25 could not be unpacked, using SwiftShader (no f16)')
    process.env.VK_DRIVER_FILES = swiftshader
  }
}

/** Before all tests; workers share a folder by which they know that they are of one run. */
export default function setup(): () => void {
  const run = mkdtempSync(join(tmpdir(), 'pronounce-run-'))
  process.env.PRONOUNCE_RUN = run
  findDriver()
  return () => rmSync(run, { recursive: true })
}
