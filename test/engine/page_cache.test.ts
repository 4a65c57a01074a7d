import assert from 'node:assert/strict';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { type Native, native } from '../../engine/native.ts';
import { NodePageCache, pageCacheLimits } from '../../engine/page_cache.ts';
import type { PageCache } from '../../engine/ports.ts';

const { EAGAIN, ENOSYS, EOPNOTSUPP } = constants.errno;
const { guessBytesMax, strideBytes } = pageCacheLimits;
const fileBytes = 4_000_001;

interface Context {
  directory: string;
  fd: number;
}

const test = suite<Context>('page cache');

test.before((context) => {
  context.directory = mkdtempSync(join(tmpdir(), 'millrace-cache-'));
  const path = join(context.directory, 'file');
  writeFileSync(path, new Uint8Array(fileBytes), { flush: true });
  context.fd = openSync(path, 'r+');
});

test.after((context) => {
  closeSync(context.fd);
  rmSync(context.directory, { recursive: true });
});

/** A kernel with only some of the pages of every file in its cache. */
function kernel(pages: ReadonlySet<number>, calls: Partial<Native> = {}): Native {
  return {
    ...native()!,
    cachedPages: (_fd, offset, length) => {
      let count = 0;
      const last = Math.floor((offset + length - 1) / 4096);
      for (let page = Math.floor(offset / 4096); page <= last; page += 1)
        if (pages.has(page)) count += 1;
      return count;
    },
    peek: (_fd, offset) => (pages.has(Math.floor(offset / 4096)) ? 1 : -EAGAIN),
    ...calls,
  };
}

function pagesBut(...missing: number[]): Set<number> {
  const pages = new Set(Array.from({ length: 1_000 }, (_, page) => page));
  for (const page of missing) pages.delete(page);
  return pages;
}

const fill = (cache: PageCache, fd: number, position: number, length: number): Promise<void> =>
  new Promise((done) => cache.fill(fd, position, length, done));

test('a range is cached if all of its pages are', () => {
  const cache = new NodePageCache(kernel(pagesBut(10)));
  assert(cache.isCached(9, 0, 10 * 4096));
  assert(!cache.isCached(9, 0, 10 * 4096 + 1));
  assert(!cache.isCached(9, 11 * 4096 - 1, 2));
  assert(cache.isCached(9, 11 * 4096, 500_000));
  assert(cache.isCached(9, 10 * 4096, 0), 'nothing to wait for');
});

test('pages that are still on their way are not there', () => {
  // cachestat counts them.
  const cache = new NodePageCache(kernel(pagesBut(), { peek: () => -EAGAIN }));
  assert(!cache.isCached(9, 0, 10_000));
});

test('where there is no cachestat, one byte in so many is asked for, and the last', () => {
  const asked: number[] = [];
  const old = kernel(pagesBut(40), { cachedPages: () => -ENOSYS });
  const cache = new NodePageCache({
    ...old,
    peek: (fd, offset) => {
      asked.push(offset);
      return old.peek(fd, offset);
    },
  });
  assert(cache.isCached(9, 0, 3 * strideBytes));
  assert.deepEqual(asked, [0, strideBytes, 2 * strideBytes, 3 * strideBytes - 1]);
  assert(!cache.isCached(9, 0, 40 * 4096 + 1), 'its last page is missing');
  assert(!cache.isCached(9, 40 * 4096, 100_000), 'its first page is missing');
});

test('where nothing tells, short ranges count as cached and long ones do not', () => {
  const mute = kernel(pagesBut(), {
    cachedPages: () => -ENOSYS,
    peek: () => -EOPNOTSUPP,
  });
  for (const calls of [mute, null]) {
    const cache = new NodePageCache(calls);
    assert(cache.isCached(9, 5, guessBytesMax));
    assert(!cache.isCached(9, 5, guessBytesMax + 1));
  }
});

test('what was dropped is cold until it is filled, and nothing else is filled with it', async ({
  fd,
}) => {
  const calls = native()!;
  const cache = new NodePageCache();
  assert(cache.isCached(fd, 0, fileBytes), 'just written');
  calls.dropCache(fd, 0, 0);
  // In memory for good (tmpfs), or no cachestat: then there is nothing to see here.
  if (calls.cachedPages(fd, 0, fileBytes) !== 0) return;
  assert(!cache.isCached(fd, 0, 1));
  assert(!cache.isCached(fd, 1_000_000, 200_000));
  await fill(cache, fd, 1_000_000, 200_000);
  assert(cache.isCached(fd, 1_000_000, 200_000));
  assert(!cache.isCached(fd, 0, 1));
  assert(!cache.isCached(fd, 1_300_000, 1), 'more than was asked for');
});

test('filling past the end of a file, or from one that cannot be read, comes to an end', async ({
  fd,
}) => {
  const cache = new NodePageCache();
  await fill(cache, fd, fileBytes - 10, 300_000);
  assert(cache.isCached(fd, fileBytes - 10, 10));
  await fill(cache, fd, fileBytes + 10_000, 300_000);
  await fill(cache, 1_000_000, 0, 300_000);
});

test('files of one directory lie on one device', ({ fd, directory }) => {
  const other = openSync(join(directory, 'file'), 'r');
  const cache = new NodePageCache();
  assert.equal(cache.deviceOf(other), cache.deviceOf(fd));
  closeSync(other);
});

test.run();
