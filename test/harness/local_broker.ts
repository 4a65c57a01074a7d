/** A broker in the test's own process, for tests that replace its disk or start very many of them. */
import { type Broker, type BrokerSeams, startBroker } from '../../net/broker.ts';
import { loadBrokerConfig } from '../../net/config/load.ts';
import { createLogger } from '../../net/logger.ts';
import { type Settings, testShards } from './broker_process.ts';

/** Starts one on 127.0.0.1 at a free port. It logs nothing below `fatal`. */
export function startLocalBroker(
  dataDir: string,
  settings: Settings,
  seams: BrokerSeams = {},
): Promise<Broker> {
  const all = {
    listeners: 'PLAINTEXT://127.0.0.1:0',
    'log.dirs': dataDir,
    ...testShards(),
    ...settings,
  };
  const sets = Object.entries(all).map(([name, value]) => `${name}=${value}`);
  const { config, errors } = loadBrokerConfig({ sets });
  if (config === null) throw new Error(errors.join('; '));
  return startBroker(config, createLogger({ format: 'text', level: 'fatal' }), seams);
}
