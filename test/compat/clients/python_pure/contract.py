"""Reads the commands of ../README.md from standard input, has a client carry them out, and answers."""

import json
import os
import sys
import time

# How long a producer stays open after acks=0, in seconds: a broker may lose what it has not read when a client closes.
UNANSWERED_S = 0.5
# How long a producer may take to deliver, in seconds.
TIMEOUT_S = 30
ACKS = {"0": 0, "1": 1, "all": "all"}


def to_bytes(text):
    return None if text is None else bytes.fromhex(text)


def to_hex(data):
    return None if data is None else bytes(data).hex()


def read_records(command):
    """The records of a produce command, with bytes in place of hexadecimal."""
    with open(command["input"], encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            yield {
                "key": to_bytes(record["key"]),
                "value": to_bytes(record["value"]),
                "headers": [(name, to_bytes(value)) for name, value in record["headers"]],
                "timestamp_ms": record["timestamp"],
            }


class Wanted:
    """What a consume command still misses, and the file for what comes."""

    def __init__(self, command):
        self.places = [(topic, partition) for topic, partition, _ in command["partitions"]]
        self._missing = {(topic, partition): count for topic, partition, count in command["partitions"]}
        self._deadline = time.monotonic() + command["timeoutMs"] / 1000
        self._path = command["output"]
        self._lines = []

    def take(self, message):
        """Keeps a record: both clients describe it with the same attributes."""
        self._missing[(message.topic, message.partition)] -= 1
        record = {
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            "timestamp": message.timestamp,
            "key": to_hex(message.key),
            "value": to_hex(message.value),
            "headers": [[name, to_hex(value)] for name, value in message.headers],
        }
        self._lines.append(json.dumps(record) + "\n")

    def is_done(self):
        """Raises TimeoutError when the time is over."""
        missing = {place: count for place, count in self._missing.items() if count > 0}
        if not missing:
            with open(self._path, "w", encoding="utf-8") as output:
                output.writelines(self._lines)
            return True
        if time.monotonic() > self._deadline:
            raise TimeoutError(f"timed out; still missing {missing}")
        return False


class Member:
    """What a member command notes of its life in a group."""

    def __init__(self, command):
        self._stop = command["stop"]
        self._events = open(command["output"], "a", buffering=1, encoding="utf-8")

    def assigned(self, partitions):
        self._note({"assigned": sorted(one.partition for one in partitions)})

    def processed(self, message):
        self._note({"partition": message.partition, "offset": message.offset})

    def is_stopped(self):
        return os.path.exists(self._stop)

    def _note(self, event):
        self._events.write(json.dumps(event) + "\n")


class Stream:
    """What a stream command is to send, and what it notes."""

    def __init__(self, command):
        self._stop = command["stop"]
        self._sent = [0] * command["partitions"]
        self._events = open(command["output"], "a", buffering=1, encoding="utf-8")

    def next(self):
        """Partition, number and value of the next record; None when it is over."""
        if os.path.exists(self._stop):
            return None
        partition = sum(self._sent) % len(self._sent)
        number = self._sent[partition]
        self._sent[partition] += 1
        return partition, number, f"{partition}-{number}|".encode()

    def acked(self, partition, number, offset):
        self._note({"partition": partition, "number": number, "offset": offset})

    def ended(self):
        self._note({"sent": self._sent})

    def _note(self, event):
        self._events.write(json.dumps(event) + "\n")


def serve(create, produce, consume, member=None, stream=None):
    commands = {"create": create, "produce": produce, "consume": consume, "member": member, "stream": stream}
    for line in sys.stdin:
        command = json.loads(line)
        try:
            commands[command["command"]](command)
            answer = {"ok": True}
        except Exception as error:  # The answer carries every failure; the driver judges it.
            answer = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)
