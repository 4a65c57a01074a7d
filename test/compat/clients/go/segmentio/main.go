// segmentio/kafka-go behind the command contract of ../../README.md.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
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

// Member uses kafka-go's consumer group and its generations, on which its reader builds: the reader does not tell which
// partitions it has.
func (client) Member(bootstrap, topic string, m contract.Member, life *contract.Life) error {
	group, err := kafka.NewConsumerGroup(kafka.ConsumerGroupConfig{
		ID:                m.Group,
		Brokers:           []string{bootstrap},
		Topics:            []string{topic},
		HeartbeatInterval: 300 * time.Millisecond,
		SessionTimeout:    6 * time.Second,
		RebalanceTimeout:  10 * time.Second,
		JoinGroupBackoff:  200 * time.Millisecond,
		StartOffset:       kafka.FirstOffset,
	})
	if err != nil {
		return err
	}
	defer group.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for !m.Stopped() {
			time.Sleep(50 * time.Millisecond)
		}
		cancel()
	}()
	for ctx.Err() == nil {
		generation, err := group.Next(ctx)
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				fmt.Fprintln(os.Stderr, err)
			}
			continue
		}
		live(generation, bootstrap, topic, life)
	}
	life.Assigned(nil)
	return nil
}

// live reads what the generation has given the member, until the generation ends.
func live(generation *kafka.Generation, bootstrap, topic string, life *contract.Life) {
	var partitions []int32
	var commits sync.Mutex
	for _, one := range generation.Assignments[topic] {
		partitions = append(partitions, int32(one.ID))
	}
	life.Assigned(partitions)
	for _, one := range generation.Assignments[topic] {
		generation.Start(func(ctx context.Context) {
			reader := kafka.NewReader(kafka.ReaderConfig{
				Brokers:   []string{bootstrap},
				Topic:     topic,
				Partition: one.ID,
				MaxWait:   100 * time.Millisecond,
			})
			defer reader.Close()
			reader.SetOffset(one.Offset)
			for {
				message, err := reader.ReadMessage(ctx)
				if err != nil {
					return
				}
				life.Processed(int32(one.ID), message.Offset)
				commits.Lock()
				err = generation.CommitOffsets(map[string]map[int]int64{topic: {one.ID: message.Offset + 1}})
				commits.Unlock()
				if err != nil {
					// The group has gone on without us: the next owner reads the record again.
					fmt.Fprintln(os.Stderr, err)
				}
			}
		})
	}
}

func incoming(m kafka.Message) contract.Record {
	r := contract.Record{Topic: m.Topic, Partition: int32(m.Partition), Offset: m.Offset, Timestamp: m.Time.UnixMilli()}
	r.Key, r.Value = m.Key, m.Value
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, contract.Header{Name: h.Key, Value: h.Value})
	}
	return r
}
