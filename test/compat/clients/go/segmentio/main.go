// segmentio/kafka-go behind the command contract of ../../README.md.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/segmentio/kafka-go"
	"millrace.example/compat/goclients/contract"
)

type client struct{}

func main() { contract.Serve(client{}) }

func (client) Create(bootstrap, topic string, partitions int) error {
	admin := &kafka.Client{Addr: kafka.TCP(bootstrap), Timeout: contract.Timeout}
	response, err := admin.CreateTopics(context.Background(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return response.Errors[topic]
}

var codecs = map[string]kafka.Compression{
	"none":   0,
	"gzip":   kafka.Gzip,
	"snappy": kafka.Snappy,
	"lz4":    kafka.Lz4,
	"zstd":   kafka.Zstd,
}

var acks = map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne, "all": kafka.RequireAll}

func (client) Produce(bootstrap string, mode contract.Mode, records []contract.Record) error {
	if mode.Idempotent {
		return fmt.Errorf("kafka-go has no idempotent producer")
	}
	writer := &kafka.Writer{
		Addr:         kafka.TCP(bootstrap),
		Topic:        mode.Topic,
		Balancer:     kafka.BalancerFunc(func(kafka.Message, ...int) int { return int(mode.Partition) }),
		BatchBytes:   10_000_000,
		BatchTimeout: 20 * time.Millisecond,
		RequiredAcks: acks[mode.Acks],
		Compression:  codecs[mode.Codec],
	}
	messages := make([]kafka.Message, 0, len(records))
	for _, r := range records {
		message := kafka.Message{Key: r.Key, Value: r.Value, Time: time.UnixMilli(r.Timestamp)}
		for _, h := range r.Headers {
			message.Headers = append(message.Headers, kafka.Header{Key: h.Name, Value: h.Value})
		}
		messages = append(messages, message)
	}
	ctx, cancel := context.WithTimeout(context.Background(), contract.Timeout)
	defer cancel()
	if err := writer.WriteMessages(ctx, messages...); err != nil {
		writer.Close()
		return err
	}
	if mode.Acks == "0" {
		time.Sleep(contract.Unanswered)
	}
	return writer.Close()
}

func (client) Consume(bootstrap string, wanted []contract.Wanted, deadline time.Time, emit func(contract.Record) error) error {
	ctx, cancel := context.WithDeadline(context.Background(), deadline)
	defer cancel()
	for _, w := range wanted {
		if err := consume(ctx, bootstrap, w, emit); err != nil {
			return fmt.Errorf("%v: %w", w, err)
		}
	}
	return nil
}

func consume(ctx context.Context, bootstrap string, w contract.Wanted, emit func(contract.Record) error) error {
	reader := kafka.NewReader(kafka.ReaderConfig{
		Brokers:   []string{bootstrap},
		Topic:     w.Topic,
		Partition: int(w.Partition),
		MaxBytes:  10_000_000,
		MaxWait:   100 * time.Millisecond,
	})
	defer reader.Close()
	for count := 0; count < w.Count; count++ {
		message, err := reader.ReadMessage(ctx)
		if err != nil {
			return err
		}
		if err := emit(incoming(message)); err != nil {
			return err
		}
	}
	return nil
}

func incoming(m kafka.Message) contract.Record {
	r := contract.Record{Topic: m.Topic, Partition: int32(m.Partition), Offset: m.Offset, Timestamp: m.Time.UnixMilli()}
	r.Key, r.Value = m.Key, m.Value
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, contract.Header{Name: h.Key, Value: h.Value})
	}
	return r
}
