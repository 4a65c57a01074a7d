/** What `millrace topic` changes. */
import { MillraceError } from '../../net/client/errors.ts';
import type { AlterOptions, CreateOptions, DeleteOptions } from '../commands/topic.ts';
import { CommandError, type ConnectOptions, withClient } from './connect.ts';
import { countText } from './quantity.ts';
import { printJson, writeOut } from './terminal.ts';

export function createTopic(topic: string, options: CreateOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    const { partitions, replicas: replicationFactor, set: configs } = options;
    try {
      const made = await admin.createTopic(topic, { partitions, replicationFactor, configs });
      if (options.json === true) printJson({ created: true, ...made });
      else writeOut(`created ${topic}: ${describe(made.partitions, made.replicationFactor)}\n`);
    } catch (error) {
      const isThere = error instanceof MillraceError && error.code === 'TOPIC_ALREADY_EXISTS';
      if (!isThere || options.ifNotExists !== true) throw error;
      if (options.json === true) printJson({ created: false, name: topic });
      else writeOut(`${topic} is there already\n`);
    }
  });
}

function describe(partitions: number, replicas: number): string {
  if (partitions < 0) return 'done';
  return `${countText(partitions, 'partition')}, ${countText(replicas, 'replica')} each`;
}

export function alterTopic(topic: string, options: AlterOptions): Promise<void> {
  return withClient(options, async (client) => {
    const { set = {}, unset = [] } = options;
    if (Object.keys(set).length + unset.length === 0)
      throw new CommandError(
        'there is nothing to change.',
        'Say what: --set retention.ms=86400000, or --unset retention.ms.',
      );
    await client.admin().alterConfig({ type: 'topic', name: topic }, { set, unset });
    if (options.json === true) printJson({ name: topic, set, unset });
    else writeOut(`changed ${topic}\n`);
  });
}

export function addPartitions(
  topic: string,
  total: number,
  options: ConnectOptions,
): Promise<void> {
  return withClient(options, async (client) => {
    await client.admin().addPartitions(topic, total);
    if (options.json === true) printJson({ name: topic, partitions: total });
    else writeOut(`${topic} has ${countText(total, 'partition')} now\n`);
  });
}

export function deleteTopics(topics: readonly string[], options: DeleteOptions): Promise<void> {
  return withClient(options, async (client) => {
    const admin = client.admin();
    const deleted: string[] = [];
    for (const topic of topics) {
      try {
        await admin.deleteTopic(topic);
        deleted.push(topic);
        if (options.json !== true) writeOut(`deleted ${topic}\n`);
      } catch (error) {
        const isMissing =
          error instanceof MillraceError && error.code === 'UNKNOWN_TOPIC_OR_PARTITION';
        if (!isMissing || options.ifExists !== true) throw error;
        if (options.json !== true) writeOut(`${topic} is not there\n`);
      }
    }
    if (options.json === true) printJson({ deleted });
  });
}
