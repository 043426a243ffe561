package httpapi

import (
	"encoding/json"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
)

// why is in the body of every change, and all of it where a change needs no more.
type why struct {
	Reason string `json:"reason,omitempty" jsonschema:"the audit trail and a history keep 1 KiB of it; of a hold at most 256"`
}

// actor is flowfabric.By.
type actor interface {
	flowfabric.ActOption
	client.ApproveOption
	client.SendOption
}

func (c *call) by() actor { return flowfabric.By(c.who.Name) }

// act says who makes a change, and why.
func (c *call) act(w why) []flowfabric.ActOption {
	return []flowfabric.ActOption{c.by(), flowfabric.Reason(w.Reason)}
}

// change is act for what has a revision.
func (c *call) change(w why, revision flowfabric.ChangeOption) []flowfabric.ChangeOption {
	return []flowfabric.ChangeOption{c.by(), flowfabric.Reason(w.Reason), revision}
}

// stop ends what an agent says.
func (c *call) stop(b *why) (none client.Stopped, err error) {
	id, err := c.id()
	if err != nil {
		return none, err
	}
	return c.h.client.Execution(id).Stop(c.ctx(), c.act(*b)...)
}

type replayBody struct {
	admin.Replay
	why
}

func (c *call) replay(id flowfabric.ExecutionID, b *replayBody) error {
	return c.h.admin.Replay(c.ctx(), id, b.Replay, c.act(b.why)...)
}

type rewindBody struct {
	Step    string          `json:"step" jsonschema:"the step of the handler that is forgotten, with everything that was recorded after it"`
	Attempt uint32          `json:"attempt,omitempty" jsonschema:"the attempt that it was seen in: in another one nothing is done; absent for any"`
	Message json.RawMessage `json:"message,omitempty" jsonschema:"what is said in the place of what was said before the step, any JSON; at most 64 KiB"`
	why
}

func (c *call) rewind(b *rewindBody) (client.Rewound, error) {
	id, err := c.id()
	if err != nil {
		return client.Rewound{}, err
	}
	how := client.Rewind{Step: b.Step, Attempt: b.Attempt}
	if b.Message != nil {
		how.Message = b.Message
	}
	return c.h.client.Execution(id).Rewind(c.ctx(), how, c.act(b.why)...)
}

type forkBody struct {
	client.Fork
	Input json.RawMessage `json:"input,omitempty" jsonschema:"another input, any JSON value of at most 1 MiB; default: that of the execution"`
	why
}

func (c *call) fork(b *forkBody) (client.Forked, error) {
	id, err := c.id()
	if err != nil {
		return client.Forked{}, err
	}
	b.Fork.Input = b.Input
	return c.h.client.Execution(id).Fork(c.ctx(), b.Fork, c.act(b.why)...)
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
	return c.h.admin.Revoke(c.ctx(), id, b.HeldBy, c.act(b.why)...)
}

type resumeBody struct {
	admin.Resume
	why
}

// resume lets a suspended execution go on without an answer.
func (c *call) resume(id flowfabric.ExecutionID, b *resumeBody) error {
	return c.h.admin.Resume(c.ctx(), id, b.Resume, c.act(b.why)...)
}
