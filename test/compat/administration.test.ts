/**
 * Kafka's own tools of administration, the same commands against Millrace and against Kafka: what they print is the same
 * but for the lines that `administration_steps.ts` has a reason for.
 */
import { differences, steps } from './administration_steps.ts';
import { comparisonSuite } from './tool_comparison.ts';

/** Without what differs from run to run; partitions of log directories in the order of their names. */
function normalised(line: string): string {
  const text = line.replaceAll(/(TopicId: )[\w-]{22}/g, '$1<id>');
  if (!text.startsWith('{"brokers":')) return text;
  const parsed = JSON.parse(text) as {
    brokers: { logDirs: { partitions: { partition: string }[] }[] }[];
  };
  for (const { logDirs } of parsed.brokers)
    for (const { partitions } of logDirs)
      partitions.sort((a, b) => (a.partition < b.partition ? -1 : 1));
  return JSON.stringify(parsed);
}

comparisonSuite('administration', { steps, differences, normalised }).run();
