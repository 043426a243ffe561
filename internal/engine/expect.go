package engine

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Expectation asks for the next event that matches.
type Expectation struct {
	Subject
	Terms     []string // that it must have, see package trigger; at most 8
	Execution flowfabric.ExecutionID
	Waitpoint flowfabric.UUID
	Digest    string // of the waitpoint's token
}

// ExpectEvent has a waitpoint of an execution take the next event that matches (lua/suspend/ff_expect_event.lua). It
// was opened before, with Minted.Event. The call may be repeated. denied.TooManyExpected.
func (e *Engine) ExpectEvent(ctx context.Context, x Expectation) error {
	partition, subject := e.place(x.Subject)
	_, err := e.settled(ctx, partition, wire.ExpectEvent{Subject: subject, Waiter: full(x.Execution),
		Waitpoint: x.Waitpoint.String(), Digest: x.Digest, Terms: x.Terms})
	return err
}

// Expected is a waitpoint that takes an event.
type Expected struct {
	Subject   uuid.UUID // ids.Subject
	Execution flowfabric.ExecutionID
	Waitpoint flowfabric.UUID
}

// At is the partition in which that is known.
func (x Expected) At(partitions uint16) uint16 { return ids.Partition(x.Subject, partitions) }

// ForgetExpected has subjects of one partition forget waitpoints, at most 100 (lua/suspend/ff_forget_expected.lua), and
// returns how many of them it knew. It may be repeated.
func (e *Engine) ForgetExpected(ctx context.Context, partition uint16, items []Expected) (forgotten int, err error) {
	q := wire.ForgetExpected{}
	for _, x := range items {
		q.Items = append(q.Items, wire.ForgetExpectedItem{Subject: x.Subject.String(), Waiter: full(x.Execution),
			Waitpoint: x.Waitpoint.String()})
	}
	r, _, err := ask[wire.ForgetExpectedReply](ctx, e, partition, q)
	return r.Forgotten, err
}

// Expected lists the waitpoints that take events of the subjects of a partition, at most 100 behind the first skip of
// them (lua/operate/ff_list_expected.lua).
func (e *Engine) Expected(ctx context.Context, partition uint16, skip int) (out []Expected, err error) {
	r, _, err := ask[wire.ListExpectedReply](ctx, e, partition, wire.ListExpected{Skip: skip, Limit: limits.MaxListed})
	for _, x := range r.Expected {
		id, bad := parseFull(partition, x.Waiter)
		if err = errors.Join(err, bad); err != nil {
			return nil, unread("ff_list_expected", err)
		}
		out = append(out, Expected{Subject: uuid.UUID(x.Subject), Execution: id, Waitpoint: x.Waitpoint})
	}
	return out, err
}

// EventResume is a wait that an event goes to.
type EventResume struct {
	Execution flowfabric.ExecutionID
	Waitpoint flowfabric.UUID
	Digest    string
}

// BringEvent brings an event to a wait, as a signal with the name event, whose source is the subject and whose
// correlation the id of the event. The data is stored as it is. It may be repeated. The errors are those of
// DeliverSignal.
func (e *Engine) BringEvent(ctx context.Context, x *Published, to EventResume) error {
	s := signal(suspend.SentSignal{ID: flowfabric.UUID(ids.Brought(x.event, uuid.UUID(to.Waitpoint))),
		Name: "event", SourceType: "event", Source: x.Text, Correlation: x.ID, CreatedAt: x.At, Encoding: "json"})
	s.Payload = rueidis.BinaryString(x.Data)
	_, err := e.deliver(ctx, to.Execution, s, wire.DeliverSignal{ID: ids.UUID(to.Execution).String(),
		Waitpoint: to.Waitpoint.String(), Digest: to.Digest, Signal: s})
	return err
}

// expected reads a notice of the outbox (lua/lib/expect.lua).
func (x *OutboxEntry) expected(partition uint16, kind string, h *header) {
	first := h.next()
	if kind == "x" {
		subject, err := ids.ParseUUID(first)
		x.Forget = append(x.Forget, Expected{Subject: subject, Execution: h.id(partition), Waitpoint: h.uuid()})
		if h.err == nil {
			h.err = err
		}
		return
	}
	id, err := parseFull(partition, first)
	if x.Event == nil {
		err = errors.Join(err, errors.New("a resumption without an event"))
	} else {
		x.Event.Resumes = append(x.Event.Resumes, EventResume{Execution: id, Waitpoint: h.uuid(), Digest: h.next()})
	}
	if h.err == nil {
		h.err = err
	}
}
