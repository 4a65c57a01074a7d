/** Load at fixed times: message number n is due at n / rate, however the ones before it fare. */

/** How much more is sent when there is no rate: so many messages are on their way at once. */
const unlimitedInFlight = 20_000;
const tickMs = 1;
/** Most messages of one turn, so that answers are read in between. */
const turnMax = 2_000;

export interface OpenLoop {
  /** Messages a second; 0 for as many as are answered. */
  readonly rate: number;
  readonly seconds: number;
  readonly signal: AbortSignal;
  /** Sends a message that is due at `dueMs` (performance.now()); resolves when it is answered. Never rejects. */
  readonly send: (number: number, dueMs: number) => Promise<void>;
}

/** Resolves when all that was sent has been answered. Returns how many were sent, and how long the sending took. */
export async function runOpenLoop(
  loop: OpenLoop,
): Promise<{ readonly sent: number; readonly seconds: number }> {
  const { rate, signal } = loop;
  const begunMs = performance.now();
  const endMs = begunMs + loop.seconds * 1_000;
  let sent = 0;
  let answered = 0;
  let wake: (() => void) | null = null;
  const onAnswer = (): void => {
    answered += 1;
    wake?.();
  };
  const sendOne = (dueMs: number): void => {
    void loop.send(sent, dueMs).then(onAnswer);
    sent += 1;
  };
  for (;;) {
    const nowMs = performance.now();
    if (nowMs >= endMs || signal.aborted) break;
    const isLimited = rate > 0;
    const due = isLimited
      ? Math.floor(((nowMs - begunMs) / 1_000) * rate) + 1
      : answered + unlimitedInFlight;
    for (let left = Math.min(turnMax, due - sent); left > 0; left -= 1)
      sendOne(isLimited ? begunMs + (sent / rate) * 1_000 : performance.now());
    if (sent < due) await new Promise((resolve) => setImmediate(resolve));
    else await new Promise((resolve) => setTimeout(resolve, tickMs));
  }
  const seconds = (performance.now() - begunMs) / 1_000;
  while (answered < sent && !signal.aborted)
    await new Promise<void>((resolve) => {
      wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  return { sent, seconds };
}
