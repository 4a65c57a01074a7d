/** Reads all records of a cluster's partitions, each from its leader, and holds them against a history. */
import { Client } from './client.ts';
import type { Cluster } from './cluster.ts';
import type { ClusterView } from './cluster_view.ts';
import { assertNoViolations, type History, idOf, type Observed } from './history.ts';
import { laneName, type Target } from './load.ts';

/** Throws with everything that is lost, doubled, moved or made up. The view knows all leaders, which all run. */
export async function assertHistory(
  cluster: Cluster,
  view: ClusterView,
  targets: readonly Target[],
  history: History,
): Promise<void> {
  const violations = [];
  for (const target of targets) {
    const client = await Client.connect(cluster.broker(view.partition(target)?.leaderId ?? -1));
    const observed: Observed[] = [];
    await client.readEach(target.topic, target.partition, ({ offset, value }) =>
      observed.push({ offset, id: idOf(value) }),
    );
    client.close();
    violations.push(...history.check(laneName(target), observed));
  }
  assertNoViolations(violations);
}
