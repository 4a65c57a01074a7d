/** `millrace cluster-info`: the brokers of a cluster and how they are. */
import { Command } from 'commander';
import { type ConnectOptions, connecting } from '../cli/connect.ts';

const help = `
Examples:
  millrace cluster-info
  millrace cluster-info --bootstrap kafka-1:9092,kafka-2:9092 --json
`;

export function clusterInfoCommand(): Command {
  const command = new Command('cluster-info')
    .description('brokers, controller, log directories and the quorum')
    .addHelpText('after', help)
    .allowExcessArguments(false);
  return connecting(command).action(async (options: ConnectOptions) => {
    const { showCluster } = await import('../cli/cluster_view.ts');
    await showCluster(options);
  });
}
