/** How many messages the stress tests of the thread fabric send: `--messages N`, or MILLRACE_MESSAGES. */
export function messagesCount(standard: number): number {
  const at = process.argv.indexOf('--messages');
  const text = at >= 0 ? process.argv[at + 1] : process.env['MILLRACE_MESSAGES'];
  const count = Number(text ?? standard);
  if (!(Number.isInteger(count) && count > 0)) throw new Error(`--messages ${text}`);
  return count;
}
