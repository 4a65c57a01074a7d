const words = [
  'the',
  'quick',
  'brown',
  'fox',
  '{"id":',
  '"name":',
  'jumps',
  'over',
  'lazy',
  'dogs',
];

/** Text that compresses about as logs and JSON do, the same on every run. */
export function textBytes(length: number): Uint8Array {
  let state = 1;
  let text = '';
  while (text.length < length) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fff_ffff;
    text += `${words[(state >> 8) % words.length]}${(state >> 4) % 1_000} `;
  }
  return new Uint8Array(Buffer.from(text.slice(0, length), 'latin1'));
}
