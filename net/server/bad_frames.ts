/** Texts for connections that do not speak the protocol: what came, and what to do about it. */

/** First bytes of things that people point at a broker's port by mistake, as the int32 that they look like. */
const httpStarts: ReadonlySet<string> = new Set([
  'GET ',
  'HEAD',
  'POST',
  'PUT ',
  'DELE',
  'OPTI',
  'CONN',
  'TRAC',
  'PATC',
  'PRI ',
]);

/**
 * What another protocol's first four bytes are, given as the frame size that they would be: a text with the
 * remedy, or null if they are nothing known.
 */
export function foreignProtocol(size: number): string | null {
  const first = (size >>> 24) & 0xff;
  const second = (size >>> 16) & 0xff;
  // TLS record: type handshake (22), version 3.0 to 3.4.
  if (first === 0x16 && second === 0x03 && ((size >>> 8) & 0xff) <= 4) {
    return 'a TLS handshake came in on a PLAINTEXT listener: set security.protocol=PLAINTEXT in the client';
  }
  const text = String.fromCharCode(first, second, (size >>> 8) & 0xff, size & 0xff);
  if (httpStarts.has(text)) {
    return `an HTTP request ("${text.trim()}") came in on a Kafka listener: use a Kafka client on this port`;
  }
  if (text === 'SSH-') return 'an SSH client connected to a Kafka listener: check its port';
  return null;
}

/** Why a frame of this size is refused. */
export function badSizeReason(size: number, frameBytesMax: number): string {
  if (size < 0) return `a frame of negative size ${size}: not a Kafka client, or a broken one`;
  if (size > frameBytesMax) {
    return `a frame of ${size} bytes, and the limit is ${frameBytesMax}: raise socket.request.max.bytes if the client is a real one`;
  }
  return `a frame of ${size} bytes, too short for a request: not a Kafka client, or a broken one`;
}
