/** The topic that a measurement uses. */
import type { Admin } from '../../net/client/admin.ts';
import { MillraceError } from '../../net/client/errors.ts';

export async function ensureTopic(admin: Admin, topic: string, partitions: number): Promise<void> {
  try {
    await admin.createTopic(topic, { partitions });
  } catch (error) {
    if (!(error instanceof MillraceError) || error.code !== 'TOPIC_ALREADY_EXISTS') throw error;
  }
}
