package model_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/model"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// weights says how often each kind of call is drawn.
var weights = map[string]int{"create": 10, "claim": 24, "complete": 5, "complete and claim": 4, "fail": 8, "delay": 5,
	"continue": 4, "release": 4, "cancel": 4, "step": 8, "progress": 4, "append": 8, "priority": 3, "set delay": 5,
	"replay": 7, "rewind": 6, "tags": 3, "purge": 3, "revoke": 4, "mark dead": 2, "renew": 5, "held": 2, "close": 3,
	"subscription": 2, "tick": 14, "suspend": 9, "pend": 6, "unpend": 4, "signal": 12, "resume": 4, "send": 9,
	"receive": 7, "messages": 1, "set lane": 5, "lanes": 1}

// lottery has each kind as often as its weight.
var lottery = func() (all []string) {
	for _, k := range slices.Sorted(maps.Keys(weights)) {
		all = append(all, slices.Repeat([]string{k}, weights[k])...)
	}
	return all
}()

// fenced are the calls of a holder.
var fenced = []string{"complete", "complete and claim", "fail", "delay", "continue", "release", "step", "progress",
	"append", "revoke", "suspend", "pend", "unpend", "receive"}

const (
	workers = 3
	most    = 7 // executions of a case
)

// unknown is an id that is never created.
const unknown = "ffffffff-0000-4000-8000-000000000000"

// hand draws calls that make sense to the model's state, and a part that does not: other fences, numbers out of
// bounds, unknown ids.
type hand struct {
	p        *model.Partition
	ids      []string
	sessions [workers]string
	opened   int // sessions so far
	fences   []model.Claim
	requests int
	past     []call
	points   []pointed
	made     int // waitpoints, signals and suspensions so far
}

// pointed is a waitpoint with its execution.
type pointed struct {
	id string
	model.Point
}

func newHand(p *model.Partition) *hand {
	h := &hand{p: p}
	for i := range h.sessions {
		h.mint(i)
	}
	return h
}

// mint gives a worker a new session, as it does when the old one is dead.
func (h *hand) mint(worker int) {
	h.opened++
	h.sessions[worker] = fmt.Sprintf("w%d~%d", worker, h.opened)
}

// coins make a number of 0..1023 with even chances: the generators of rapid prefer the ends of a range.
var coins = rapid.Custom(func(t *rapid.T) (n int) {
	for range 10 {
		n *= 2
		if rapid.Bool().Draw(t, "coin") {
			n++
		}
	}
	return n
})

// upto draws one of 0..n-1; it shrinks to 0.
func upto(t *rapid.T, name string, n int) int { return coins.Draw(t, name) * n / 1024 }

// one draws one of some values; it shrinks to the first.
func one[T any](t *rapid.T, name string, from ...T) T { return from[upto(t, name, len(from))] }

// rarely is true once in n times; it shrinks to false.
func rarely(t *rapid.T, name string, n int) bool { return upto(t, name, n) == n-1 }

func (h *hand) draw(t *rapid.T) call {
	if len(h.past) > 0 && rarely(t, "again", 10) { // the same once more, as after a lost reply
		c := one(t, "which", h.past[max(0, len(h.past)-6):]...)
		return c
	}
	c := call{Kind: one(t, "kind", lottery...)}
	if slices.Contains(fenced, c.Kind) && len(h.active()) == 0 && !rarely(t, "idle", 8) {
		c.Kind = "claim" // nobody holds anything: get something
	}
	switch c.Kind {
	case "create":
		c.Submit = h.submission(t)
	case "claim":
		c.Claim = h.request(t)
	case "complete", "complete and claim":
		h.fence(t, &c)
		c.Number, c.Claim = int64(upto(t, "bytes", 4)), h.request(t)
		if rarely(t, "large", 30) {
			c.Number = limits.MaxPayload + 1
		}
	case "fail":
		h.fence(t, &c)
		c.Failure = model.Failure{Category: one(t, "category", "c1", "c2", "permanent", ""),
			Reason: one(t, "reason", "", "because"), Permanent: rarely(t, "permanent", 8),
			After: one(t, "after", int64(-1), -1, -1, 0, 700)}
	case "delay":
		h.fence(t, &c)
		c.Number = one(t, "ms", int64(0), 1, 1500, 20_000, -1)
	case "continue":
		h.fence(t, &c)
		c.Number = one(t, "bytes", int64(0), 3, 3, 1500)
		if rarely(t, "large", 30) {
			c.Number = limits.MaxPayload + 1
		}
	case "release":
		h.fence(t, &c)
	case "cancel":
		h.cancel(t, &c)
	case "step":
		h.fence(t, &c)
		c.Name, c.Value = one(t, "name", "s1", "s2", ""), one(t, "value", "a", "b", "")
		for _, id := range h.active() {
			if x := h.p.Executions[id]; len(x.Steps) > 0 && rarely(t, "known", 2) {
				c.ID, c.Fence, c.Name = id, x.Held, slices.Min(slices.Collect(maps.Keys(x.Steps)))
			}
		}
		if rarely(t, "large", 30) {
			c.Value = strings.Repeat("v", limits.MaxStepBytes+1)
		}
	case "progress":
		h.fence(t, &c)
		c.Number, c.Name = one(t, "percent", int64(-1), 0, 50, 100, 101), one(t, "message", "", "half", "done")
	case "append":
		h.fence(t, &c)
		c.Number2, c.Count, c.Number = uint64(upto(t, "first", 5)), upto(t, "count", 4), 5
		if rarely(t, "mixed", 2) {
			h.modes(t, &c)
		}
		if rarely(t, "large", 30) {
			c.Number = limits.MaxFrame + 1
		}
	case "priority":
		c.ID, c.Number, c.Name = h.id(t), one(t, "priority", int64(0), 1, 5, 9001, -3), h.who(t)
	case "set delay":
		c.ID, c.Number, c.Number2, c.Name = h.delayed(t), one(t, "delay", int64(0), 0, 1500),
			uint64(upto(t, "request", 6)), h.who(t)
	case "replay":
		h.replay(t, &c)
	case "rewind":
		h.rewind(t, &c)
	case "tags":
		c.ID = h.id(t)
		c.Set = one(t, "set", nil, map[string]string{"a.b": "1"}, map[string]string{"a.b": "2", "c.d": ""},
			map[string]string{"A": "x"}, map[string]string{"e.f": strings.Repeat("x", 257)})
		c.List = one(t, "remove", nil, []string{"a.b"}, []string{"c.d", "x.y"})
	case "purge":
		c.ID, c.Number = h.id(t), one(t, "keep", int64(86_400_000), 100_000_000, 86_399_999)
	case "revoke":
		c.ID, c.Session, c.Name, c.Value = h.held(t), one(t, "session", "", "", h.sessions[0]), h.who(t), "because"
		c.Number2 = one(t, "request", uint64(len(h.past)), uint64(len(h.past)), 1, 2)
	case "mark dead":
		c.Session, c.Value = h.session(t), "gone"
		if rarely(t, "bad", 30) {
			c.Session = ""
		}
	case "renew":
		h.renew(t, &c)
	case "held", "close":
		c.Session = h.session(t)
		if rarely(t, "bad", 30) {
			c.Session = ""
		}
	case "subscription":
		c.Name, c.Routes = one(t, "digest", "aa", "bb", "cc"),
			one(t, "routes", every, []int{1, 2}, nil, slices.Sorted(maps.Keys(h.p.Routes)))
		if rarely(t, "bad", 30) {
			c.Name = "not hex"
		}
	case "suspend", "pend", "unpend":
		h.fence(t, &c)
		h.wait(t, &c)
	case "set lane":
		h.lane(t, &c)
	case "signal":
		h.signal(t, &c)
	case "send":
		h.message(t, &c)
	case "receive":
		h.fence(t, &c)
		c.Name, c.Count = one(t, "receipt", "r1", "r2", "r3", "r4"), one(t, "most", 1, 1, 2, 100)
		c.Message.Mailbox, c.Value = one(t, "mailbox", "a", "a", "b"), one(t, "why", "", "looked", "timeout")
		if rarely(t, "bad", 30) {
			c.Count = 101
		}
	case "messages":
		c.ID = h.id(t)
	case "resume":
		h.resume(t, &c)
	case "tick":
		c.Name, c.Flag = one(t, "owner", "t1", "t1", "t1", "t1", "t2"), rarely(t, "release", 15)
		if rarely(t, "bad", 60) {
			c.Name = ""
		}
	}
	h.past = append(h.past, c)
	return c
}

// learn remembers what a real caller would.
func (h *hand) learn(c call, r model.Reply) {
	if c.Kind == "create" && r.Code == model.OK && !slices.Contains(h.ids, c.Submit.ID) {
		h.ids = append(h.ids, c.Submit.ID)
	}
	if c = c.usual(); (c.Kind == "pend" || c.Kind == "suspend" && c.Wait.Only == "") && r.Code == model.OK {
		made := c.Point
		if c.Kind == "suspend" {
			made = c.Wait.Point
		}
		h.points = append(h.points, pointed{c.ID, made})
	}
	claimed := r
	if r.Next != nil {
		claimed = *r.Next
	}
	h.fences = append(h.fences, claimed.Claims...)
	if c.Kind == "claim" || r.Next != nil {
		if i := slices.Index(h.sessions[:], c.Claim.Session); claimed.Code == "lease_expired" && i >= 0 {
			h.mint(i)
		}
	}
}

func (h *hand) submission(t *rapid.T) model.Submission {
	n := len(h.ids)
	s := model.Submission{ID: fmt.Sprintf("%08x-0000-4000-8000-%012x", (n*7+3)%16, n),
		Route: model.Route{Namespace: "n", Lane: one(t, "lane", "l", "l", "m"),
			Kind: one(t, "kind", "k1", "k1", "k2"), Capabilities: one(t, "capabilities", "", "", "gpu")},
		Priority: one(t, "priority", 0, 0, 1, 2, 9001, -1),
		Delay:    one(t, "delay", int64(0), 0, 0, 1500), Deadline: one(t, "deadline", int64(0), 0, 4000, 60_000),
		Input:  upto(t, "input", 3),
		Digest: one(t, "digest", "d1", "", "d2"), Policy: h.policy(t), Creator: one(t, "creator", "", "me")}
	if rarely(t, "keyed", 2) {
		s.Key, s.Held = one(t, "key", "00000000-0000-8000-8000-00000000000a", "00000000-0000-8000-8000-00000000000b"),
			one(t, "held", int64(0), 0, -1, 3000, 100_000_000)
	}
	if s.Key != "" && rarely(t, "debounced", 2) {
		s.Debounce, s.Delay, s.Most = true, one(t, "puts off", int64(1500), 700, 4000),
			one(t, "most", int64(0), 0, 4000, 6000)
		s.Digest = one(t, "its digest", "", "", "", "d1")
	}
	if rarely(t, "tagged", 3) {
		s.Tags = map[string]string{"a.b": "1"}
	}
	if n >= most || n > 0 && rarely(t, "twice", 6) {
		s.ID = one(t, "id", h.ids...)
	}
	if rarely(t, "spoiled", 5) {
		spoil(upto(t, "how", 15), &s)
	}
	return s
}

// spoil makes a submission one that is refused, in one of eleven ways.
func spoil(how int, s *model.Submission) {
	switch how {
	case 0:
		s.Route.Kind = "{k}"
	case 1, 9:
		s.Route.Capabilities = "a,,b"
	case 2, 10:
		s.Policy.Retry.MaxRetries = 2000
	case 3:
		s.Tags = map[string]string{"nodots": "x"}
	case 4:
		s.Tags = map[string]string{"a.b": strings.Repeat("x", 257)}
	case 5:
		s.Input = limits.MaxPayload + 1
	case 6:
		s.ID = "x"
	case 11:
		s.Key = "x"
	case 13:
		s.Key, s.Debounce, s.Delay, s.Most = "00000000-0000-8000-8000-00000000000a", true, 1500, 1000
	case 14:
		s.Key, s.Debounce, s.Delay = "00000000-0000-8000-8000-00000000000a", true, 0
	case 12:
		s.Key, s.Held = "00000000-0000-8000-8000-00000000000a", 31_536_000_001
	case 7:
		s.Policy.Retention.Failed = limits.MaxDelay + time.Second
	default:
		s.Delay = -5
	}
}

func (h *hand) policy(t *rapid.T) (p flowfabric.Policy) {
	switch upto(t, "retries", 6) {
	case 1, 2:
		p.Retry = flowfabric.RetryPolicy{MaxRetries: 2, Initial: 1000 * time.Millisecond, Max: 1200 * time.Millisecond,
			Multiplier: 1.5}
	case 3:
		p.Retry = flowfabric.RetryPolicy{MaxRetries: 1, Fixed: true, Max: time.Minute, Multiplier: 1}
	case 4:
		p.Retry = flowfabric.RetryPolicy{MaxRetries: 3, Categories: []flowfabric.Category{"c1", "attempt_timeout"},
			Initial: 333 * time.Millisecond, Max: time.Minute, Multiplier: 1.37}
	}
	p.MaxReclaims = one(t, "reclaims", 0, 1)
	p.MaxReplays = one(t, "replays", 0, 1, -1)
	p.AttemptTimeout = flowfabric.Millis(one(t, "timeout", 0, 0, 2500*time.Millisecond, 40*time.Second))
	p.Retention = valid.RetainAll(one(t, "retention", 0, 0, 0, time.Second, 7*time.Second, 60*time.Second,
		48*time.Hour))
	if upto(t, "of failed", 3) == 0 {
		p.Retention.Failed, p.Retention.Cancelled = one(t, "retention of failed", 0, 5*time.Second),
			one(t, "retention of cancelled", 0, 3*time.Second)
	}
	return p
}

func (h *hand) request(t *rapid.T) model.ClaimRequest {
	q := model.ClaimRequest{Session: h.session(t), TTL: one(t, "ttl", int64(30_000), 30_000, 5000, 1000),
		Max: one(t, "max", 1, 2, 10), Subscription: one(t, "subscription", "aa", "aa", "aa", "bb", "cc", ""),
		Wait: rarely(t, "wait", 2), Number: 1, Rotation: int64(upto(t, "rotation", 6))}
	if s := h.p.Sessions[q.Session]; s != nil {
		q.Number = s.Last + one(t, "number", uint64(1), 1, 1, 0, 2)
	} else if rarely(t, "late", 10) {
		q.Number = 2
	}
	versions := []int64{0, h.p.Table + 1, h.p.Table}
	for _, id := range slices.Sorted(maps.Keys(h.p.Routes)) {
		versions = append(versions, h.p.Routes[id].Version)
	}
	q.Table = one(t, "table", versions...)
	if rarely(t, "bad", 40) {
		q.TTL = 999
	}
	if rarely(t, "odd", 60) {
		q.Session, q.Number = "none", 1
	}
	return q
}

// fence picks the fence of a holder mostly, or an old one, a partial one, none, or one that is a little wrong.
func (h *hand) fence(t *rapid.T, c *call) {
	way := upto(t, "fence", 24)
	c.ID = h.held(t)
	if x := h.p.Executions[c.ID]; x != nil {
		c.Fence = x.Held
	}
	old := len(h.fences) > 0 && way >= 12
	if old {
		claim := one(t, "claim", h.fences[max(0, len(h.fences)-8):]...)
		c.ID, c.Fence = claim.ID, claim.Fence
	}
	switch way {
	case 17:
		c.Fence.Epoch++
	case 18:
		c.Fence.Attempt++
	case 19:
		c.Fence.Claim++
	case 20:
		c.Fence.Session = h.session(t)
	case 21:
		c.Fence = model.Fence{}
	case 22:
		c.Fence.Claim = 0
	case 23:
		c.ID = one(t, "id", unknown, "short")
	}
}

// held picks an execution that somebody holds, if there is one and the draw does not say otherwise.
func (h *hand) held(t *rapid.T) string {
	ids := h.active()
	if len(ids) == 0 || rarely(t, "any", 10) {
		return h.id(t)
	}
	return one(t, "id", ids...)
}

// delayed is mostly one that waits for a time.
func (h *hand) delayed(t *rapid.T) string {
	var ids []string
	for _, id := range h.ids {
		if x := h.p.Executions[id]; x != nil && strings.HasPrefix(string(x.Code), "R2") {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 || rarely(t, "any", 4) {
		return h.id(t)
	}
	return one(t, "id", ids...)
}

func (h *hand) active() (ids []string) {
	for _, id := range h.ids {
		if x := h.p.Executions[id]; x != nil && (x.Code == "A1" || x.Code == "A3") {
			ids = append(ids, id)
		}
	}
	return ids
}

func (h *hand) id(t *rapid.T) string {
	if len(h.ids) == 0 || rarely(t, "nobody", 25) {
		return one(t, "id", unknown, "short")
	}
	return one(t, "id", h.ids...)
}

func (h *hand) session(t *rapid.T) string { return one(t, "session", h.sessions[:]...) }

func (h *hand) who(t *rapid.T) string {
	if rarely(t, "long", 30) {
		return strings.Repeat("w", 65)
	}
	return "me"
}

func (h *hand) cancel(t *rapid.T, c *call) {
	source := one(t, "source", "operator_override", "operator_override", "flow_cascade", "owner", "owner", "nobody")
	c.Cancel = model.Cancellation{Source: source, Reason: one(t, "reason", "", "why")}
	h.fence(t, c)
	if c.Cancel.Source != "owner" && !rarely(t, "fenced", 4) {
		c.Fence = model.Fence{}
	}
}

func (h *hand) replay(t *rapid.T, c *call) {
	c.ID = h.id(t)
	for _, id := range h.ids {
		if x := h.p.Executions[id]; x != nil && x.Code[0] == 'T' && !rarely(t, "other", 4) {
			c.ID = id
		}
	}
	h.requests++
	c.Replay = model.Replay{Request: fmt.Sprintf("00000000-0000-4000-8000-%012x", h.requests),
		Drop: rarely(t, "drop", 2), Force: rarely(t, "force", 2), By: h.who(t), Reason: "again"}
	if x := h.p.Executions[c.ID]; x != nil && rarely(t, "from", 3) {
		c.Replay.Drop, c.Replay.From = false, one(t, "step", append(own(x), "none")...)
	}
}

func (h *hand) rewind(t *rapid.T, c *call) {
	c.ID = h.id(t)
	for _, id := range h.ids {
		if x := h.p.Executions[id]; x != nil && len(own(x)) > 0 && !rarely(t, "other", 4) {
			c.ID = id
		}
	}
	if !rarely(t, "again", 10) {
		h.requests++
	}
	c.Rewind = model.Rewind{Request: fmt.Sprintf("00000000-0000-4000-8000-%012x", h.requests), Step: "none",
		By: h.who(t), Reason: "another way", Message: one(t, "message", "", "", "hi", strings.Repeat("x", 65537))}
	if x := h.p.Executions[c.ID]; x != nil {
		c.Rewind.Step = one(t, "step", append(own(x), "none")...)
		c.Rewind.Attempt = max(0, one(t, "attempt", 0, 0, len(x.Attempts), len(x.Attempts)+1))
	}
}

// own lists the handler's steps.
func own(x *model.Execution) []string {
	names := slices.Sorted(maps.Keys(x.Steps))
	return slices.DeleteFunc(names, func(name string) bool { return name[0] == '\x1f' })
}

func (h *hand) renew(t *rapid.T, c *call) {
	c.Session, c.Number = h.session(t), one(t, "ttl", int64(30_000), 5000, 999)
	if s := h.p.Sessions[c.Session]; s != nil {
		c.Number2 = one(t, "processed", 0, s.Confirmed, s.Confirmed+uint64(len(s.Notices)),
			s.Confirmed+uint64(len(s.Notices))+1)
	}
}

// instant draws where the clock goes next: to what is due or a millisecond beside it, a bit, or far.
func (h *hand) instant(t *rapid.T) int64 {
	all := h.p.Due()
	way := upto(t, "jump", 10)
	if len(all) > 0 && way < 7 {
		return one(t, "due", all[:min(3, len(all))]...) + one(t, "beside", int64(0), -1, 1)
	}
	if way == 9 && rarely(t, "far", 4) {
		return h.p.Now + 600_000
	}
	return h.p.Now + one(t, "ms", int64(1), 300, 1000, 2001, 3001)
}

// modes makes a batch one of several modes, mostly merged into the version that is stored.
func (h *hand) modes(t *rapid.T, c *call) {
	for range c.Count {
		c.Modes += one(t, "mode", "d", "s", "s", "l")
	}
	if rarely(t, "large document", 10) {
		c.Document = limits.MaxSummary - one(t, "bytes", 1, 2)
	}
	if x := h.p.Executions[c.ID]; x != nil && len(x.Attempts) > 0 {
		a := x.Attempts[len(x.Attempts)-1]
		c.Base = one(t, "base", a.Version, a.Version, a.Version+1, max(a.Version, 1)-1)
		c.Number2 = one(t, "next", a.Sequence+1, a.Sequence+1, max(a.Sequence, 1))
	}
}
