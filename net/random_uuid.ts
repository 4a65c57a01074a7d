/** Ids in Kafka's form. */
import type { Random } from '../engine/ports.ts';

/** A uuid of version 4 in Kafka's form: 22 characters of base64url, not beginning with '-', which tools take for an option. */
export function randomUuid(random: Random): string {
  for (;;) {
    const bytes = random.bytes(16);
    bytes[6] = (bytes[6]! & 0x0f) | 0x40;
    bytes[8] = (bytes[8]! & 0x3f) | 0x80;
    const text = Buffer.from(bytes).toString('base64url');
    if (!text.startsWith('-')) return text;
  }
}
