/** Runs `millrace config`. */
import type {
  AlterConfigOptions,
  DescribeConfigOptions,
  ResourceType,
} from '../commands/config.ts';
import { CommandError, withClient } from './connect.ts';
import { printTable } from './table.ts';
import { printJson, writeOut } from './terminal.ts';

/** What holds for all brokers is kept under the empty name. */
function resourceOf(type: ResourceType, name: string): { type: ResourceType; name: string } {
  return { type, name: type === 'broker' && name === 'all' ? '' : name };
}

export function describeConfig(
  type: ResourceType,
  name: string,
  options: DescribeConfigOptions,
): Promise<void> {
  return withClient(options, async (client) => {
    const entries = await client.admin().describeConfig(resourceOf(type, name));
    const shown = entries.filter(
      ({ source }) => options.all === true || (source !== 'default' && source !== 'unknown'),
    );
    if (options.json === true) {
      printJson(shown);
      return;
    }
    if (shown.length === 0) {
      writeOut(`nothing is set for ${type} ${name}; --all shows the defaults\n`);
      return;
    }
    printTable(
      ['setting', 'value', 'from'],
      shown.map((one) => [
        one.name,
        one.isSensitive ? '(secret)' : (one.value ?? '-'),
        one.isReadOnly ? `${one.source}, fixed` : one.source,
      ]),
    );
  });
}

export function alterConfig(
  type: ResourceType,
  name: string,
  options: AlterConfigOptions,
): Promise<void> {
  return withClient(options, async (client) => {
    const { set = {}, unset = [], append = {}, subtract = {}, dryRun = false } = options;
    const changes = { set, unset, append, subtract };
    const count = [set, append, subtract].reduce((sum, one) => sum + Object.keys(one).length, 0);
    if (count + unset.length === 0)
      throw new CommandError(
        'there is nothing to change.',
        'Say what: --set key=value, --unset key, --append key=value or --subtract key=value.',
      );
    const resource = resourceOf(type, name);
    await client.admin().alterConfig(resource, changes, { validateOnly: dryRun });
    if (options.json === true) printJson({ ...resource, ...changes, dryRun });
    else if (dryRun) writeOut('allowed; nothing was changed\n');
    else writeOut(`changed ${type} ${name}\n`);
  });
}
