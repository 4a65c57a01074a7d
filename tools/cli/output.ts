/** Standard output for much text: no faster than its reader, and told when that has seen enough (`… | head`). */

const chunkCharacters = 64 * 1024;

export interface Output {
  /** Adds text. False when nobody reads any more. */
  write(text: string): Promise<boolean>;
  /** Hands on what is kept back. Call it before waiting for something else, and at the end. */
  flush(): Promise<boolean>;
}

export function createOutput(stream: NodeJS.WriteStream = process.stdout): Output {
  let kept = '';
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
