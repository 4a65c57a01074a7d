/**
 * Standard output for much text: no faster than its reader, and told when that has seen enough (`… | head`). What comes in
 * one turn of the event loop goes out together at its end.
 */

const chunkCharacters = 64 * 1024;

export interface Output {
  /** Adds text. False when nobody reads any more. */
  write(text: string): Promise<boolean>;
  /** Hands on what is kept back, and resolves when there is room for more. Call it at the end. */
  flush(): Promise<boolean>;
}

export function createOutput(stream: NodeJS.WriteStream = process.stdout): Output {
  let kept = '';
  let isDue = false;
  const flush = async (): Promise<boolean> => {
    if (stream.destroyed) return false;
    if (kept === '') return true;
    const text = kept;
    kept = '';
    if (!stream.write(text)) await roomIn(stream);
    return !stream.destroyed;
  };
  return {
    flush,
    async write(text) {
      kept += text;
      if (!isDue) {
        isDue = true;
        setImmediate(() => {
          isDue = false;
          void flush();
        });
      }
      return kept.length < chunkCharacters ? !stream.destroyed : flush();
    },
  };
}

function roomIn(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done);
      stream.off('close', done);
      resolve();
    };
    stream.on('drain', done);
    stream.on('close', done);
  });
}
