/** Keys and values, which are bytes, as text. */

export const byteFormats = ['text', 'hex', 'base64'] as const;
export type ByteFormat = (typeof byteFormats)[number];

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** The text that the bytes are in UTF-8, or null when they are not. */
export function utf8Of(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/**
 * For a line of text. As `text`, what is not UTF-8 comes as hex digits behind 0x; control characters are escaped as JSON
 * does it, so that a record is one line and the terminal stays as it is.
 */
export function quotedBytes(bytes: Uint8Array | null, format: ByteFormat): string {
  if (bytes === null) return 'null';
  if (format === 'text') {
    const text = utf8Of(bytes);
    return text === null ? `0x${hexOf(bytes)}` : escaped(text);
  }
  return encodedBytes(bytes, format);
}

function escaped(text: string): string {
  // JSON leaves these alone, and a terminal does not: DEL and the C1 controls.
  return JSON.stringify(text).replace(
    /[\u007f-\u009f]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** For JSON, whose reader escapes nothing. As `text`, what is not UTF-8 loses what cannot be said. */
export function encodedBytes(bytes: Uint8Array, format: ByteFormat): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (format === 'text') return buffer.toString('utf8');
  return buffer.toString(format);
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex');
}
