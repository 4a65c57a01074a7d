// confluent-kafka-go behind the command contract of ../../README.md, with the librdkafka that it brings along. The build
// tag librdkafka1 takes version 1 of the module, with a librdkafka of 2020, in place of the current one.
package main

import (
	"context"
	"fmt"
	"time"

	"millrace.example/compat/goclients/contract"
)

type client struct{}

func main() { contract.Serve(client{}) }

func (client) Create(bootstrap, topic string, partitions int) error {
	admin, err := newAdmin(&configMap{"bootstrap.servers": bootstrap})
	if err != nil {
		return err
	}
	defer admin.Close()
	shape := topicSpecification{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}
	// Without one, an old librdkafka asks the broker not to wait, and takes its answer, whatever it is, for success.
	timeout := setOperationTimeout(contract.Timeout)
	results, err := admin.CreateTopics(context.Background(), []topicSpecification{shape}, timeout)
	if err != nil {
		return err
	}
	if results[0].Error.Code() != noError {
		return results[0].Error
	}
	return nil
}

func (client) Produce(bootstrap string, mode contract.Mode, records []contract.Record) error {
	producer, err := newProducer(&configMap{
		"bootstrap.servers":  bootstrap,
		"compression.type":   mode.Codec,
		"acks":               mode.Acks,
		"enable.idempotence": mode.Idempotent,
		"linger.ms":          20,
		"message.max.bytes":  10_000_000,
		"message.timeout.ms": int(contract.Timeout.Milliseconds()),
	})
	if err != nil {
		return err
	}
	defer producer.Close()
	for _, r := range records {
		if err := producer.Produce(outgoing(mode, r), nil); err != nil {
			return err
		}
	}
	for range records {
		if err := delivery(<-producer.Events()); err != nil {
			return err
		}
	}
	if mode.Acks == "0" {
		time.Sleep(contract.Unanswered)
	}
	return nil
}

// delivery returns what became of a record; an error of the whole client counts, too.
func delivery(event any) error {
	switch e := event.(type) {
	case *message:
		return e.TopicPartition.Error
	case kafkaError:
		return e
	}
	return fmt.Errorf("unexpected event %v", event)
}

func outgoing(mode contract.Mode, r contract.Record) *message {
	out := &message{Key: r.Key, Value: r.Value, Timestamp: time.UnixMilli(r.Timestamp), TimestampType: createTime}
	out.TopicPartition = topicPartition{Topic: &mode.Topic, Partition: mode.Partition}
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, header{Key: h.Name, Value: h.Value})
	}
	return out
}

func (client) Consume(bootstrap string, wanted []contract.Wanted, deadline time.Time, emit func(contract.Record) error) error {
	consumer, err := newConsumer(&configMap{
		"bootstrap.servers": bootstrap,
		// The client insists on a name, although nothing is committed and nothing is subscribed.
		"group.id":           "compat",
		"enable.auto.commit": false,
		"fetch.wait.max.ms":  100,
	})
	if err != nil {
		return err
	}
	defer consumer.Close()
	total := 0
	var places []topicPartition
	for _, w := range wanted {
		// A number, not kafka.OffsetBeginning: for that, an old librdkafka asks the group's coordinator first.
		places = append(places, topicPartition{Topic: &w.Topic, Partition: w.Partition, Offset: 0})
		total += w.Count
	}
	if err := consumer.Assign(places); err != nil {
		return err
	}
	for ; total > 0; total-- {
		message, err := consumer.ReadMessage(time.Until(deadline))
		if err != nil {
			return fmt.Errorf("%d records are missing: %w", total, err)
		}
		if err := emit(incoming(message)); err != nil {
			return err
		}
	}
	return nil
}

func incoming(m *message) contract.Record {
	place := m.TopicPartition
	r := contract.Record{Topic: *place.Topic, Partition: place.Partition, Offset: int64(place.Offset)}
	r.Timestamp, r.Key, r.Value = m.Timestamp.UnixMilli(), m.Key, m.Value
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, contract.Header{Name: h.Key, Value: h.Value})
	}
	return r
}
