//go:build !librdkafka1

package main

import "github.com/confluentinc/confluent-kafka-go/v2/kafka"

type (
	configMap          = kafka.ConfigMap
	header             = kafka.Header
	message            = kafka.Message
	kafkaError         = kafka.Error
	topicPartition     = kafka.TopicPartition
	topicSpecification = kafka.TopicSpecification
)

const (
	noError    = kafka.ErrNoError
	createTime = kafka.TimestampCreateTime
)

var (
	newAdmin            = kafka.NewAdminClient
	newConsumer         = kafka.NewConsumer
	newProducer         = kafka.NewProducer
	setOperationTimeout = kafka.SetAdminOperationTimeout
)
