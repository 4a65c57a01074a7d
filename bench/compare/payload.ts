/** Files of messages, one a line, for `kcat -P -l`. */
import { closeSync, existsSync, openSync, renameSync, writeSync } from 'node:fs';
import { join } from 'node:path';

export interface Payload {
  file: string;
  messages: number;
  messageBytes: number;
  /** Payload without line ends, in MiB: what figures "per MiB" are divided by. */
  mib: number;
}

/**
 * Writes a file of `messages` lines of `messageBytes` bytes each (line end not counted) into `directory`,
 * or takes the one that is there. The text is printable and differs between neighbours.
 */
export function preparePayload(directory: string, messages: number, messageBytes: number): Payload {
  const file = join(directory, `messages-${messages}x${messageBytes}`);
  const payload = { file, messages, messageBytes, mib: (messages * messageBytes) / 1_024 ** 2 };
  if (existsSync(file)) return payload;
  const linesPerBlock = Math.max(1, Math.floor(1_048_576 / (messageBytes + 1)));
  const block = blockOf(linesPerBlock, messageBytes);
  const fd = openSync(`${file}.part`, 'w');
  for (let left = messages; left > 0; left -= linesPerBlock)
    writeSync(fd, block, 0, Math.min(left, linesPerBlock) * (messageBytes + 1));
  closeSync(fd);
  renameSync(`${file}.part`, file);
  return payload;
}

function blockOf(lines: number, messageBytes: number): Buffer {
  const block = Buffer.alloc(lines * (messageBytes + 1));
  let state = 1;
  for (let at = 0; at < block.length; at += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    const lineEnd = at % (messageBytes + 1) === messageBytes;
    block[at] = lineEnd ? 0x0a : 0x61 + ((state >>> 16) % 26);
  }
  return block;
}
