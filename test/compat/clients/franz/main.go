// franz-go behind the command contract of ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type command struct {
	Command    string          `json:"command"`
	Bootstrap  string          `json:"bootstrap"`
	Topic      string          `json:"topic"`
	Partitions json.RawMessage `json:"partitions"`
	Partition  int32           `json:"partition"`
	Input      string          `json:"input"`
	Output     string          `json:"output"`
	Codec      string          `json:"codec"`
	Acks       string          `json:"acks"`
	Idempotent bool            `json:"idempotent"`
	TimeoutMs  int64           `json:"timeoutMs"`
	Group      string          `json:"group"`
	Instance   string          `json:"instance"`
	Strategy   string          `json:"strategy"`
	Protocol   string          `json:"protocol"`
	Stop       string          `json:"stop"`
	PauseMs    int64           `json:"pauseMs"`
}

// A nil slice is null, an empty one is not.
type hexBytes []byte

func (b hexBytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(b))
}

func (b *hexBytes) UnmarshalJSON(text []byte) error {
	var digits *string
	if err := json.Unmarshal(text, &digits); err != nil || digits == nil {
		return err
	}
	bytes, err := hex.DecodeString(*digits)
	*b = append(hexBytes{}, bytes...)
	return err
}

type header struct {
	name  string
	value hexBytes
}

func (h header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.name, h.value})
}

func (h *header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.name, &h.value})
}

type record struct {
	Topic     string   `json:"topic,omitempty"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       hexBytes `json:"key"`
	Value     hexBytes `json:"value"`
	Headers   []header `json:"headers"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		answer := map[string]any{"ok": true}
		if err := run(lines.Bytes()); err != nil {
			answer = map[string]any{"ok": false, "error": err.Error()}
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

func run(line []byte) error {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	switch c.Command {
	case "create":
		return create(c)
	case "produce":
		return produce(c)
	case "consume":
		return consume(c)
	case "member":
		return member(c)
	case "stream":
		return stream(c)
	}
	return fmt.Errorf("unknown command %s", c.Command)
}

func create(c command) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic = c.Topic
	topic.ReplicationFactor = 1
	if err := json.Unmarshal(c.Partitions, &topic.NumPartitions); err != nil {
		return err
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics = append(request.Topics, topic)
	request.TimeoutMillis = 30_000
	response, err := request.RequestWith(context.Background(), client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(response.Topics[0].ErrorCode)
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

var acks = map[string]kgo.Acks{"0": kgo.NoAck(), "1": kgo.LeaderAck(), "all": kgo.AllISRAcks()}

func produce(c command) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(c.Bootstrap),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[c.Codec]),
		kgo.RequiredAcks(acks[c.Acks]),
		kgo.ProducerLinger(20 * time.Millisecond),
	}
	if !c.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	input, err := os.Open(c.Input)
	if err != nil {
		return err
	}
	defer input.Close()
	results := &firstError{}
	for decoder := json.NewDecoder(input); decoder.More(); {
		var r record
		if err := decoder.Decode(&r); err != nil {
			return err
		}
		client.Produce(context.Background(), outgoing(c, r), results.add)
	}
	// Not kgo.RecordDeliveryTimeout: that counts from a record's timestamp, and ours lie in the past.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := client.Flush(ctx); err != nil {
		return err
	}
	if c.Acks == "0" {
		// A broker may lose what it has not read when a client closes its connection.
		time.Sleep(500 * time.Millisecond)
	}
	return results.get()
}

// firstError keeps the first failure of many deliveries, which are told of on other goroutines.
type firstError struct {
	mutex sync.Mutex
	err   error
}

func (f *firstError) add(_ *kgo.Record, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	if f.err == nil {
		f.err = err
	}
}

func (f *firstError) get() error {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.err
}

func outgoing(c command, r record) *kgo.Record {
	out := &kgo.Record{Topic: c.Topic, Partition: c.Partition, Key: r.Key, Value: r.Value}
	out.Timestamp = time.UnixMilli(r.Timestamp)
	for _, h := range r.Headers {
		out.Headers = append(out.Headers, kgo.RecordHeader{Key: h.name, Value: h.value})
	}
	return out
}

func consume(c command) error {
	var wanted [][]any
	if err := json.Unmarshal(c.Partitions, &wanted); err != nil {
		return err
	}
	type place struct {
		topic     string
		partition int32
	}
	missing := map[place]int{}
	assignment := map[string]map[int32]kgo.Offset{}
	total := 0
	for _, one := range wanted {
		topic, partition, count := one[0].(string), int32(one[1].(float64)), int(one[2].(float64))
		if assignment[topic] == nil {
			assignment[topic] = map[int32]kgo.Offset{}
		}
		assignment[topic][partition] = kgo.NewOffset().AtStart()
		missing[place{topic, partition}] = count
		total += count
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(c.Bootstrap), kgo.ConsumePartitions(assignment))
	if err != nil {
		return err
	}
	defer client.Close()
	output, err := os.Create(c.Output)
	if err != nil {
		return err
	}
	defer output.Close()
	encoder := json.NewEncoder(output)
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(c.TimeoutMs)*time.Millisecond)
	defer cancel()
	for total > 0 {
		fetches := client.PollFetches(ctx)
		if errs := fetches.Errors(); len(errs) > 0 {
			return fmt.Errorf("%s-%d: %w; still missing %v", errs[0].Topic, errs[0].Partition, errs[0].Err, missing)
		}
		for _, r := range fetches.Records() {
			if missing[place{r.Topic, r.Partition}] > 0 {
				total--
			}
			missing[place{r.Topic, r.Partition}]--
			if err := encoder.Encode(incoming(r)); err != nil {
				return err
			}
		}
	}
	return nil
}

func incoming(r *kgo.Record) record {
	in := record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Timestamp: r.Timestamp.UnixMilli()}
	in.Key, in.Value, in.Headers = r.Key, r.Value, []header{}
	for _, h := range r.Headers {
		in.Headers = append(in.Headers, header{h.Key, h.Value})
	}
	return in
}

// life notes what a member has, and what it processed.
type life struct {
	mutex sync.Mutex
	file  *os.File
	owned map[int32]bool
}

func (l *life) note(event any) {
	text, _ := json.Marshal(event)
	l.file.Write(append(text, '\n'))
}

// changed takes the partitions of a rebalance, gained or lost.
func (l *life) changed(topics map[string][]int32, isOurs bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, partitions := range topics {
		for _, partition := range partitions {
			if isOurs {
				l.owned[partition] = true
			} else {
				delete(l.owned, partition)
			}
		}
	}
	// Never nil, which would be null in JSON.
	owned := slices.AppendSeq([]int32{}, maps.Keys(l.owned))
	slices.Sort(owned)
	l.note(map[string]any{"assigned": owned})
}

func (l *life) processed(r *kgo.Record) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.note(map[string]any{"partition": r.Partition, "offset": r.Offset})
}

func (l *life) acked(r *kgo.Record, number int) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.note(map[string]any{"partition": r.Partition, "number": number, "offset": r.Offset})
}

// member consumes in a group until the file c.Stop is there.
func member(c command) error {
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	l := &life{file: file, owned: map[int32]bool{}}
	stopped := func() bool { _, err := os.Stat(c.Stop); return err == nil }
	balancer := kgo.RangeBalancer()
	if c.Strategy == "cooperative" {
		balancer = kgo.CooperativeStickyBalancer()
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...),
		kgo.ConsumerGroup(c.Group),
		kgo.ConsumeTopics(c.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.Balancers(balancer),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.FetchMaxWait(100 * time.Millisecond),
		kgo.SessionTimeout(6 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) { l.changed(got, true) }),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { l.changed(lost, false) }),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, lost map[string][]int32) { l.changed(lost, false) }),
	}
	if c.Instance != "" {
		options = append(options, kgo.InstanceID(c.Instance))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.CloseAllowingRebalance()
	for !stopped() {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		fetches := client.PollFetches(ctx)
		cancel()
		for _, one := range fetches.Errors() {
			if err := passing(one.Err); err != nil {
				return fmt.Errorf("fetch of %s-%d: %w", one.Topic, one.Partition, err)
			}
		}
		records := fetches.Records()
		for _, r := range records {
			l.processed(r)
		}
		if len(records) > 0 {
			if err := client.CommitRecords(context.Background(), records...); err != nil {
				// The group has gone on without us: the next owner reads the records again.
				fmt.Fprintln(os.Stderr, err)
				if err := passing(err); err != nil {
					return fmt.Errorf("commit: %w", err)
				}
			}
		}
		client.AllowRebalance()
	}
	return nil
}

// passing takes out the errors that a member goes on after: nothing came, a rebalance, or something that is to be tried
// again. The client tries it again itself where it concerns connections.
func passing(err error) error {
	var code *kerr.Error
	if !errors.As(err, &code) {
		if errors.Is(err, context.DeadlineExceeded) || kgo.IsRetryableBrokerErr(err) {
			return nil
		}
		return err
	}
	switch {
	case code.Retriable, code == kerr.RebalanceInProgress, code == kerr.IllegalGeneration, code == kerr.UnknownMemberID:
		return nil
	}
	return err
}

// stream sends until the file c.Stop is there, and notes each acknowledgement.
func stream(c command) error {
	var partitions int
	if err := json.Unmarshal(c.Partitions, &partitions); err != nil {
		return err
	}
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	client, err := kgo.NewClient(kgo.SeedBrokers(strings.Split(c.Bootstrap, ",")...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	l := &life{file: file}
	results := &firstError{}
	sent := make([]int, partitions)
	for turn := 0; results.get() == nil; turn++ {
		if _, err := os.Stat(c.Stop); err == nil {
			break
		}
		partition := turn % partitions
		number := sent[partition]
		sent[partition]++
		r := &kgo.Record{Topic: c.Topic, Partition: int32(partition)}
		r.Value = fmt.Appendf(nil, "%d-%d|", partition, number)
		client.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			results.add(r, err)
			if err == nil {
				l.acked(r, number)
			}
		})
		time.Sleep(time.Duration(c.PauseMs) * time.Millisecond)
	}
	if err := client.Flush(context.Background()); err != nil {
		return err
	}
	if err := results.get(); err != nil {
		return err
	}
	l.note(map[string]any{"sent": sent})
	return nil
}
