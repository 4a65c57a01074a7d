#!/usr/bin/env node
/**
 * Entry of the command line. Sets up what must come before any other module is loaded, then hands over to `cli.ts`:
 * the compile cache (a start with it takes a third of the time) and the size of libuv's thread pool (shared by all
 * threads, fixed at its first use; flushes must wait neither for each other nor for cold reads, which take half of it).
 */
import { accessSync, constants } from 'node:fs';
import { enableCompileCache } from 'node:module';
import { availableParallelism, homedir } from 'node:os';
import { join } from 'node:path';

/**
 * Where compiled code is kept: with the installation if that can be written, else with the user's caches.
 * NODE_COMPILE_CACHE wins over both, NODE_DISABLE_COMPILE_CACHE=1 switches it off.
 */
function compileCacheDirectory(): string {
  const modules = join(import.meta.dirname, '..', 'node_modules');
  try {
    accessSync(modules, constants.W_OK);
    return join(modules, '.cache', 'millrace');
  } catch {
    const caches = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache');
    return join(caches, 'millrace');
  }
}

// Threads and child processes take it from the environment.
process.env['NODE_COMPILE_CACHE'] ??= compileCacheDirectory();
enableCompileCache(process.env['NODE_COMPILE_CACHE']);
process.env['UV_THREADPOOL_SIZE'] ??= String(Math.max(8, 4 * availableParallelism()));

const { main } = await import('./cli.ts');
await main(process.argv);
