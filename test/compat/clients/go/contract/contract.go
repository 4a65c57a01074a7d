// Package contract reads the commands of ../../README.md from standard input, has a client carry them out, and answers.
package contract

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// Unanswered is how long a producer stays open after acks=0: a broker may lose what it has not read when a client closes.
const Unanswered = 500 * time.Millisecond

// Timeout is how long a producer may take to deliver.
const Timeout = 30 * time.Second

// Bytes travel as hexadecimal; null and the empty string stay apart.
type Bytes []byte

// MarshalJSON writes lower-case hexadecimal, or null.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if b == nil {
		return []byte("null"), nil
	}
	return json.Marshal(hex.EncodeToString(b))
}

// UnmarshalJSON reads hexadecimal, or null.
func (b *Bytes) UnmarshalJSON(text []byte) error {
	var s *string
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s == nil {
		*b = nil
		return nil
	}
	decoded, err := hex.DecodeString(*s)
	if decoded == nil {
		decoded = []byte{}
	}
	*b = decoded
	return err
}

// Header is a pair of a name and a value.
type Header struct {
	Name  string
	Value Bytes
}

// MarshalJSON writes an array of two.
func (h Header) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{h.Name, h.Value})
}

// UnmarshalJSON reads an array of two.
func (h *Header) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&h.Name, &h.Value})
}

// Record is what is sent, and with the first three fields what was read. The timestamp is in milliseconds.
type Record struct {
	Topic     string   `json:"topic,omitempty"`
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       Bytes    `json:"key"`
	Value     Bytes    `json:"value"`
	Headers   []Header `json:"headers"`
}

// Mode says how to produce, and where.
type Mode struct {
	Topic      string `json:"topic"`
	Partition  int32  `json:"partition"`
	Codec      string `json:"codec"`
	Acks       string `json:"acks"`
	Idempotent bool   `json:"idempotent"`
}

// Wanted is a partition and how many records to read from its beginning.
type Wanted struct {
	Topic     string
	Partition int32
	Count     int
}

// UnmarshalJSON reads an array of three.
func (w *Wanted) UnmarshalJSON(text []byte) error {
	return json.Unmarshal(text, &[]any{&w.Topic, &w.Partition, &w.Count})
}

// Client is what a library has to do. Each method connects and closes what it opened.
type Client interface {
	Create(bootstrap, topic string, partitions int) error
	Produce(bootstrap string, mode Mode, records []Record) error
	// Consume calls emit for each record, from one goroutine, until it has all that is wanted.
	Consume(bootstrap string, wanted []Wanted, deadline time.Time, emit func(Record) error) error
}

// Member says in which group to consume what.
type Member struct {
	Group    string `json:"group"`
	Strategy string `json:"strategy"`
	// Instance is the name of a static member, or empty.
	Instance string `json:"instance"`
	Output   string `json:"output"`
	Stop     string `json:"stop"`
}

// Stopped says whether the member is to leave.
func (m Member) Stopped() bool {
	_, err := os.Stat(m.Stop)
	return err == nil
}

// Life is the file in which a member notes what happens to it.
type Life struct {
	mutex sync.Mutex
	file  *os.File
}

// Assigned notes which partitions the member has after a rebalance.
func (l *Life) Assigned(partitions []int32) {
	sorted := append([]int32{}, partitions...)
	slices.Sort(sorted)
	l.note(map[string]any{"assigned": sorted})
}

// Processed notes a record, before it is committed.
func (l *Life) Processed(partition int32, offset int64) {
	l.note(map[string]any{"partition": partition, "offset": offset})
}

func (l *Life) note(event any) {
	text, _ := json.Marshal(event)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.file.Write(append(text, '\n'))
}

// GroupClient is a client that can consume in a group.
type GroupClient interface {
	// Member consumes until the member is stopped.
	Member(bootstrap, topic string, m Member, life *Life) error
}

type command struct {
	Mode
	Member
	Command    string          `json:"command"`
	Bootstrap  string          `json:"bootstrap"`
	Partitions json.RawMessage `json:"partitions"`
	Input      string          `json:"input"`
	TimeoutMs  int64           `json:"timeoutMs"`
}

// Serve carries out commands until the input ends.
func Serve(client Client) {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		answer := map[string]any{"ok": true}
		if err := run(client, lines.Bytes()); err != nil {
			answer = map[string]any{"ok": false, "error": err.Error()}
		}
		text, _ := json.Marshal(answer)
		fmt.Println(string(text))
	}
}

func run(client Client, line []byte) error {
	var c command
	if err := json.Unmarshal(line, &c); err != nil {
		return err
	}
	switch c.Command {
	case "create":
		var partitions int
		if err := json.Unmarshal(c.Partitions, &partitions); err != nil {
			return err
		}
		return client.Create(c.Bootstrap, c.Topic, partitions)
	case "produce":
		records, err := read(c.Input)
		if err != nil {
			return err
		}
		if err := client.Produce(c.Bootstrap, c.Mode, records); err != nil {
			return err
		}
		return nil
	case "consume":
		return consume(client, c)
	case "member":
		return member(client, c)
	}
	return fmt.Errorf("unknown command %s", c.Command)
}

func member(client Client, c command) error {
	grouped, ok := client.(GroupClient)
	if !ok {
		return fmt.Errorf("this client does not consume in groups here")
	}
	file, err := os.OpenFile(c.Output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	return grouped.Member(c.Bootstrap, c.Topic, c.Member, &Life{file: file})
}

func read(path string) ([]Record, error) {
	input, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer input.Close()
	var records []Record
	for decoder := json.NewDecoder(input); decoder.More(); {
		var r Record
		if err := decoder.Decode(&r); err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	return records, nil
}

func consume(client Client, c command) error {
	var wanted []Wanted
	if err := json.Unmarshal(c.Partitions, &wanted); err != nil {
		return err
	}
	output, err := os.Create(c.Output)
	if err != nil {
		return err
	}
	defer output.Close()
	buffered := bufio.NewWriter(output)
	encoder := json.NewEncoder(buffered)
	deadline := time.Now().Add(time.Duration(c.TimeoutMs) * time.Millisecond)
	emit := func(r Record) error {
		if r.Headers == nil {
			r.Headers = []Header{}
		}
		return encoder.Encode(r)
	}
	if err := client.Consume(c.Bootstrap, wanted, deadline, emit); err != nil {
		return err
	}
	return buffered.Flush()
}
