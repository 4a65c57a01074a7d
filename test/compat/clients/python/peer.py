"""confluent-kafka (librdkafka) behind the command contract of ../README.md."""

import json
import os
import sys
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)


# What a member goes on after: a rebalance, or something that is to be tried again.
PASSING = {
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError._STATE,
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._WAIT_COORD,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_ENOUGH_REPLICAS,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}


def to_bytes(text):
    return None if text is None else bytes.fromhex(text)


def to_hex(data):
    return None if data is None else data.hex()


def create(command):
    admin = AdminClient({"bootstrap.servers": command["bootstrap"]})
    topic = NewTopic(command["topic"], num_partitions=command["partitions"], replication_factor=1)
    for future in admin.create_topics([topic], operation_timeout=30).values():
        future.result()


def administer(command):
    """Changes a topic of two partitions in every way, and writes what the calls say of it."""
    admin = AdminClient({"bootstrap.servers": command["bootstrap"]})
    topic = command["topic"]
    found = {}

    def result(futures):
        return next(iter(futures.values())).result()

    def failure(futures):
        try:
            result(futures)
        except KafkaException as error:
            return [error.args[0].name(), error.args[0].str()]
        return None

    def changed(name, operation, value):
        entry = ConfigEntry(name, value, incremental_operation=operation)
        resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        return admin.incremental_alter_configs([resource])

    def described(kind, resource, name):
        entry = result(admin.describe_configs([ConfigResource(kind, resource)]))[name]
        return [entry.value, entry.source, entry.is_read_only, entry.is_default]

    result(admin.create_partitions([NewPartitions(topic, 4)]))
    found["partitions"] = len(admin.list_topics(topic).topics[topic].partitions)
    found["fewer"] = failure(admin.create_partitions([NewPartitions(topic, 3)]))
    placed = NewPartitions(topic, 5, replica_assignment=[[1]])
    result(admin.create_partitions([placed], validate_only=True))
    found["validated"] = len(admin.list_topics(topic).topics[topic].partitions)

    result(changed("retention.ms", AlterConfigOpType.SET, "5000"))
    found["set"] = described(ResourceType.TOPIC, topic, "retention.ms")
    result(changed("cleanup.policy", AlterConfigOpType.APPEND, "compact"))
    found["appended"] = described(ResourceType.TOPIC, topic, "cleanup.policy")
    result(changed("cleanup.policy", AlterConfigOpType.SUBTRACT, "delete"))
    found["subtracted"] = described(ResourceType.TOPIC, topic, "cleanup.policy")
    result(changed("retention.ms", AlterConfigOpType.DELETE, None))
    found["deleted"] = described(ResourceType.TOPIC, topic, "retention.ms")
    found["unknown"] = failure(changed("retntion.ms", AlterConfigOpType.SET, "1"))

    replaced = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "6000"})
    result(admin.alter_configs([replaced]))
    found["replaced"] = described(ResourceType.TOPIC, topic, "segment.ms")
    found["dropped"] = described(ResourceType.TOPIC, topic, "cleanup.policy")
    found["broker"] = described(ResourceType.BROKER, "1", "message.max.bytes")
    found["fixed"] = described(ResourceType.BROKER, "1", "num.partitions")

    for name, spec in (
        ("latest", OffsetSpec.latest()),
        ("earliest", OffsetSpec.earliest()),
        ("largest", OffsetSpec.max_timestamp()),
        ("at", OffsetSpec.for_timestamp(1)),
    ):
        found[name] = result(admin.list_offsets({TopicPartition(topic, 0): spec})).offset
    with open(command["output"], "w", encoding="utf-8") as output:
        output.write(json.dumps(found) + "\n")


def produce(command):
    failures = []
    producer = Producer(
        {
            "bootstrap.servers": command["bootstrap"],
            "compression.type": command["codec"],
            "acks": command["acks"],
            "enable.idempotence": command["idempotent"],
            "linger.ms": 20,
            "message.max.bytes": 10_000_000,
            "message.timeout.ms": 30_000,
        }
    )

    def delivered(error, _message):
        if error is not None:
            failures.append(error)

    with open(command["input"], encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            producer.produce(
                command["topic"],
                partition=command["partition"],
                key=to_bytes(record["key"]),
                value=to_bytes(record["value"]),
                headers=[(name, to_bytes(value)) for name, value in record["headers"]],
                timestamp=record["timestamp"],
                on_delivery=delivered,
            )
            producer.poll(0)
    if producer.flush(30) != 0:
        raise TimeoutError("not everything was delivered in 30 s")
    if failures:
        raise KafkaException(failures[0])
    if command["acks"] == "0":
        # A broker may lose what it has not read when a client closes its connection.
        time.sleep(0.5)


def consume(command):
    consumer = Consumer(
        {
            "bootstrap.servers": command["bootstrap"],
            # The client insists on a name, although nothing is committed and nothing is subscribed.
            "group.id": "compat",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 100,
        }
    )
    missing = {(topic, partition): count for topic, partition, count in command["partitions"]}
    deadline = time.monotonic() + command["timeoutMs"] / 1000
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in missing])
        with open(command["output"], "w", encoding="utf-8") as output:
            while any(count > 0 for count in missing.values()):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"timed out; still missing {missing}")
                message = consumer.poll(0.2)
                if message is None:
                    continue
                if message.error() is not None:
                    raise KafkaException(message.error())
                missing[(message.topic(), message.partition())] -= 1
                output.write(json.dumps(describe(message)) + "\n")
    finally:
        consumer.close()


def describe(message):
    return {
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": to_hex(message.key()),
        "value": to_hex(message.value()),
        "headers": [[name, to_hex(value)] for name, value in message.headers() or []],
    }


def member(command):
    cooperative = command["strategy"] == "cooperative"
    settings = {
        "bootstrap.servers": command["bootstrap"],
        "group.id": command["group"],
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
    }
    if command["instance"] is not None:
        settings["group.instance.id"] = command["instance"]
    if command["protocol"] == "consumer":
        settings["group.protocol"] = "consumer"
    else:
        settings["session.timeout.ms"] = 6_000
        settings["heartbeat.interval.ms"] = 300
        settings["partition.assignment.strategy"] = "cooperative-sticky" if cooperative else "range"
    owned = set()
    # Offset to commit by partition: processed, and not committed yet.
    done = {}
    events = open(command["output"], "a", buffering=1, encoding="utf-8")

    def note(event):
        events.write(json.dumps(event) + "\n")

    def assigned(_consumer, partitions):
        owned.update(one.partition for one in partitions)
        note({"assigned": sorted(owned)})

    def revoked(_consumer, partitions):
        for one in partitions:
            owned.discard(one.partition)
            # The next owner reads these records again.
            done.pop(one.partition, None)
        note({"assigned": sorted(owned)})

    consumer = Consumer(settings)
    consumer.subscribe([command["topic"]], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
    try:
        while done or not os.path.exists(command["stop"]):
            message = consumer.poll(0.05)
            if message is not None and message.error() is not None:
                check_passes(message.error())
            elif message is not None:
                note({"partition": message.partition(), "offset": message.offset()})
                done[message.partition()] = message.offset() + 1
            if not done:
                continue
            offsets = [TopicPartition(command["topic"], partition, offset) for partition, offset in done.items()]
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
                done.clear()
            except KafkaException as error:
                # In the middle of a rebalance: again after it, for what stays ours.
                print(f"commit: {error}", file=sys.stderr)
                check_passes(error.args[0])
    finally:
        consumer.close()
        events.close()


def check_passes(error):
    if error.fatal() or error.code() not in PASSING:
        raise KafkaException(error)


def stream(command):
    """Sends until it is told to stop, and notes each acknowledgement."""
    failures = []
    sent = [0] * command["partitions"]
    settings = {"bootstrap.servers": command["bootstrap"], "enable.idempotence": True}
    producer = Producer({**settings, **command.get("settings", {})})
    events = open(command["output"], "a", buffering=1, encoding="utf-8")

    def delivered(error, message):
        if error is not None:
            failures.append(error)
            return
        number = int(message.value().decode().rstrip("|").split("-")[1])
        event = {"partition": message.partition(), "number": number, "offset": message.offset()}
        event["ms"] = time.time() * 1000
        events.write(json.dumps(event) + "\n")

    while not failures and not os.path.exists(command["stop"]):
        partition = sum(sent) % len(sent)
        value = f"{partition}-{sent[partition]}|"
        sent[partition] += 1
        producer.produce(command["topic"], partition=partition, value=value, on_delivery=delivered)
        producer.poll(command["pauseMs"] / 1000)
    while not failures and len(producer) > 0:
        producer.poll(0.1)
    if failures:
        raise KafkaException(failures[0])
    events.write(json.dumps({"sent": sent}) + "\n")
    events.close()


COMMANDS = {
    "create": create,
    "administer": administer,
    "produce": produce,
    "consume": consume,
    "member": member,
    "stream": stream,
}


def main():
    for line in sys.stdin:
        command = json.loads(line)
        try:
            COMMANDS[command["command"]](command)
            answer = {"ok": True}
        except Exception as error:  # The answer carries every failure; the driver judges it.
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
