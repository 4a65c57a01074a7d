/** The topics in the metadata that classic consumers join with, as far as the coordinator has to know them. */

const utf8 = new TextDecoder();

/**
 * The topics that a `ConsumerProtocolSubscription` (any version: they all begin alike) names, or null if the bytes are
 * none.
 */
export function subscribedTopicsOf(metadata: Uint8Array): string[] | null {
  const view = new DataView(metadata.buffer, metadata.byteOffset, metadata.byteLength);
  if (view.byteLength < 6 || view.getInt16(0) < 0) return null;
  const count = view.getInt32(2);
  // Each topic takes two bytes for its length at least.
  if (count < 0 || count * 2 > view.byteLength - 6) return null;
  const topics: string[] = [];
  let at = 6;
  for (let index = 0; index < count; index += 1) {
    if (at + 2 > view.byteLength) return null;
    const length = view.getInt16(at);
    at += 2;
    if (length < 0 || at + length > view.byteLength) return null;
    topics.push(utf8.decode(metadata.subarray(at, at + length)));
    at += length;
  }
  return topics;
}
