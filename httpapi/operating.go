package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// why is in the body of every change, and all of it where a change needs no more.
type why struct {
	Reason string `json:"reason,omitempty" jsonschema:"the audit trail keeps 512 bytes of it, a history 1 KiB; of a hold at most 256"`
}

func (c *call) by() flowfabric.By { return flowfabric.By(c.who.Name) }

// act says who makes a change, and why.
func (c *call) act(w why) []flowfabric.ActOption {
	return []flowfabric.ActOption{c.by(), flowfabric.Reason(w.Reason)}
}

type replayBody struct {
	admin.Replay
	why
}

func (c *call) replay(id flowfabric.ExecutionID, b *replayBody) error {
	return c.h.admin.Replay(c.ctx(), id, b.Replay, c.act(b.why)...)
}

type delayBody struct {
	DelayMs int64 `json:"delay_ms" jsonschema:"from now, 0 is at once, at most ten years"`
	why
}

func (c *call) setDelay(id flowfabric.ExecutionID, b *delayBody) error {
	return c.h.admin.SetDelay(c.ctx(), id, ms(b.DelayMs), c.act(b.why)...)
}

type priorityBody struct {
	Priority int `json:"priority" jsonschema:"0..9000, higher first"`
	why
}

func (c *call) setPriority(id flowfabric.ExecutionID, b *priorityBody) error {
	return c.h.admin.SetPriority(c.ctx(), id, b.Priority, c.act(b.why)...)
}

type tagsBody struct {
	Set    map[string]string `json:"set,omitempty"`
	Remove []string          `json:"remove,omitempty"`
	why
}

func (c *call) setTags(id flowfabric.ExecutionID, b *tagsBody) error {
	return c.h.admin.SetTags(c.ctx(), id, b.Set, b.Remove, c.act(b.why)...)
}

// kept is how long ids outlive a purge.
type kept struct {
	KeepMs int64 `json:"keep_ms,omitempty" jsonschema:"of a purge: how long ids stay taken, 24 h to ten years; default 24 h"`
}

type purgeBody struct {
	kept
	why
}

func (c *call) purge(id flowfabric.ExecutionID, b *purgeBody) error {
	return c.h.admin.Purge(c.ctx(), id, ms(b.KeepMs), c.act(b.why)...)
}

type revokeBody struct {
	HeldBy string `json:"held_by,omitempty" jsonschema:"only from the worker that has this session"`
	why
}

// revoke takes an execution from the worker that has it.
func (c *call) revoke(id flowfabric.ExecutionID, b *revokeBody) error {
	return c.h.admin.RevokeFrom(c.ctx(), id, b.HeldBy, c.act(b.why)...)
}

type resumeBody struct {
	admin.Resume
	why
}

// resume lets a suspended execution go on without an answer.
func (c *call) resume(id flowfabric.ExecutionID, b *resumeBody) error {
	return c.h.admin.Resume(c.ctx(), id, b.Resume, c.act(b.why)...)
}

type waitpointList admin.Page[suspend.Waitpoint]

func (c *call) waitpoints(id flowfabric.ExecutionID) (waitpointList, error) {
	list, err := c.h.client.Waitpoints(c.ctx(), id)
	return waitpointList{Items: append([]suspend.Waitpoint{}, list...)}, err
}

// reply is an answer to a waitpoint.
type reply struct {
	suspend.SentSignal `for:"reply"`
	Payload            json.RawMessage `json:"payload,omitempty" jsonschema:"any JSON value, at most 64 KiB; default null. To a question: choice, and maybe comment and by"`
}

func (b *reply) value() json.RawMessage { return value(b.Payload) }

func (b *reply) options() (opts []client.SignalOption) {
	if b.Name != "" {
		opts = append(opts, client.SignalName(b.Name))
	}
	if b.IdempotencyKey != "" {
		opts = append(opts, flowfabric.IdempotencyKey(b.IdempotencyKey))
	}
	if b.Category != "" || b.Correlation != "" {
		opts = append(opts, client.SignalDetails(suspend.SentSignal{Category: b.Category, Correlation: b.Correlation}))
	}
	return opts
}

func (c *call) answer(b *reply) (none suspend.Delivered, err error) {
	if err := c.keyed(&b.IdempotencyKey); err != nil {
		return none, err
	}
	id, err := c.id()
	if err != nil {
		return none, err
	}
	which := c.r.PathValue("key")
	opts := []client.ApproveOption{c.by()}
	for _, o := range b.options() {
		opts = append(opts, o)
	}
	d, err := c.h.client.Approve(c.ctx(), id, which, b.value(), opts...)
	return d, chosen(c.answered(id, which, err))
}

// signal is one with a token, which is all that its sender needs.
type signal struct {
	Token string `json:"token"`
	reply
}

func (c *call) signal(b *signal) (none suspend.Delivered, err error) {
	if err := c.keyed(&b.IdempotencyKey); err != nil {
		return none, err
	}
	token, err := suspend.ParseToken(b.Token)
	if err != nil {
		return none, err
	}
	d, err := c.h.client.Signal(c.ctx(), token, b.value(),
		append(b.options(), client.SignalSource("api", c.who.Name))...)
	return d, chosen(err)
}

type laneList admin.Page[admin.Lane]

// asked is the namespace that the query names, and the page.
func (c *call) asked() (string, paging, error) {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return "", page, q.err
	}
	namespace, err := c.namespace(q.text("namespace"))
	return namespace, page, err
}

func (c *call) lanes() (laneList, error) {
	namespace, page, err := c.asked()
	if err != nil {
		return laneList{}, err
	}
	list, err := c.h.admin.Lanes(c.ctx(), namespace)
	out, err := cut(page, list, err, func(l admin.Lane) string { return keyOf(l.Namespace, l.Name) })
	return laneList(out), err
}

type queueList admin.Page[admin.Queue]

func (c *call) queues() (queueList, error) {
	namespace, page, err := c.asked()
	if err != nil {
		return queueList{}, err
	}
	list, err := c.h.admin.Queues(c.ctx(), namespace)
	out, err := cut(page, list, err, func(q admin.Queue) string {
		return keyOf(q.Namespace, q.Lane, q.Kind, strings.Join(q.Capabilities, ","), q.Drift)
	})
	return queueList(out), err
}

type workerList admin.Page[flowfabric.Worker]

func (c *call) workers() (workerList, error) {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return workerList{}, q.err
	}
	list, err := c.h.admin.Workers(c.ctx())
	if len(c.who.Namespaces) > 0 {
		list = slices.DeleteFunc(list, func(w flowfabric.Worker) bool {
			return !slices.Contains(w.Namespaces, "*") && !slices.ContainsFunc(w.Namespaces, c.who.may)
		})
	}
	out, err := cut(page, list, err, func(w flowfabric.Worker) string { return w.Instance })
	return workerList(out), err
}

type health struct {
	Status string `json:"status"`
}

func (c *call) healthz() error { return c.answerJSON(http.StatusOK, health{"ok"}) }

func (c *call) readyz() error {
	ctx, cancel := context.WithTimeout(c.ctx(), 2*time.Second)
	defer cancel()
	if err := c.h.client.Ping(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = flowfabric.ErrTransport
		}
		return err
	}
	return c.answerJSON(http.StatusOK, health{"ok"})
}
