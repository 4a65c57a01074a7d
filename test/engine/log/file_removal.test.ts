import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { FileRemoval } from '../../../engine/log/file_removal.ts';
import { DiskError } from '../../../engine/ports.ts';
import { SimDisk } from '../../sim/disk.ts';

const test = suite('file_removal');

test('one file at a time, by the name that it has then; one that cannot be removed holds up no other', () => {
  const disk = new SimDisk({ seed: 1 });
  const running: { path: string; done: (error: DiskError | null) => void }[] = [];
  disk.removeTree = (path, done) => void running.push({ path, done });
  const removal = new FileRemoval(disk);
  const failed: string[] = [];
  let dir = '/a';
  for (const name of ['1', '2', '3'])
    removal.remove(
      () => `${dir}/${name}`,
      (_error, path) => failed.push(path),
    );
  const paths = (): string[] => running.map(({ path }) => path);
  assert.deepEqual(paths(), ['/a/1']);
  dir = '/b';
  running[0]!.done(new DiskError('EIO', 'broken'));
  assert.deepEqual(paths(), ['/a/1', '/b/2']);
  running[1]!.done(null);
  running[2]!.done(null);
  removal.remove(() => '/b/4');
  assert.deepEqual(paths(), ['/a/1', '/b/2', '/b/3', '/b/4']);
  assert.deepEqual(failed, ['/a/1']);
});

test.run();
