/** Output that many small texts go to: bounded, in order, and never kept back from who waits for it. */
import assert from 'node:assert/strict';
import { Writable } from 'node:stream';
import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import { createOutput } from '../../../tools/cli/output.ts';

const test = suite('output');

/** A terminal or pipe that takes a chunk when it is told to. */
function slowStream(): { stream: NodeJS.WriteStream; chunks: string[]; release: () => void } {
  const chunks: string[] = [];
  let next: (() => void) | null = null;
  const stream = new Writable({
    highWaterMark: 1,
    decodeStrings: false,
    write(chunk: string, _encoding, callback): void {
      chunks.push(chunk);
      next = callback;
    },
  });
  const release = (): void => {
    const callback = next;
    next = null;
    callback?.();
  };
  return { stream: stream as unknown as NodeJS.WriteStream, chunks, release };
}

test('what a turn has written is out at its end, as one piece', async () => {
  const { stream, chunks } = slowStream();
  const output = createOutput(stream);
  await output.write('a\n');
  await output.write('b\n');
  assert.deepEqual(chunks, []);
  await turn();
  assert.deepEqual(chunks, ['a\nb\n']);
});

test('much text waits for its reader, and keeps its order', async () => {
  const { stream, chunks, release } = slowStream();
  const output = createOutput(stream);
  await output.write('first\n');
  await turn();
  let isThrough = false;
  const large = 'x'.repeat(100_000);
  const writing = output.write(large).then((isRead) => {
    isThrough = true;
    return isRead;
  });
  await turn();
  assert.equal(isThrough, false);
  release();
  await turn();
  release();
  assert.equal(await writing, true);
  assert.deepEqual(chunks, ['first\n', large]);
});

test('a reader that has gone is told to the writer', async () => {
  const { stream } = slowStream();
  const output = createOutput(stream);
  const writing = output.write('x'.repeat(100_000));
  stream.destroy();
  assert.equal(await writing, false);
  assert.equal(await output.write('more'), false);
  assert.equal(await output.flush(), false);
});

test.run();
