// sarama behind the command contract of ../../README.md.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/IBM/sarama"
	"millrace.example/compat/goclients/contract"
)

type client struct{}

func main() { contract.Serve(client{}) }

func config() *sarama.Config {
	c := sarama.NewConfig()
	c.Version = sarama.MaxVersion
	return c
}

func (client) Create(bootstrap, topic string, partitions int) error {
	admin, err := sarama.NewClusterAdmin([]string{bootstrap}, config())
	if err != nil {
		return err
	}
	defer admin.Close()
	shape := &sarama.TopicDetail{NumPartitions: int32(partitions), ReplicationFactor: 1}
	return admin.CreateTopic(topic, shape, false)
}

var codecs = map[string]sarama.CompressionCodec{
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

var acks = map[string]sarama.RequiredAcks{"0": sarama.NoResponse, "1": sarama.WaitForLocal, "all": sarama.WaitForAll}

func (client) Produce(bootstrap string, mode contract.Mode, records []contract.Record) error {
	c := config()
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Compression = codecs[mode.Codec]
	c.Producer.RequiredAcks = acks[mode.Acks]
	c.Producer.Return.Successes = true
	c.Producer.MaxMessageBytes = 10_000_000
	c.Producer.Flush.Frequency = 20 * time.Millisecond
	c.Producer.Idempotent = mode.Idempotent
	// With more, sarama may send records of one partition out of order.
	c.Net.MaxOpenRequests = 1
	producer, err := sarama.NewSyncProducer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	defer producer.Close()
	messages := make([]*sarama.ProducerMessage, 0, len(records))
	for _, r := range records {
		message := &sarama.ProducerMessage{Topic: mode.Topic, Partition: mode.Partition, Timestamp: time.UnixMilli(r.Timestamp)}
		// A nil slice in an Encoder is not a nil Encoder, and would be sent as an empty string.
		if r.Key != nil {
			message.Key = sarama.ByteEncoder(r.Key)
		}
		if r.Value != nil {
			message.Value = sarama.ByteEncoder(r.Value)
		}
		for _, h := range r.Headers {
			message.Headers = append(message.Headers, sarama.RecordHeader{Key: []byte(h.Name), Value: h.Value})
		}
		messages = append(messages, message)
	}
	if err := producer.SendMessages(messages); err != nil {
		if failures, ok := err.(sarama.ProducerErrors); ok {
			return failures[0]
		}
		return err
	}
	if mode.Acks == "0" {
		time.Sleep(contract.Unanswered)
	}
	return nil
}

func (client) Consume(bootstrap string, wanted []contract.Wanted, deadline time.Time, emit func(contract.Record) error) error {
	c := config()
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	consumer, err := sarama.NewConsumer([]string{bootstrap}, c)
	if err != nil {
		return err
	}
	defer consumer.Close()
	// All at once, so that partitions share fetch requests as they do in a program.
	var partitions []sarama.PartitionConsumer
	for _, w := range wanted {
		partition, err := consumer.ConsumePartition(w.Topic, w.Partition, sarama.OffsetOldest)
		if err != nil {
			return err
		}
		defer partition.AsyncClose()
		partitions = append(partitions, partition)
	}
	timeout := time.After(time.Until(deadline))
	for index, w := range wanted {
		for count := 0; count < w.Count; count++ {
			select {
			case message := <-partitions[index].Messages():
				if err := emit(incoming(message)); err != nil {
					return err
				}
			case <-timeout:
				return fmt.Errorf("timed out; has %d of %v", count, w)
			}
		}
	}
	return nil
}

func (client) Member(bootstrap, topic string, m contract.Member, life *contract.Life) error {
	c := config()
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Offsets.AutoCommit.Enable = false
	c.Consumer.Group.Session.Timeout = 6 * time.Second
	c.Consumer.Group.Heartbeat.Interval = 300 * time.Millisecond
	c.Consumer.Group.InstanceId = m.Instance
	c.Consumer.MaxWaitTime = 100 * time.Millisecond
	group, err := sarama.NewConsumerGroup([]string{bootstrap}, m.Group, c)
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
		if err := group.Consume(ctx, []string{topic}, session{life}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}

// session is one generation of the group, as a member sees it.
type session struct{ life *contract.Life }

func (s session) Setup(generation sarama.ConsumerGroupSession) error {
	for _, partitions := range generation.Claims() {
		s.life.Assigned(partitions)
	}
	return nil
}

func (s session) Cleanup(sarama.ConsumerGroupSession) error {
	s.life.Assigned(nil)
	return nil
}

func (s session) ConsumeClaim(generation sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			s.life.Processed(message.Partition, message.Offset)
			generation.MarkMessage(message, "")
			generation.Commit()
		case <-generation.Context().Done():
			return nil
		}
	}
}

func incoming(m *sarama.ConsumerMessage) contract.Record {
	r := contract.Record{Topic: m.Topic, Partition: m.Partition, Offset: m.Offset, Timestamp: m.Timestamp.UnixMilli()}
	r.Key, r.Value = m.Key, m.Value
	for _, h := range m.Headers {
		r.Headers = append(r.Headers, contract.Header{Name: string(h.Key), Value: h.Value})
	}
	return r
}
