import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Apache Kafka's own Java client behind the command contract of ../README.md. One more command, "tool", runs the main
 * method of one of Kafka's command line tools inside this process, because a JVM takes longer to start than the tool to
 * run.
 */
public final class Peer {
  private static final ObjectMapper JSON = new ObjectMapper();

  /** How long a connection stays open after acks=0: a broker may lose what it has not read when a client closes. */
  private static final long UNANSWERED_MS = 500;

  /** Thrown in place of ending the process when a tool asks to exit. */
  private static final class ToolExit extends RuntimeException {
    private static final long serialVersionUID = 1;

    ToolExit(String message) {
      super(message);
    }
  }

  /** The status with which the running tool asked to exit first: some catch the exception and exit once more. */
  private static Integer toolStatus;

  /** What the running tool wants done when the process ends, such as closing its producer. */
  private static final List<Runnable> toolHooks = new ArrayList<>();

  public static void main(String[] args) throws Exception {
    PrintStream answers = System.out;
    System.setOut(System.err);
    Exit.setExitProcedure(Peer::exitTool);
    Exit.setHaltProcedure(Peer::exitTool);
    Exit.setShutdownHookAdder((name, hook) -> toolHooks.add(hook));
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

  private static void exitTool(int status, String message) {
    if (toolStatus == null) toolStatus = status;
    throw new ToolExit("exit with " + status + ": " + message);
  }

  private static void run(JsonNode command) throws Exception {
    switch (command.get("command").asText()) {
      case "create" -> create(command);
      case "produce" -> produce(command);
      case "consume" -> consume(command);
      case "member" -> member(command);
      case "stream" -> stream(command);
      case "tool" -> tool(command);
      default -> throw new IllegalArgumentException("unknown command " + command);
    }
  }

  private static Map<String, Object> settings(JsonNode command) {
    Map<String, Object> settings = new HashMap<>();
    settings.put("bootstrap.servers", command.get("bootstrap").asText());
    return settings;
  }

  private static void create(JsonNode command) throws Exception {
    try (Admin admin = Admin.create(settings(command))) {
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

  /** Consumes in a group until the file `stop` is there, and notes every rebalance and record in the file `output`. */
  private static void member(JsonNode command) throws Exception {
    Map<String, Object> settings = settings(command);
    settings.put("group.id", command.get("group").asText());
    settings.put("auto.offset.reset", "earliest");
    settings.put("enable.auto.commit", false);
    settings.put("fetch.max.wait.ms", 100);
    if (command.hasNonNull("instance")) settings.put("group.instance.id", command.get("instance").asText());
    if (command.get("protocol").asText().equals("consumer")) settings.put("group.protocol", "consumer");
    else {
      settings.put("session.timeout.ms", 6_000);
      settings.put("heartbeat.interval.ms", 300);
      settings.put("partition.assignment.strategy", command.get("strategy").asText().equals("cooperative")
          ? "org.apache.kafka.clients.consumer.CooperativeStickyAssignor"
          : "org.apache.kafka.clients.consumer.RangeAssignor");
    }
    Path stop = Path.of(command.get("stop").asText());
    String topic = command.get("topic").asText();
    ByteArrayDeserializer deserializer = new ByteArrayDeserializer();
    try (BufferedWriter output = Files.newBufferedWriter(Path.of(command.get("output").asText()));
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings, deserializer, deserializer)) {
      // Processed and not committed yet, of partitions that are still this member's.
      Map<TopicPartition, OffsetAndMetadata> done = new HashMap<>();
      consumer.subscribe(List.of(topic), new MemberEvents(consumer, output, done));
      while (!done.isEmpty() || !Files.exists(stop)) {
        for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(50))) {
          output.write("{\"partition\":" + record.partition() + ",\"offset\":" + record.offset() + "}\n");
          done.put(new TopicPartition(topic, record.partition()), new OffsetAndMetadata(record.offset() + 1));
        }
        output.flush();
        try {
          if (!done.isEmpty()) consumer.commitSync(Map.copyOf(done));
          done.clear();
        } catch (RebalanceInProgressException error) {
          // Again after the next poll, which takes part in the rebalance, for what stays ours.
          System.err.println(error);
        } catch (CommitFailedException error) {
          // The group has gone on without us: the next owner reads the records again.
          System.err.println(error);
          done.clear();
        }
      }
    }
  }

  /** Notes what a member has after each rebalance. */
  private static final class MemberEvents implements ConsumerRebalanceListener {
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final BufferedWriter output;
    private final Map<TopicPartition, OffsetAndMetadata> done;
    private final TreeSet<Integer> owned = new TreeSet<>();

    MemberEvents(KafkaConsumer<byte[], byte[]> consumer, BufferedWriter output,
        Map<TopicPartition, OffsetAndMetadata> done) {
      this.consumer = consumer;
      this.output = output;
      this.done = done;
    }

    @Override
    public void onPartitionsAssigned(Collection<TopicPartition> partitions) {
      partitions.forEach(one -> owned.add(one.partition()));
      note();
    }

    @Override
    public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
      // What could not be committed in the midst of a rebalance, before others begin there.
      Map<TopicPartition, OffsetAndMetadata> left = new HashMap<>(done);
      left.keySet().retainAll(partitions);
      try {
        if (!left.isEmpty()) consumer.commitSync(left);
      } catch (RebalanceInProgressException | CommitFailedException error) {
        System.err.println(error);
      }
      onPartitionsLost(partitions);
    }

    @Override
    public void onPartitionsLost(Collection<TopicPartition> partitions) {
      partitions.forEach(one -> owned.remove(one.partition()));
      done.keySet().removeAll(partitions);
      note();
    }

    private void note() {
      try {
        output.write("{\"assigned\":" + owned + "}\n");
        output.flush();
      } catch (IOException error) {
        throw new UncheckedIOException(error);
      }
    }
  }

  /** Sends until the file `stop` is there, and notes each acknowledgement in the file `output`. */
  private static void stream(JsonNode command) throws Exception {
    Map<String, Object> settings = settings(command);
    settings.put("acks", "all");
    settings.put("enable.idempotence", true);
    Path stop = Path.of(command.get("stop").asText());
    int[] sent = new int[command.get("partitions").asInt()];
    AtomicReference<Exception> failure = new AtomicReference<>();
    ByteArraySerializer serializer = new ByteArraySerializer();
    try (BufferedWriter output = Files.newBufferedWriter(Path.of(command.get("output").asText()))) {
      try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings, serializer, serializer)) {
        for (int turn = 0; failure.get() == null && !Files.exists(stop); turn++) {
          int partition = turn % sent.length;
          int number = sent[partition]++;
          byte[] value = (partition + "-" + number + "|").getBytes(StandardCharsets.UTF_8);
          producer.send(new ProducerRecord<>(command.get("topic").asText(), partition, null, value), (metadata, error) -> {
            if (error != null) failure.compareAndSet(null, error);
            else note(output, partition, number, metadata.offset());
          });
          Thread.sleep(command.get("pauseMs").asLong());
        }
        if (failure.get() == null) producer.flush();
      }
      if (failure.get() != null) throw failure.get();
      output.write("{\"sent\":" + Arrays.toString(sent) + "}\n");
    }
  }

  private static void note(BufferedWriter output, int partition, int number, long offset) {
    try {
      output.write("{\"partition\":" + partition + ",\"number\":" + number + ",\"offset\":" + offset + "}\n");
      output.flush();
    } catch (IOException error) {
      throw new UncheckedIOException(error);
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

  /** A file as standard input, whose end comes `holdInputMs` late if the command says so. */
  private static final class HeldInput extends FileInputStream {
    private final long holdMs;

    HeldInput(JsonNode command) throws IOException {
      super(command.get("input").asText());
      holdMs = command.path("holdInputMs").asLong(0);
    }

    @Override
    public int read(byte[] bytes, int offset, int length) throws IOException {
      int count = super.read(bytes, offset, length);
      if (count >= 0) return count;
      try {
        Thread.sleep(holdMs);
      } catch (InterruptedException error) {
        Thread.currentThread().interrupt();
      }
      return count;
    }
  }

  /** Runs a tool's main with its own standard input and output; fails if it exits with anything but 0. */
  private static void tool(JsonNode command) throws Exception {
    List<String> arguments = new ArrayList<>();
    for (JsonNode argument : command.get("args")) arguments.add(argument.asText());
    InputStream input = command.hasNonNull("input") ? new HeldInput(command) : InputStream.nullInputStream();
    InputStream oldInput = System.in;
    PrintStream oldOutput = System.out;
    toolStatus = null;
    toolHooks.clear();
    try (input; PrintStream output = new PrintStream(new FileOutputStream(command.get("output").asText()), false)) {
      System.setIn(input);
      System.setOut(output);
      runMain(Class.forName(command.get("class").asText()), arguments);
      toolHooks.forEach(Runnable::run);
    } finally {
      System.setIn(oldInput);
      System.setOut(oldOutput);
    }
    if (toolStatus != null && toolStatus != 0) throw new IllegalStateException("the tool exited with " + toolStatus);
  }

  private static void runMain(Class<?> tool, List<String> arguments) throws ReflectiveOperationException {
    try {
      tool.getMethod("main", String[].class).invoke(null, (Object) arguments.toArray(new String[0]));
    } catch (InvocationTargetException error) {
      if (!(error.getCause() instanceof ToolExit)) throw error;
    }
  }

  private static byte[] bytes(JsonNode hex) {
    return hex.isNull() ? null : HexFormat.of().parseHex(hex.asText());
  }

  private static String hex(byte[] bytes) {
    return bytes == null ? null : HexFormat.of().formatHex(bytes);
  }
}
