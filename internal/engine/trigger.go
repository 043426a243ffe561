package engine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Subject is a subject of published events in a namespace. All that waits for its events is in one partition.
type Subject struct {
	Namespace string // 1..64 printable ASCII bytes without braces
	Text      string // 1..128 of them
}

// place is the partition of a subject, and what stands for it there.
func (e *Engine) place(s Subject) (uint16, string) {
	partition, id := ids.Subject(e.partitions, s.Namespace, s.Text)
	return partition, id.String()
}

// Event is what a program publishes.
type Event struct {
	Subject
	ID    string   // 1..256 bytes without control characters, one of its own for each event of the subject
	Terms []string // those of its data, see package trigger; at most 1,024
	Data  []byte   // at most 64 KiB
}

// PublishEvent publishes an event (lua/operate/ff_publish_event.lua): each trigger that it matches starts one
// execution, and each wait that it matches gets it, soon. starts and resumes are how many. An event that was published
// in the last day is answered as it was then. The call may be repeated. denied.Idempotency for other data under the
// same id; denied.TooManyExpected for more than 1,000 waits that it may concern; ErrInvalidInput; ErrPayloadTooLarge.
func (e *Engine) PublishEvent(ctx context.Context, x Event) (out PublishedNow, err error) {
	partition, subject := e.place(x.Subject)
	sum := sha256.Sum256(x.Data)
	payload, err := e.seal("ff_publish_event", x.Data)
	if err != nil {
		return out, err
	}
	r, already, err := ask[wire.PublishEventReply](ctx, e, partition, wire.PublishEvent{Subject: subject,
		Event:     ids.Published(uuid.MustParse(subject), x.ID).String(),
		Namespace: x.Namespace, Text: x.Text, ID: x.ID, Digest: hex.EncodeToString(sum[:]), Terms: x.Terms,
		Payload: rueidis.BinaryString(payload)})
	return PublishedNow{Starts: r.Starts, Resumes: r.Resumes, Already: already}, err
}

// PublishedNow answers PublishEvent.
type PublishedNow struct {
	Starts, Resumes int
	Already         bool // it was published before, and the numbers are those of then
}

// Trigger starts something for each event of a subject that has all of its terms.
type Trigger struct {
	Subject
	Name       string   // 1..64 printable ASCII bytes without braces
	Terms      []string // at most 8
	Definition string   // what to start, as package trigger writes it; at most 16 KiB
}

// PutTrigger creates or changes a trigger (lua/operate/ff_put_trigger.lua). already: it was so. ErrInvalidInput, also
// for more than 100 triggers of a subject and 10,000 in a partition.
func (e *Engine) PutTrigger(ctx context.Context, t Trigger) (already bool, err error) {
	partition, subject := e.place(t.Subject)
	return e.settled(ctx, partition, wire.PutTrigger{Subject: subject, Namespace: t.Namespace, Text: t.Text,
		Name: t.Name, Terms: t.Terms, Definition: t.Definition})
}

// RemoveTrigger forgets a trigger (lua/operate/ff_remove_trigger.lua). What was published before still starts. already:
// there was none.
func (e *Engine) RemoveTrigger(ctx context.Context, s Subject, name string) (already bool, err error) {
	partition, subject := e.place(s)
	return e.settled(ctx, partition, wire.RemoveTrigger{Subject: subject, Name: name})
}

// Triggers lists triggers of all partitions, of one namespace ("" of all), by namespace, subject and name
// (lua/operate/ff_list_triggers.lua). It fails if a partition does not answer.
func (e *Engine) Triggers(ctx context.Context, namespace string) (all []wire.ListTriggersTrigger, err error) {
	pages := forEach(e, func(partition uint16) (out InPartition[[]wire.ListTriggersTrigger]) {
		for after := ""; ; {
			r, _, err := ask[wire.ListTriggersReply](ctx, e, partition, wire.ListTriggers{Namespace: namespace,
				After: after, Limit: limits.MaxListed})
			if out.Err = err; err != nil {
				return out
			}
			out.Reply = append(out.Reply, r.Triggers...)
			if !r.More || len(r.Triggers) == 0 {
				return out
			}
			after = r.Triggers[len(r.Triggers)-1].Cursor
		}
	})
	for _, p := range pages {
		if p.Err != nil {
			return nil, p.Err
		}
		all = append(all, p.Reply...)
	}
	slices.SortFunc(all, func(a, b wire.ListTriggersTrigger) int { return strings.Compare(a.Cursor, b.Cursor) })
	return all, nil
}

// RefuseStart notes with a trigger that what it starts was refused for an event (lua/operate/ff_refuse_start.lua).
func (e *Engine) RefuseStart(ctx context.Context, s Subject, trigger, code, event string) error {
	partition, subject := e.place(s)
	_, err := e.settled(ctx, partition, wire.RefuseStart{Subject: subject, Name: trigger, Code: code, Event: event})
	return err
}

// Published is an event on its way to what it starts.
type Published struct {
	Subject
	ID     string
	At     time.Time
	Data   []byte // as it is stored
	Starts []TriggerStart
	// Resumes are the waits that it goes to.
	Resumes []EventResume
	event   uuid.UUID
}

// TriggerStart is a trigger that an event matched, as it was then, and the execution that it starts because of it.
type TriggerStart struct {
	Name       string
	Definition string
	Execution  flowfabric.ExecutionID
}

// published reads a notice of the outbox (lua/lib/subject.lua).
func (x *OutboxEntry) published(partitions uint16, kind, text string) error {
	if kind == "s" {
		name, definition, ok := strings.Cut(text, unit)
		if !ok || x.Event == nil {
			return fmt.Errorf("notice: a start of %q without an event", clip(name))
		}
		x.Event.Starts = append(x.Event.Starts, TriggerStart{Name: name, Definition: definition,
			Execution: mint.Join(ids.Triggered(partitions, x.Event.event, name))})
		return nil
	}
	p := strings.SplitN(text, unit, 6)
	if len(p) != 6 {
		return fmt.Errorf("notice: an event of %d parts", len(p))
	}
	event, err := ids.ParseUUID(p[0])
	at, bad := strconv.ParseInt(p[4], 10, 64)
	if err != nil || bad != nil {
		return fmt.Errorf("notice: event %q at %q", clip(p[0]), clip(p[4]))
	}
	x.Event = &Published{Subject: Subject{p[1], p[2]}, ID: p[3], At: time.UnixMilli(at).UTC(), Data: []byte(p[5]),
		event: event}
	return nil
}
