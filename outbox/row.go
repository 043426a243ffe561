package outbox

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// document is what a row says of an execution beside its id and its input. People may read it.
type document struct {
	flowfabric.Start
	Policy string `json:"policy,omitempty"` // packed, as the store has it
	Key    *key   `json:"key,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// key is a [flowfabric.Key].
type key struct {
	Text        string            `json:"text"`
	WhileActive bool              `json:"while_active,omitempty"`
	Window      flowfabric.Millis `json:"window_ms,omitempty"`
	Debounce    flowfabric.Millis `json:"debounce_ms,omitempty"`
	DebounceMax flowfabric.Millis `json:"debounce_max_ms,omitempty"`
}

// details is the document of a new execution.
func details(x *engine.NewExecution) (string, error) {
	d := document{Start: x.Start, Policy: valid.PackPolicy(x.Policy), Digest: x.Digest}
	texts := []string{x.Creator}
	for _, v := range x.Tags {
		texts = append(texts, v)
	}
	for _, l := range x.Limits {
		texts = append(texts, l.Key)
	}
	if k := x.Key; k != nil {
		d.Key = &key{k.Text, k.WhileActive, flowfabric.Millis(k.Window), flowfabric.Millis(k.Debounce),
			flowfabric.Millis(k.DebounceMax)}
		texts = append(texts, k.Text)
	}
	for _, text := range texts {
		if !utf8.ValidString(text) { // JSON cannot keep it
			return "", fmt.Errorf("%w: %.64q is not UTF-8, as creators, values of tags and keys in an outbox must be",
				flowfabric.ErrInvalidInput, text)
		}
	}
	text, err := json.Marshal(d)
	return string(text), err
}

// row is one row as the relay reads it.
type row struct {
	id        int64
	execution string
	orderKey  string // "" for none
	details   string
	input     []byte
	age       int64 // ms since it was written

	sub   coalesce.Submission // what is sent
	state state
	err   error // why it failed
}

// decode makes what is sent of a row: a delay and a deadline have begun when it was written.
func (r *row) decode(partitions uint16) error {
	bad := func(err error) error {
		return fmt.Errorf("%w: row %d of the outbox: %w", flowfabric.ErrInvalidInput, r.id, err)
	}
	id, err := flowfabric.ParseExecutionID(r.execution)
	if err != nil {
		return bad(err)
	}
	if id.Partition() >= partitions {
		return bad(fmt.Errorf("execution %s: the store has %d partitions", id, partitions))
	}
	var d document
	if err := json.Unmarshal([]byte(r.details), &d); err != nil {
		return bad(fmt.Errorf("details: %w", err))
	}
	x := &r.sub.Item
	if x.Start, err = valid.Unpacked(d.Start, d.Policy); err != nil {
		return bad(fmt.Errorf("details: %w", err))
	}
	x.ID, x.Payload, x.Digest = id, r.input, d.Digest
	age := flowfabric.Millis(time.Duration(r.age) * time.Millisecond)
	if x.Delay > 0 && (d.Key == nil || d.Key.Debounce == 0) {
		x.Delay = max(x.Delay-age, 0)
	}
	if x.Deadline > 0 {
		x.Deadline = max(x.Deadline-age, flowfabric.Millis(time.Millisecond))
	}
	if k := d.Key; k != nil {
		x.Key = &flowfabric.Key{Text: k.Text, WhileActive: k.WhileActive, Window: time.Duration(k.Window),
			Debounce: time.Duration(k.Debounce), DebounceMax: time.Duration(k.DebounceMax)}
		var partition uint16
		if partition, x.KeyID = keyID(partitions, x); partition != id.Partition() {
			return bad(fmt.Errorf("execution %s: its key belongs to partition %d of a store with %d; "+
				"Config.Partitions is not that of the store", id, partition, partitions))
		}
	}
	r.sub.Measure()
	return nil
}
