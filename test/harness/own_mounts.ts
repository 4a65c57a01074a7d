/**
 * Small file systems for tests that need a full disk. The test's process runs once more in a mount namespace of its
 * own, so that what it mounts goes away with it, however it ends.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';

const marker = 'MILLRACE_OWN_MOUNTS';
const whatItNeeds =
  'This test mounts a small tmpfs and needs the right to do so: run it as root (in a container with CAP_SYS_ADMIN), with unshare(1) and mount(8) there.';

/**
 * Runs `run` in a process that may mount. In the first process this starts the second one and takes over its exit
 * code, which is not 0 when the machine does not allow it.
 */
export function withOwnMounts(run: () => void): void {
  if (process.env[marker] !== undefined) {
    run();
    return;
  }
  const own = ['--mount', '--propagation', 'private'];
  const probe = spawnSync('unshare', [...own, 'true'], { encoding: 'utf8' });
  if (probe.status !== 0) {
    console.error(`${probe.error?.message ?? probe.stderr}\n${whatItNeeds}`);
    process.exitCode = 1;
    return;
  }
  const args = [...own, process.execPath, ...process.argv.slice(1)];
  const env = { ...process.env, [marker]: '1' };
  process.exitCode = spawnSync('unshare', args, { stdio: 'inherit', env }).status ?? 1;
}

/** Mounts an empty file system of so many bytes at `path`, which is made. */
export function mountSmall(path: string, bytes: number): void {
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', path], { stdio: 'pipe' });
  } catch (error) {
    throw new Error(`cannot mount a tmpfs at ${path}. ${whatItNeeds}`, { cause: error });
  }
}

/** Its files stay until nobody has them open any more. */
export function unmount(path: string): void {
  execFileSync('umount', ['--lazy', path], { stdio: 'pipe' });
}
