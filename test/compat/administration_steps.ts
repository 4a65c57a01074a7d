/**
 * What `administration.test.ts` runs with Kafka's tools, line by line, and where Millrace's answer is not Kafka's: each
 * such line with the reason.
 */
import { type Difference, stepsOf } from './tool_comparison.ts';

/** Tool and arguments, divided by blanks. `@id(topic)` stands for the topic's id. `produce` sends a record: topic,
 * partition, timestamp. */
export const steps: readonly string[] = stepsOf(`
kafka-configs --alter --entity-type brokers --entity-default --add-config min.insync.replicas=1

kafka-topics --create --topic one --partitions 2 --replication-factor 1
kafka-topics --create --topic two --partitions 1 --config retention.ms=1000000 --config cleanup.policy=compact
kafka-topics --create --topic placed --replica-assignment 1,1,1 --config retention.ms=-1
kafka-topics --create --topic one --partitions 2
kafka-topics --create --topic one --partitions 2 --if-not-exists
kafka-topics --create --topic bad/name
kafka-topics --create --topic wide --replication-factor 3
kafka-topics --create --topic none --partitions 0
kafka-topics --create --topic misspelt --config retntion.ms=1
kafka-topics --create --topic wrong --config retention.ms=x
kafka-topics --list
kafka-topics --list --exclude-internal
kafka-topics --list --topic o.*
kafka-topics --describe
kafka-topics --describe --topic one
kafka-topics --describe --topic-id @id(one)
kafka-topics --describe --topics-with-overrides
kafka-topics --describe --unavailable-partitions
kafka-topics --describe --under-replicated-partitions
kafka-topics --describe --under-min-isr-partitions
kafka-topics --describe --at-min-isr-partitions
kafka-topics --describe --topic nobody
kafka-topics --describe --topic nobody --if-exists

kafka-topics --alter --topic one --partitions 4
kafka-topics --alter --topic one --partitions 4
kafka-topics --alter --topic one --partitions 3
kafka-topics --alter --topic nobody --partitions 3
kafka-topics --alter --topic nobody --partitions 3 --if-exists
kafka-topics --alter --topic one --partitions 6 --replica-assignment 1,1,1,1,1,1
kafka-topics --alter --topic one --partitions 8 --replica-assignment 1,1,1,1,1,1,7,1
kafka-topics --alter --topic one --partitions 7 --replica-assignment 1,1,1,1,1,1,1,1
kafka-topics --describe --topic one

kafka-configs --describe --entity-type topics --entity-name one
kafka-configs --describe --entity-type topics
kafka-configs --alter --entity-type topics --entity-name one --add-config retention.ms=12345,segment.ms=2000
kafka-configs --describe --entity-type topics --entity-name one
kafka-configs --describe --entity-type topics --entity-name one --all
kafka-topics --describe --topics-with-overrides
kafka-configs --alter --entity-type topics --entity-name one --delete-config segment.ms
kafka-configs --alter --entity-type topics --entity-name one --delete-config segment.ms
kafka-configs --alter --entity-type topics --entity-name one --add-config cleanup.policy=[compact,delete]
kafka-configs --alter --entity-type topics --entity-name one --add-config retntion.ms=1
kafka-configs --alter --entity-type topics --entity-name one --add-config retention.ms=x
kafka-configs --alter --entity-type topics --entity-name one --add-config retention.ms=-2
kafka-configs --alter --entity-type topics --entity-name one --add-config cleanup.policy=forget
kafka-configs --alter --entity-type topics --entity-name one --add-config min.compaction.lag.ms=5000,max.compaction.lag.ms=100
kafka-configs --alter --entity-type topics --entity-name nobody --add-config retention.ms=5
kafka-configs --describe --entity-type topics --entity-name one
kafka-configs --describe --entity-type topics --entity-name nobody

kafka-configs --describe --entity-type brokers
kafka-configs --describe --entity-type brokers --entity-default
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-configs --describe --entity-type brokers --entity-name 2
kafka-configs --describe --entity-type brokers --entity-name x
kafka-configs --alter --entity-type brokers --entity-default --add-config log.retention.ms=777777,message.max.bytes=2000000
kafka-configs --alter --entity-type brokers --entity-name 1 --add-config log.retention.ms=888888
kafka-configs --describe --entity-type brokers
kafka-configs --describe --entity-type brokers --entity-default
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-configs --describe --entity-type brokers --entity-name 1 --all
kafka-configs --describe --entity-type topics --entity-name two --all
kafka-configs --alter --entity-type brokers --entity-name 1 --add-config num.partitions=3
kafka-configs --alter --entity-type brokers --entity-name 1 --add-config log.retention.ms=x
kafka-configs --alter --entity-type brokers --entity-name 1 --add-config log.retention.msx=1
kafka-configs --alter --entity-type brokers --entity-name 1 --add-config ssl.keystore.type=PKCS12
kafka-configs --alter --entity-type brokers --entity-default --add-config listeners=PLAINTEXT://:1
kafka-configs --alter --entity-type brokers --entity-name 1 --delete-config log.retention.ms
kafka-configs --describe --entity-type brokers --entity-name 1
kafka-configs --alter --entity-type brokers --entity-default --delete-config log.retention.ms,message.max.bytes
kafka-configs --describe --entity-type brokers --entity-default

kafka-configs --describe --entity-type broker-loggers --entity-name 1
kafka-configs --alter --entity-type broker-loggers --entity-name 1 --add-config root=INFO
kafka-configs --describe --entity-type users
kafka-configs --describe --entity-type clients
kafka-configs --describe --entity-type ips
kafka-configs --describe --entity-type client-metrics
kafka-configs --alter --entity-type users --entity-name a --add-config producer_byte_rate=5
kafka-configs --alter --entity-type client-metrics --entity-name a --add-config interval.ms=5000
kafka-configs --alter --entity-type groups --entity-name a --add-config consumer.session.timeout.ms=50000

kafka-log-dirs --describe
kafka-log-dirs --describe --topic-list one,two
kafka-log-dirs --describe --topic-list nobody
kafka-log-dirs --describe --broker-list 1
kafka-log-dirs --describe --broker-list 1,2

produce placed 0 1700000000000
produce placed 0 1700000002000
produce placed 0 1700000001000
produce placed 1 1700000000000
kafka-log-dirs --describe --topic-list placed
kafka-get-offsets
kafka-get-offsets --topic placed
kafka-get-offsets --topic placed --time -1
kafka-get-offsets --topic placed --time latest
kafka-get-offsets --topic placed --time -2
kafka-get-offsets --topic placed --time earliest
kafka-get-offsets --topic placed --time -3
kafka-get-offsets --topic placed --time max-timestamp
kafka-get-offsets --topic placed --time -4
kafka-get-offsets --topic placed --time -5
kafka-get-offsets --topic placed --time -6
kafka-get-offsets --topic placed --time 1
kafka-get-offsets --topic placed --time 1700000000000
kafka-get-offsets --topic placed --time 1700000000001
kafka-get-offsets --topic placed --time 1700000001500
kafka-get-offsets --topic placed --time 99999999999999
kafka-get-offsets --topic placed --partitions 1,2
kafka-get-offsets --topic-partitions one:1,placed:0-2,two:0
kafka-get-offsets --topic o.*
kafka-get-offsets --topic nobody
kafka-get-offsets --topic placed --exclude-internal-topics

kafka-topics --delete --topic placed
kafka-topics --delete --topic nobody
kafka-topics --delete --topic nobody --if-exists
kafka-topics --list
`);

const describedBroker = /--entity-type brokers .*--all$/;
const started =
  /^ {2}(?:broker\.id|node\.id|process\.roles|controller\.listener\.names|controller\.quorum\.voters|listeners|log\.dir)=/;
const refusedHere = /^Error while executing config command|^java\.util\.concurrent|exited with 1$/;
const doneThere = /^Completed updating config|^ends with success$/;

export const differences: readonly Difference[] = [
  {
    reason: 'a misspelt key gets the nearest known one',
    step: /retntion\.ms=1$/,
    kafka: /Unknown topic config name: retntion\.ms$/,
    millrace: /Unknown topic config name: retntion\.ms\. Did you mean retention\.ms\?$/,
  },
  {
    reason: 'a bad value is answered with what is allowed',
    step: /--alter .*(?:retention\.ms=x|retention\.ms=-2|policy=forget)$/,
    kafka: /Exception: Invalid value \S+ for configuration/,
    millrace: /Exception: Invalid value \S+ for configuration \S+: allowed: /,
  },
  {
    reason: 'who cannot change a setting at run time is told how it can be changed',
    step: /(?:num\.partitions=3|listeners=\S+)$/,
    kafka: /Exception: Cannot update these configs .*\[[\w.]+\]$/,
    millrace: /\[[\w.]+\]\. Set it in the properties file and restart$/,
  },
  {
    reason:
      'Kafka keeps unknown settings of brokers for plugins; Millrace has none, and tells of the slip',
    step: /log\.retention\.msx=1$/,
    kafka: doneThere,
    millrace: refusedHere,
  },
  {
    reason: 'the unknown setting that Kafka has kept',
    step: /--describe --entity-type brokers/,
    kafka: /^ {2}log\.retention\.msx=null/,
  },
  {
    reason: 'Millrace has no loggers to be changed one by one (KIP-412)',
    step: /--entity-type broker-loggers/,
    kafka: /^ {2}(?:root|org\.apache[\w.]+)=|^Completed updating|^ends with success$/,
    millrace: /^Invalid broker logger|exited with 1$|^ends with success$/,
  },
  {
    reason: 'there are no quotas yet: their APIs are not advertised',
    step: /--entity-type (?:users|clients|ips)/,
    kafka: doneThere,
    millrace: refusedHere,
  },
  {
    reason: 'client metrics and settings of single groups are not supported yet',
    step: /--alter --entity-type (?:client-metrics|groups)/,
    kafka: doneThere,
    millrace: refusedHere,
  },
  {
    reason: 'a smaller default, so that a small batch cannot take a large memory',
    step: /--all$/,
    kafka: /^ {2}max\.decompressed\.message\.bytes=/,
    millrace: /^ {2}max\.decompressed\.message\.bytes=/,
  },
  {
    reason: 'Millrace keeps records for 14 days where Kafka keeps them for 7',
    step: /^kafka-configs --describe/,
    kafka: /DEFAULT_CONFIG:log\.retention\.hours=168/,
    millrace: /DEFAULT_CONFIG:log\.retention\.hours=336/,
  },
  {
    reason: 'Millrace has no cordoned log directories',
    step: /--replication-factor 3$/,
    kafka:
      /only 1 broker\(s\) are registered or some brokers have all their log directories cordoned\.$/,
    millrace: /only 1 broker\(s\) are registered\.$/,
  },
  {
    reason: 'Millrace has these settings, Kafka does not',
    step: describedBroker,
    millrace: /^ {2}(?:log\.durability|log\.retention\.warn\.ahead\.ms|num\.shards)=/,
  },
  {
    reason: 'older tools learn from this setting, which Kafka dropped, what a broker can do',
    step: describedBroker,
    millrace: /^ {2}inter\.broker\.protocol\.version=/,
  },
  {
    reason: 'the defaults are classes of Java',
    step: describedBroker,
    kafka: /^ {2}[\w.]+=org\.apache\.kafka\.[\w.]+ sensitive/,
    millrace:
      /^ {2}(?:metric\.reporters|principal\.builder\.class|remote\.log\.metadata\.manager\.class\.name|sasl\.oauthbearer\.jwt\.(?:retriever|validator)\.class)=null/,
  },
  {
    reason: 'by default as many replicas of the offsets as there are brokers, three at most',
    step: describedBroker,
    kafka: /DEFAULT_CONFIG:offsets\.topic\.replication\.factor=3/,
    millrace: /DEFAULT_CONFIG:offsets\.topic\.replication\.factor=-1/,
  },
  {
    reason: 'what Kafka must be given, Millrace has a default for',
    step: describedBroker,
    kafka: started,
    millrace: started,
  },
  {
    reason: 'other defaults: fewer background threads, a longer queue of connections',
    step: describedBroker,
    kafka: /^ {2}(?:background\.threads|socket\.listen\.backlog\.size)=/,
    millrace: /^ {2}(?:background\.threads|socket\.listen\.backlog\.size)=/,
  },
];
