package model_test

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/flowfabric/flowfabric-go/internal/model"
)

// serial is an id that was not used before.
func (h *hand) serial() string {
	h.made++
	return fmt.Sprintf("00000000-0000-4000-b000-%012x", h.made)
}

// wait draws what a holder does about waitpoints.
func (h *hand) wait(t *rapid.T, c *call) {
	h.made++
	c.Point = point(h.made)
	c.Name = one(t, "name", "", "a", "b")
	if old, ok := h.known(t, c.ID); ok && (c.Kind == "unpend" || rarely(t, "old", 6)) {
		c.Point = old
	}
	c.Number = one(t, "life", int64(0), 2000, 60_000, 60_000, -1)
	if rarely(t, "bad", 30) {
		c.Point.Kid = "k9"
	}
	if c.Kind != "suspend" {
		return
	}
	q := model.Wait{ID: h.serial(), Request: one(t, "request", "", "r1", "r2"), Name: c.Name,
		Reason:  one(t, "reason", "waiting_for_signal", "waiting_for_approval", "manual_pause"),
		Timeout: one(t, "timeout", int64(0), 1500, 5000, 50_000),
		Behaviour: one(t, "behaviour", "fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal",
			"auto_resume_open", "auto_resume_open", "escalate"),
		Delay: one(t, "delay", int64(0), 0, 1200), Point: c.Point, Need: 1,
		Names: one(t, "names", []string{"go"}, []string{"go", ""}, []string{"", "go", "go"})}
	q.Need = 1 + upto(t, "need", len(q.Names))
	if old, ok := h.known(t, c.ID); ok && rarely(t, "pending", 2) {
		q.Point, q.Pending = old, true
	}
	switch upto(t, "odd", 24) {
	case 0:
		q.Only = "O"
	case 1:
		q.Only = "T"
	case 2:
		q.Need = 4
	case 3:
		q.Names[0] = "__x"
	case 4:
		q.Reason = "boredom"
	case 5:
		q.Point.Key = "another"
	case 6, 7, 8, 9:
		q.Only = one(t, "mailbox", "M\x1fa", "M\x1fa", "M\x1fb", "M\x1f")
		q.Name = one(t, "receipt", "r1", "r2", "r3", "r4")
	}
	c.Wait = q
}

// known picks a waitpoint of an execution, mostly one that is pending, else one of the last.
func (h *hand) known(t *rapid.T, id string) (model.Point, bool) {
	var mine, pending []model.Point
	for _, p := range h.points {
		if x := h.p.Executions[id]; p.id == id {
			mine = append(mine, p.Point)
			if x != nil && x.Points[p.ID].State == "p" {
				pending = append(pending, p.Point)
			}
		}
	}
	if len(pending) > 0 && !rarely(t, "any", 3) {
		mine = pending
	}
	if len(mine) == 0 {
		return model.Point{}, false
	}
	return mine[len(mine)-1-upto(t, "which", min(2, len(mine)))], true
}

// message draws what somebody sends: to mailboxes that are waited for, some again, and some too large for a full
// mailbox.
func (h *hand) message(t *rapid.T, c *call) {
	c.ID = h.id(t)
	c.Message = model.Message{ID: h.serial(), Mailbox: one(t, "mailbox", "a", "a", "b"),
		Key: one(t, "key", "", "", "k1", "k2"), By: one(t, "by", "", "me"),
		Payload: one(t, "payload", "", "1", "\"x\"")}
	for _, old := range h.past {
		if old.Kind == "send" && rarely(t, "again", 8) {
			c.ID, c.Message = old.ID, old.Message
		}
	}
	if rarely(t, "large", 8) {
		c.Message.Payload = strings.Repeat("x", one(t, "bytes", 65_536, 65_536, 65_537))
	}
	if rarely(t, "bad", 30) {
		c.Message.Mailbox = one(t, "name", "", "é", strings.Repeat("m", 97))
	}
}

// signal draws a delivery, a tenth of them with a wrong token.
func (h *hand) signal(t *rapid.T, c *call) {
	c.ID = h.id(t)
	c.Point = point(999)
	if len(h.points) > 0 && !rarely(t, "nowhere", 10) {
		p := one(t, "point", h.points[max(0, len(h.points)-4):]...)
		c.ID, c.Point = p.id, p.Point
	}
	c.Signal = model.Signal{ID: h.serial(), Name: one(t, "name", "go", "go", "on"), Key: one(t, "key", "", "", "k1"),
		TTL: one(t, "ttl", int64(1000), 60_000), Payload: one(t, "payload", "", "1", "\x1f2\x1e")}
	switch upto(t, "odd", 24) {
	case 0:
		c.Point.Digest = point(998).Digest
	case 1:
		c.Point.Digest = "short"
	case 2:
		c.Signal.Name = "__timeout"
	case 3:
		c.Signal.Payload = strings.Repeat("x", 65_537)
	case 4:
		c.Signal.ID = "short"
	}
}

// resume draws the word of an operator.
func (h *hand) resume(t *rapid.T, c *call) {
	c.ID = h.id(t)
	for _, id := range h.ids {
		if x := h.p.Executions[id]; x != nil && x.Code[0] == 'S' && !rarely(t, "other", 4) {
			c.ID = id
		}
	}
	c.Resume = model.Resumption{Request: h.serial(), Trigger: one(t, "trigger", "operator", "auto_resume"),
		By: h.who(t), Why: one(t, "why", "", "because"), Delay: one(t, "delay", int64(0), 0, 1500)}
	if rarely(t, "expected", 4) {
		c.Resume.Expected = unknown
		if x := h.p.Executions[c.ID]; x != nil && x.Suspension != nil && rarely(t, "right", 2) {
			c.Resume.Expected = x.Suspension.ID
		}
	}
	if rarely(t, "bad", 20) {
		c.Resume.Trigger = "whim"
	}
}
