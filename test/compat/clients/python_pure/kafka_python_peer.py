"""kafka-python behind the command contract of ../README.md."""

import time

from contract import ACKS, TIMEOUT_S, UNANSWERED_S, Wanted, read_records, serve
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic


def create(command):
    admin = KafkaAdminClient(bootstrap_servers=command["bootstrap"])
    try:
        topic = NewTopic(command["topic"], num_partitions=command["partitions"], replication_factor=1)
        admin.create_topics([topic])
    finally:
        admin.close()


def produce(command):
    codec = command["codec"]
    producer = KafkaProducer(
        bootstrap_servers=command["bootstrap"],
        acks=ACKS[command["acks"]],
        compression_type=None if codec == "none" else codec,
        enable_idempotence=command["idempotent"],
        linger_ms=20,
        max_request_size=10_000_000,
        delivery_timeout_ms=TIMEOUT_S * 1000,
        request_timeout_ms=10_000,
    )
    try:
        sent = [
            producer.send(command["topic"], partition=command["partition"], **record)
            for record in read_records(command)
        ]
        for future in sent:
            future.get(timeout=TIMEOUT_S)
        if command["acks"] == "0":
            time.sleep(UNANSWERED_S)
    finally:
        producer.close()


def consume(command):
    wanted = Wanted(command)
    consumer = KafkaConsumer(
        bootstrap_servers=command["bootstrap"],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    try:
        consumer.assign([TopicPartition(topic, partition) for topic, partition in wanted.places])
        consumer.seek_to_beginning()
        while not wanted.is_done():
            for messages in consumer.poll(timeout_ms=200).values():
                for message in messages:
                    wanted.take(message)
    finally:
        consumer.close()


if __name__ == "__main__":
    serve(create, produce, consume)
