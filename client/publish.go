package client

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/internal/trigger"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// publisher is the part of the engine behind published events. Each call may be repeated.
type publisher interface {
	PublishEvent(ctx context.Context, x engine.Event) (engine.PublishedNow, error)
	PutTrigger(ctx context.Context, t engine.Trigger) (already bool, err error)
	RemoveTrigger(ctx context.Context, s engine.Subject, name string) (already bool, err error)
}

// Event is something that happened, for [Client.Publish].
type Event struct {
	// Subject says what happened, such as order.paid: 1..128 bytes of printable ASCII without braces.
	Subject string
	// ID tells events of the subject apart: 1..256 bytes without control characters. "" mints one.
	ID string
	// Data is encoded as JSON, at most 64 KiB; a json.RawMessage is sent as it is. nil is null. It is the input of what
	// the event starts, and what a wait returns. At most 1,024 fields outside of lists have a value that is no object.
	Data any
	// Namespace has its own subjects. Default Config.Namespace.
	Namespace string
}

// Published answers a [Client.Publish].
type Published struct {
	ID        string `json:"id" jsonschema:"of the event"`
	Starts    int    `json:"starts" jsonschema:"how many executions it starts, one for each trigger that it matched"`
	Resumes   int    `json:"resumes" jsonschema:"how many waits it goes to (handler.Task.Expect)"`
	Duplicate bool   `json:"duplicate" jsonschema:"it was published before, in the last day, and this call did nothing"`
}

// Publish publishes an event: each [Trigger] of its subject whose filter it matches starts one execution, with the
// event's data as its input and the tags event.subject and event.id. It goes also to each wait that it matches, see
// handler.Task.Expect. Triggers and waits that come later do not see it. When Publish has returned, the store has
// recorded what is to be done; a maintenance loop does it, soon, whatever fails meanwhile. Each is done once, also if
// the event is published again with the same ID: the store knows an event for a day, and its executions as long as
// they are kept. A caller that repeats Publish after an error sets ID.
//
// Errors before any I/O: flowfabric.ErrInvalidInput with the field, ErrPayloadTooLarge. From the server: ErrConflict
// when the ID was published with other data, ErrLimit when it may concern more than 1,000 waits (nothing is published
// then), ErrOutOfMemory, ErrTransport.
func (c *Client) Publish(ctx context.Context, event Event) (Published, error) {
	fail := func(err error) (Published, error) {
		return Published{}, fmt.Errorf("publish %.128q: %w", event.Subject, err)
	}
	if c.closed.Load() {
		return fail(ErrClosed)
	}
	x := engine.Event{Subject: c.subject(event.Namespace, event.Subject), ID: cmp.Or(event.ID, mint.UUID().String())}
	if err := cmp.Or(checkSubject(x.Subject), trigger.CheckID(x.ID)); err != nil {
		return fail(err)
	}
	var err error
	if x.Data, err = json.Marshal(event.Data); err != nil {
		return fail(fmt.Errorf("%w: Data does not encode as JSON: %w", flowfabric.ErrInvalidInput, err))
	}
	if len(x.Data) > limits.MaxEventData {
		return fail(fmt.Errorf("%w: Data has %d bytes, want at most %d", flowfabric.ErrPayloadTooLarge, len(x.Data),
			limits.MaxEventData))
	}
	if x.Terms, err = trigger.Terms(x.Data); err != nil {
		return fail(err)
	}
	done, err := c.store.PublishEvent(ctx, x)
	if err != nil {
		return fail(err)
	}
	return Published{ID: x.ID, Starts: done.Starts, Resumes: done.Resumes, Duplicate: done.Already}, nil
}

// Trigger starts an execution for each published event of a subject that its filter matches.
type Trigger struct {
	// Name tells the triggers of a subject apart: 1..64 bytes of printable ASCII without braces.
	Name string `json:"name"`
	// Subject is that of the events, see [Event].
	Subject string `json:"subject"`
	// Where is the filter: fields of the data, by names joined by dots, and the string, number, boolean or null that
	// each must have, at most 8. All must match; fields inside of lists match nothing. Empty: every event matches.
	Where map[string]any `json:"where,omitempty"`
	// Start is what each execution starts with; its Namespace is that of the subject. What a schedule cannot say has no
	// place here either: keys, delays, and instants.
	flowfabric.Start `for:"schedule"`
}

// PutTrigger creates or changes a trigger, and tells whether it was so before. It counts for events that are published
// afterwards. A program may call it at every start.
//
// A subject of a namespace has at most 100 triggers. Those that an event matches start as they were when it was
// published. A start that the store refuses, as that of a lane which is disabled, is given up; the list of triggers
// tells the last one of each.
//
// Errors before any I/O: flowfabric.ErrInvalidInput with the field. From the server: ErrInvalidInput for the 101st
// trigger, ErrNotFound for a gate that does not exist, ErrOutOfMemory, ErrTransport.
func (c *Client) PutTrigger(ctx context.Context, t Trigger, opts ...flowfabric.ActOption) (already bool, err error) {
	put, err := c.trigger(t)
	act, unnamed := c.act(opts)
	if err = cmp.Or(err, unnamed); err == nil {
		err = c.link.Gates.Require(ctx, t.Gates())
	}
	if r := link.Rehearsed(ctx); r != nil && err == nil {
		r.Trigger = put.Definition
		return false, nil
	}
	if err == nil {
		already, err = c.store.PutTrigger(act.In(ctx, put.Namespace, "put", "trigger", t.Name, t.Subject, t.Kind), put)
	}
	if err != nil {
		err = fmt.Errorf("trigger %.64q: %w", t.Name, err)
	}
	return already, err
}

// trigger is what is stored of a trigger.
func (c *Client) trigger(t Trigger) (out engine.Trigger, err error) {
	common, err := prepare(c, handler.Define[[]byte, []byte](t.Kind), nil)
	if err != nil {
		return out, err
	}
	start := common.Item.Start
	if err := option.Apply(&start, 0, flowfabric.StartWith(t.Start)); err != nil {
		return out, err
	}
	start.Creator = cmp.Or(t.Creator, start.Creator)
	out = engine.Trigger{Subject: engine.Subject{Namespace: start.Namespace, Text: t.Subject}, Name: t.Name}
	if err := cmp.Or(checkSubject(out.Subject), valid.Name("name", t.Name)); err != nil {
		return out, err
	}
	out.Definition, out.Terms, err = trigger.Encode(trigger.Definition{Where: t.Where, Start: start})
	return out, err
}

// RemoveTrigger forgets the trigger that has the Name, Subject and Namespace of t, whose other fields do not count, and
// tells whether there was one. Events that were published before still start what it said.
//
// Errors: flowfabric.ErrInvalidInput before any I/O; ErrTransport.
func (c *Client) RemoveTrigger(ctx context.Context, t Trigger, opts ...flowfabric.ActOption) (removed bool, err error) {
	s, already := c.subject(t.Namespace, t.Subject), false
	act, err := c.act(opts)
	if c.closed.Load() {
		err = ErrClosed
	}
	if err = cmp.Or(err, checkSubject(s), valid.Name("name", t.Name)); err == nil {
		ctx = act.In(ctx, s.Namespace, "remove", "trigger", t.Name, t.Subject)
		already, err = c.store.RemoveTrigger(ctx, s, t.Name)
	}
	if err != nil {
		return false, fmt.Errorf("trigger %.64q: %w", t.Name, err)
	}
	return !already, nil
}

func (c *Client) subject(namespace, text string) engine.Subject {
	return engine.Subject{Namespace: cmp.Or(namespace, c.cfg.Namespace), Text: text}
}

func checkSubject(s engine.Subject) error {
	return cmp.Or(valid.Name("namespace", s.Namespace), trigger.CheckSubject(s.Text))
}
