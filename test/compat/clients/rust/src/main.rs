//! rdkafka, of 2019, with the librdkafka 1.2.2 that it builds, behind the command contract of ../../README.md.

use std::error::Error;
use std::fs::{read_to_string, File};
use std::io::{stdin, BufRead, BufWriter, Write};
use std::thread::sleep;
use std::time::{Duration, Instant};

use futures::Future;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::message::{BorrowedMessage, Headers, Message, OwnedHeaders};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{Offset, TopicPartitionList};
use serde_json::{json, Value};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// How long a producer stays open after acks=0: a broker may lose what it has not read when a client closes.
const UNANSWERED: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(30);

fn main() {
    for line in stdin().lock().lines() {
        let answer = match run(&line.expect("standard input is text")) {
            Ok(()) => json!({"ok": true}),
            Err(error) => json!({"ok": false, "error": error.to_string()}),
        };
        println!("{answer}");
    }
}

fn run(line: &str) -> Outcome<()> {
    let command: Value = serde_json::from_str(line)?;
    match text(&command, "command")? {
        "create" => create(&command),
        "produce" => produce(&command),
        "consume" => consume(&command),
        other => Err(format!("unknown command {other}").into()),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Outcome<&'a str> {
    value[name]
        .as_str()
        .ok_or_else(|| format!("{name} is missing").into())
}

fn number(value: &Value) -> Outcome<i64> {
    value
        .as_i64()
        .ok_or_else(|| format!("{value} is not a number").into())
}

fn bytes(value: &Value) -> Outcome<Option<Vec<u8>>> {
    Ok(value.as_str().map(hex::decode).transpose()?)
}

fn config(command: &Value) -> Outcome<ClientConfig> {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", text(command, "bootstrap")?);
    Ok(config)
}

fn create(command: &Value) -> Outcome<()> {
    let admin: AdminClient<DefaultClientContext> = config(command)?.create()?;
    let partitions = number(&command["partitions"])? as i32;
    let topic = NewTopic::new(
        text(command, "topic")?,
        partitions,
        TopicReplication::Fixed(1),
    );
    // Without it, the broker is asked not to wait, and its answer is taken for success, whatever it is.
    let options = AdminOptions::new().operation_timeout(Some(TIMEOUT));
    for result in admin.create_topics(&[topic], &options).wait()? {
        result.map_err(|(name, code)| format!("{name}: {code}"))?;
    }
    Ok(())
}

fn produce(command: &Value) -> Outcome<()> {
    let acks = text(command, "acks")?;
    let producer: FutureProducer = config(command)?
        .set("compression.type", text(command, "codec")?)
        .set("acks", acks)
        .set("enable.idempotence", &command["idempotent"].to_string())
        .set("queue.buffering.max.ms", "20")
        .set("message.max.bytes", "10000000")
        .set("message.timeout.ms", &TIMEOUT.as_millis().to_string())
        .create()?;
    let partition = number(&command["partition"])? as i32;
    let mut sent = Vec::new();
    for line in read_to_string(text(command, "input")?)?.lines() {
        let record: Value = serde_json::from_str(line)?;
        let (key, payload) = (bytes(&record["key"])?, bytes(&record["value"])?);
        let mut headers = OwnedHeaders::new();
        for header in record["headers"].as_array().ok_or("headers are missing")? {
            let name = header[0].as_str().ok_or("a header has no name")?;
            headers = headers.add(name, &bytes(&header[1])?.ok_or("a header has no value")?);
        }
        let outgoing = FutureRecord {
            topic: text(command, "topic")?,
            partition: Some(partition),
            payload: payload.as_ref(),
            key: key.as_ref(),
            timestamp: Some(number(&record["timestamp"])?),
            headers: Some(headers),
        };
        sent.push(producer.send(outgoing, 0));
    }
    for delivery in sent {
        delivery.wait()?.map_err(|(error, _)| error)?;
    }
    if acks == "0" {
        sleep(UNANSWERED);
    }
    Ok(())
}

fn consume(command: &Value) -> Outcome<()> {
    let consumer: BaseConsumer = config(command)?
        // The client insists on a name, although nothing is committed and nothing is subscribed.
        .set("group.id", "compat")
        .set("enable.auto.commit", "false")
        .set("fetch.wait.max.ms", "100")
        .create()?;
    let mut places = TopicPartitionList::new();
    let mut missing = 0;
    for wanted in command["partitions"]
        .as_array()
        .ok_or("partitions are missing")?
    {
        let topic = wanted[0].as_str().ok_or("a topic is missing")?;
        // A number, not Offset::Beginning: for that, this librdkafka asks the group's coordinator first.
        places.add_partition_offset(topic, number(&wanted[1])? as i32, Offset::Offset(0));
        missing += number(&wanted[2])?;
    }
    consumer.assign(&places)?;
    let deadline = Instant::now() + Duration::from_millis(number(&command["timeoutMs"])? as u64);
    let mut output = BufWriter::new(File::create(text(command, "output")?)?);
    while missing > 0 {
        if Instant::now() > deadline {
            return Err(format!("timed out; {missing} records are missing").into());
        }
        if let Some(message) = consumer.poll(Duration::from_millis(200)) {
            writeln!(output, "{}", describe(&message?))?;
            missing -= 1;
        }
    }
    Ok(output.flush()?)
}

fn describe(message: &BorrowedMessage) -> Value {
    let headers = message.headers().map_or_else(Vec::new, |headers| {
        let pairs = (0..headers.count()).filter_map(|index| headers.get(index));
        pairs
            .map(|(name, value)| json!([name, hex::encode(value)]))
            .collect()
    });
    json!({
        "topic": message.topic(),
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp().to_millis(),
        "key": message.key().map(hex::encode),
        "value": message.payload().map(hex::encode),
        "headers": headers,
    })
}
