"""aiokafka behind the command contract of ../README.md."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRebalanceListener, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import CommitFailedError, for_code
from contract import ACKS, TIMEOUT_S, UNANSWERED_S, Member, Stream, Wanted, read_records, serve


async def create(command):
    admin = AIOKafkaAdminClient(bootstrap_servers=command["bootstrap"])
    await admin.start()
    try:
        topic = NewTopic(command["topic"], num_partitions=command["partitions"], replication_factor=1)
        response = await admin.create_topics([topic])
        for _name, code, text in response.topic_errors:
            if code != 0:
                raise for_code(code)(text)
    finally:
        await admin.close()


async def produce(command):
    codec = command["codec"]
    producer = AIOKafkaProducer(
        bootstrap_servers=command["bootstrap"],
        acks=ACKS[command["acks"]],
        compression_type=None if codec == "none" else codec,
        enable_idempotence=command["idempotent"],
        linger_ms=20,
        max_request_size=10_000_000,
        request_timeout_ms=TIMEOUT_S * 1000,
    )
    await producer.start()
    try:
        sent = [
            await producer.send(command["topic"], partition=command["partition"], **record)
            for record in read_records(command)
        ]
        await asyncio.wait_for(asyncio.gather(*sent), TIMEOUT_S)
        if command["acks"] == "0":
            await asyncio.sleep(UNANSWERED_S)
    finally:
        await producer.stop()


async def consume(command):
    wanted = Wanted(command)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=command["bootstrap"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, partition) for topic, partition in wanted.places])
        await consumer.seek_to_beginning()
        while not wanted.is_done():
            for messages in (await consumer.getmany(timeout_ms=200)).values():
                for message in messages:
                    wanted.take(message)
    finally:
        await consumer.stop()


class Listener(ConsumerRebalanceListener):
    def __init__(self, noted):
        self._noted = noted

    async def on_partitions_revoked(self, revoked):
        self._noted.assigned([])

    async def on_partitions_assigned(self, assigned):
        self._noted.assigned(assigned)


async def member(command):
    noted = Member(command)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=command["bootstrap"],
        group_id=command["group"],
        group_instance_id=command["instance"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=300,
    )
    consumer.subscribe([command["topic"]], listener=Listener(noted))
    await consumer.start()
    try:
        while not noted.is_stopped():
            for messages in (await consumer.getmany(timeout_ms=50)).values():
                for message in messages:
                    noted.processed(message)
                place = TopicPartition(messages[-1].topic, messages[-1].partition)
                try:
                    await consumer.commit({place: messages[-1].offset + 1})
                except CommitFailedError:
                    # The group has gone on without us: the next owner reads the records again.
                    pass
    finally:
        await consumer.stop()


async def stream(command):
    noted = Stream(command)
    # Not acknowledged yet; a failed one ends the command.
    waiting = set()
    failures = []
    producer = AIOKafkaProducer(bootstrap_servers=command["bootstrap"], enable_idempotence=True)

    def acked(future, partition, number):
        waiting.discard(future)
        if future.exception() is None:
            noted.acked(partition, number, future.result().offset)
        else:
            failures.append(future.exception())

    await producer.start()
    try:
        while not failures and (record := noted.next()) is not None:
            partition, number, value = record
            future = await producer.send(command["topic"], partition=partition, value=value)
            waiting.add(future)
            future.add_done_callback(lambda done, at=(partition, number): acked(done, *at))
            await asyncio.sleep(command["pauseMs"] / 1000)
        while waiting and not failures:
            await asyncio.wait(waiting)
            await asyncio.sleep(0)
        if failures:
            raise failures[0]
        noted.ended()
    finally:
        await producer.stop()


if __name__ == "__main__":
    commands = (create, produce, consume, member, stream)
    serve(*(lambda command, run=run: asyncio.run(run(command)) for run in commands))
