import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's Java client of 2018 behind the command contract of ../README.md: the oldest that Kafka 4 still serves. */
public final class OldPeer {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** How long a connection stays open after acks=0: a broker may lose what it has not read when a client closes. */
  private static final long UNANSWERED_MS = 500;

  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      ObjectNode answer = JSON.createObjectNode();
      try {
        run(JSON.readTree(line));
        answer.put("ok", true);
      } catch (Throwable error) {
        error.printStackTrace();
        answer.put("ok", false).put("error", error.toString());
      }
      answers.println(JSON.writeValueAsString(answer));
      answers.flush();
    }
  }

  private static void run(JsonNode command) throws Exception {
    switch (command.get("command").asText()) {
      case "create" -> create(command);
      case "produce" -> produce(command);
      case "consume" -> consume(command);
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private static Map<String, Object> settings(JsonNode command) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", command.get("bootstrap").asText());
    return settings;
  }

  private static void create(JsonNode command) throws Exception {
    try (AdminClient admin = AdminClient.create(settings(command))) {
      NewTopic topic = new NewTopic(command.get("topic").asText(), command.get("partitions").asInt(), (short) 1);
      admin.createTopics(List.of(topic)).all().get();
    }
  }

  private static void produce(JsonNode command) throws Exception {
    Map<String, Object> settings = settings(command);
    settings.put("compression.type", command.get("codec").asText());
    settings.put("acks", command.get("acks").asText());
    settings.put("enable.idempotence", command.get("idempotent").asBoolean());
    settings.put("linger.ms", 20);
    settings.put("max.request.size", 10_000_000);
    settings.put("delivery.timeout.ms", 30_000);
    settings.put("request.timeout.ms", 10_000);
    ByteArraySerializer serializer = new ByteArraySerializer();
    List<Future<RecordMetadata>> sent = new ArrayList<>();
    try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, serializer, serializer)) {
      for (String line : Files.readAllLines(Path.of(command.get("input").asText()))) {
        JsonNode record = JSON.readTree(line);
        List<Header> headers = new ArrayList<>();
        for (JsonNode header : record.get("headers")) {
          headers.add(new RecordHeader(header.get(0).asText(), bytes(header.get(1))));
        }
        sent.add(producer.send(new ProducerRecord<>(command.get("topic").asText(), command.get("partition").asInt(),
            record.get("timestamp").asLong(), bytes(record.get("key")), bytes(record.get("value")), headers)));
      }
      producer.flush();
      for (Future<RecordMetadata> one : sent) one.get();
      if (command.get("acks").asText().equals("0")) Thread.sleep(UNANSWERED_MS);
    }
  }

  private static void consume(JsonNode command) throws Exception {
    Map<String, Object> settings = settings(command);
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", false);
    Map<TopicPartition, Integer> missing = new HashMap<>();
    for (JsonNode wanted : command.get("partitions")) {
      missing.put(new TopicPartition(wanted.get(0).asText(), wanted.get(1).asInt()), wanted.get(2).asInt());
    }
    long deadline = System.nanoTime() + command.get("timeoutMs").asLong() * 1_000_000;
    ByteArrayDeserializer deserializer = new ByteArrayDeserializer();
    try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, deserializer, deserializer);
        BufferedWriter output = Files.newBufferedWriter(Path.of(command.get("output").asText()))) {
      consumer.assign(missing.keySet());
      consumer.seekToBeginning(consumer.assignment());
      while (missing.values().stream().anyMatch(count -> count > 0)) {
        if (System.nanoTime() > deadline) throw new IllegalStateException("timed out; still missing " + missing);
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
          missing.merge(new TopicPartition(record.topic(), record.partition()), -1, Integer::sum);
          output.write(JSON.writeValueAsString(describe(record)));
          output.newLine();
        }
      }
    }
  }

  private static ObjectNode describe(ConsumerRecord<byte[], byte[]> record) {
    ObjectNode node = JSON.createObjectNode();
    node.put("topic", record.topic()).put("partition", record.partition()).put("offset", record.offset());
    node.put("timestamp", record.timestamp()).put("key", hex(record.key())).put("value", hex(record.value()));
    ArrayNode headers = node.putArray("headers");
    for (Header header : record.headers()) headers.addArray().add(header.key()).add(hex(header.value()));
    return node;
  }

  private static byte[] bytes(JsonNode hex) {
    return hex.isNull() ? null : HexFormat.of().parseHex(hex.asText());
  }

  private static String hex(byte[] bytes) {
    return bytes == null ? null : HexFormat.of().formatHex(bytes);
  }
}
