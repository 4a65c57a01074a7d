/** A bar on standard error while something takes long. Shows nothing where that is no terminal, or in the first moments. */
import { columns, isInteractive } from './terminal.ts';

const firstShownMs = 400;
const redrawMs = 100;
const barWidth = 24;

export interface Progress {
  /** So much more is done. */
  add(amount: number): void;
  /** What is being worked on. */
  note(text: string): void;
  /** Removes the bar. */
  end(): void;
}

/** @param textOf writes an amount for people */
export function createProgress(
  title: string,
  total: number,
  textOf: (amount: number) => string,
): Progress {
  const stream = process.stderr;
  if (!isInteractive(stream)) return { add() {}, note() {}, end() {} };
  const startedMs = performance.now();
  let done = 0;
  let what = '';
  let drawnMs = startedMs + firstShownMs - redrawMs;
  let isDrawn = false;
  const draw = (): void => {
    const nowMs = performance.now();
    if (nowMs - drawnMs < redrawMs) return;
    drawnMs = nowMs;
    isDrawn = true;
    const seconds = Math.max(0.001, (nowMs - startedMs) / 1000);
    const text = progressText({ title, done, total, seconds, what }, textOf);
    stream.write(`\r\u001b[2K${text.slice(0, columns(stream) - 1)}`);
  };
  return {
    add(amount) {
      done += amount;
      draw();
    },
    note(text) {
      what = text;
      draw();
    },
    end() {
      if (isDrawn) stream.write('\r\u001b[2K');
    },
  };
}

interface ProgressState {
  readonly title: string;
  readonly done: number;
  readonly total: number;
  readonly seconds: number;
  readonly what: string;
}

export function progressText(
  { title, done, total, seconds, what }: ProgressState,
  textOf: (amount: number) => string,
): string {
  const part = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(part * barWidth);
  const bar = `${'█'.repeat(filled)}${'░'.repeat(barWidth - filled)}`;
  const percent = `${Math.floor(part * 100)}%`.padStart(4);
  return `${title} ${bar}${percent}  ${textOf(done / seconds)}/s  ${what}`;
}
