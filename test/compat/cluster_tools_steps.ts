/**
 * What `cluster_tools.test.ts` runs with Kafka's tools, line by line, and where Millrace's answer is not Kafka's: each such
 * line with the reason.
 */
import { type Difference, stepsOf } from './tool_comparison.ts';

/** Tool and arguments, divided by blanks. `@name` is what `file name` has written; the verbs
 * `kill`, `stop` and `start` take a broker's id. */
export const steps: readonly string[] = stepsOf(`
stop 3
start 3
kafka-cluster cluster-id
kafka-cluster list-endpoints
kafka-cluster list-endpoints --include-fenced-brokers
kafka-metadata-quorum describe --status
kafka-metadata-quorum describe --replication
kafka-metadata-quorum describe --replication --human-readable

kafka-topics --create --topic three --replica-assignment 1:2:3,2:3:1,3:1:2
kafka-topics --create --topic two --replica-assignment 1:2,2:3,3:1
kafka-topics --create --topic strict --replica-assignment 1:2:3 --config min.insync.replicas=3
kafka-topics --create --topic single --replica-assignment 3
kafka-topics --create --topic wide --partitions 1 --replication-factor 4
kafka-topics --create --topic odd --replica-assignment 1:2,3
kafka-topics --create --topic nowhere --replica-assignment 1:7
kafka-topics --create --topic doubled --replica-assignment 1:1
kafka-topics --describe
kafka-topics --describe --under-replicated-partitions
kafka-topics --describe --unavailable-partitions
kafka-topics --describe --at-min-isr-partitions
kafka-topics --describe --under-min-isr-partitions
kafka-topics --describe --topic three --partition-size-limit-per-response 1

kafka-leader-election --election-type preferred --all-topic-partitions
kafka-leader-election --election-type preferred --topic three --partition 0
kafka-leader-election --election-type unclean --topic three --partition 0
kafka-leader-election --election-type preferred --topic nobody --partition 0
kafka-leader-election --election-type preferred --topic three --partition 7
file elections {"partitions":[{"topic":"three","partition":1},{"topic":"two","partition":0}]}
kafka-leader-election --election-type preferred --path-to-json-file @elections

kill 3
kafka-topics --describe
kafka-topics --describe --under-replicated-partitions
kafka-topics --describe --unavailable-partitions
kafka-topics --describe --at-min-isr-partitions
kafka-topics --describe --under-min-isr-partitions
kafka-leader-election --election-type preferred --topic three --partition 2
kafka-leader-election --election-type unclean --topic single --partition 0
kafka-cluster list-endpoints
kafka-cluster list-endpoints --include-fenced-brokers
kafka-metadata-quorum describe --replication

file dead {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[1,3]}]}
file single {"version":1,"partitions":[{"topic":"single","partition":0,"replicas":[1]}]}
kafka-reassign-partitions --reassignment-json-file @dead --execute
kafka-reassign-partitions --reassignment-json-file @single --execute
kafka-reassign-partitions --list
kafka-reassign-partitions --reassignment-json-file @single --verify
kafka-topics --describe --topic single
start 3
kafka-reassign-partitions --reassignment-json-file @single --verify
kafka-reassign-partitions --list
kafka-topics --describe
kafka-leader-election --election-type preferred --topic three --partition 2
kafka-topics --describe --topic three
kafka-leader-election --election-type preferred --all-topic-partitions
kafka-topics --describe

file topics {"version":1,"topics":[{"topic":"two"},{"topic":"three"}]}
kafka-reassign-partitions --topics-to-move-json-file @topics --broker-list 1,2,3 --generate
kafka-reassign-partitions --topics-to-move-json-file @topics --broker-list 1,2,7 --generate
kafka-reassign-partitions --topics-to-move-json-file @topics --broker-list 1,2 --generate
file move {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[3,2],"log_dirs":["any","any"]},{"topic":"two","partition":1,"replicas":[1,2,3]}]}
kafka-reassign-partitions --reassignment-json-file @move --execute
kafka-reassign-partitions --reassignment-json-file @move --verify
kafka-topics --describe --topic two
file back {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[1,2]},{"topic":"two","partition":1,"replicas":[2,3]}]}
kafka-reassign-partitions --reassignment-json-file @back --execute --throttle 50000000
kafka-configs --describe --entity-type topics --entity-name two
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-reassign-partitions --reassignment-json-file @back --verify --preserve-throttles
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-reassign-partitions --reassignment-json-file @back --verify
kafka-configs --describe --entity-type topics --entity-name two
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-topics --describe --topic two
file unknown {"version":1,"partitions":[{"topic":"nobody","partition":0,"replicas":[1]}]}
file absent {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[1,7]}]}
file doubled {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[1,1]}]}
file empty {"version":1,"partitions":[{"topic":"two","partition":0,"replicas":[]}]}
kafka-reassign-partitions --reassignment-json-file @unknown --execute
kafka-reassign-partitions --reassignment-json-file @absent --execute
kafka-reassign-partitions --reassignment-json-file @doubled --execute
kafka-reassign-partitions --reassignment-json-file @empty --execute
kafka-reassign-partitions --reassignment-json-file @unknown --cancel

kafka-cluster unregister --id 7
kill 3
kafka-topics --describe --topic single
kafka-topics --describe --under-replicated-partitions
kafka-cluster unregister --id 3
kafka-cluster unregister --id 3
kafka-cluster list-endpoints --include-fenced-brokers
kafka-topics --describe
`);

export const differences: readonly Difference[] = [
  {
    reason:
      'the quorum knows the directory of each voter (KIP-853); with static voters Kafka does not',
    step: /describe --status$/,
    kafka: /^CurrentVoters: \[\{"id": 1, "endpoints": /,
    millrace: /^CurrentVoters: \[\{"id": 1, "directoryId": "<id>", "endpoints": /,
  },
  {
    reason: 'Millrace has no cordoned log directories',
    step: /--replication-factor 4$/,
    kafka:
      /only 3 broker\(s\) are registered or some brokers have all their log directories cordoned\.$/,
    millrace: /only 3 broker\(s\) are registered\.$/,
  },
  {
    reason: 'what the tool sets for the throttle has a default of its own',
    step: /--entity-type brokers --entity-name 1$/,
    kafka: /^(?:leader|follower)\.replication\.throttled\.rate=.*=50000000\}$/,
    millrace: /^(?:leader|follower)\.replication\.throttled\.rate=.*=50000000, DEFAULT_CONFIG:/,
  },
  {
    reason: 'a broker that is gone for good is no eligible leader any more',
    step: /^kafka-topics --describe$/,
    kafka: /^Topic: strict .* Elr: 3 LastKnownElr:$/,
    millrace: /^Topic: strict .* Elr: LastKnownElr:$/,
  },
];
