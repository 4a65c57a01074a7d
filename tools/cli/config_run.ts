/** Runs `millrace config`. */

import type { Admin } from '../../net/client/admin.ts';
import type {
  AlterConfigOptions,
  DescribeConfigOptions,
  ResourceType,
} from '../commands/config.ts';
import { CommandError, withClient } from './connect.ts';
import { CliExit } from './exit_code.ts';
import { tableText } from './table.ts';
import { printJson, writeOut } from './terminal.ts';

/** What holds for all brokers is kept under the empty name. */
function resourceOf(type: ResourceType, name: string): { type: ResourceType; name: string } {
  return { type, name: type === 'broker' && name === 'all' ? '' : name };
}

/** A broker that is not there would be waited for until the time is over. */
async function checkBroker(admin: Admin, type: ResourceType, name: string): Promise<void> {
  if (type !== 'broker' || !/^\d+$/.test(name)) return;
  const ids = (await admin.describeCluster()).brokers.map(({ id }) => id);
  if (!ids.includes(Number(name)))
    throw new CommandError(
      `broker ${name} is not among the cluster's brokers: ${ids.join(', ')}.`,
      'It may be down: `millrace cluster-info`.',
      CliExit.failed,
    );
}

export function describeConfig(
  type: ResourceType,
  name: string,
  options: DescribeConfigOptions,
): Promise<void> {
  return withClient(options, async (client) => {
    await checkBroker(client.admin(), type, name);
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
    // Values are what was asked for: the terminal may break them, but nothing is left out.
    const table = tableText(
      ['setting', 'from', 'value'],
      shown.map((one) => [
        one.name,
        one.isReadOnly ? `${one.source}, fixed` : one.source,
        one.isSensitive ? '(secret)' : (one.value ?? '-'),
      ]),
    );
    writeOut(table);
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
    await checkBroker(client.admin(), type, name);
    const resource = resourceOf(type, name);
    await client.admin().alterConfig(resource, changes, { validateOnly: dryRun });
    if (options.json === true) printJson({ ...resource, ...changes, dryRun });
    else if (dryRun) writeOut('allowed; nothing was changed\n');
    else writeOut(`changed ${type} ${name}\n`);
  });
}
