"""aiokafka behind the command contract of ../README.md."""

import asyncio

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import for_code
from contract import ACKS, TIMEOUT_S, UNANSWERED_S, Wanted, read_records, serve


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


if __name__ == "__main__":
    serve(*(lambda command, run=run: asyncio.run(run(command)) for run in (create, produce, consume)))
