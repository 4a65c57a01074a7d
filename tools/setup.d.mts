/** The shape of a package-lock.json, as far as setup.mjs reads it. */
interface Lockfile {
  packages?: Record<string, { version?: string; integrity?: string; optional?: boolean }>;
}

export function stampFor(lockText: string): string;
export function isInstalled(lock: Lockfile, hidden: Lockfile, runtimeName: string | null): boolean;
export function runtimePackage(lock: Lockfile, platform: string, arch: string): string | null;
export function setup(root: string): void;
