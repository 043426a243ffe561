package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Subscription is which work the claims of a worker ask for: at most 1,024 classes, which may be none, and 256
// namespaces, of which none means all. Weights are of lanes that share claims by other weights than 1: 1..1000 each,
// at most 256. Order and repeats do not matter.
type Subscription struct {
	Classes    []uint64
	Namespaces []string
	Weights    map[string]int
}

// SetSubscription stores which classes of work a worker can serve, of which namespaces, and the weights of its lanes.
// It returns the digest that claims name (lua/worker/ff_set_subscription.lua). It expires 10 minutes after the last idle
// claim that used it.
func (e *Engine) SetSubscription(ctx context.Context, partition uint16, s Subscription) (digest string, err error) {
	q := wire.SetSubscription{Namespaces: slices.Compact(slices.Sorted(slices.Values(s.Namespaces)))}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(s.Classes))) {
		q.Classes = append(q.Classes, int(id))
	}
	for _, lane := range slices.Sorted(maps.Keys(s.Weights)) {
		q.Lanes = append(q.Lanes, wire.SetSubscriptionLane{Lane: lane, Weight: s.Weights[lane]})
	}
	sum := sha256.Sum256([]byte(strings.Join(q.Append(nil)[1:], ",")))
	q.Digest = hex.EncodeToString(sum[:12])
	_, err = e.settled(ctx, partition, q)
	return q.Digest, err
}

// ClaimNext claims up to Max executions with everything their handlers need (lua/worker/ff_claim_next.lua). It
// opens the session when it finds work. Number is used up only when claims come back; after an error that wraps
// ErrTransport the same Number must be repeated before anything else is done with the session. denied.LeaseExpired:
// the session is dead, mint a new one; denied.UnknownSubscription: store the subscription again.
func (e *Engine) ClaimNext(ctx context.Context, q ClaimRequest) (ClaimReply, error) {
	r, err := e.call(ctx, fnClaim, q.Partition, q.search().Append(append(make([]string, 0, 10), protocol))...)
	if err != nil {
		return ClaimReply{}, err
	}
	return e.claimed(ctx, q.Partition, q, r)
}

func (q ClaimRequest) search() wire.Search {
	s := wire.Search{Session: q.Session, Number: int(q.Number), TTL: q.TTL, Max: q.Max, Subscription: q.Subscription,
		Table: int(q.Table), Wait: bit(q.Wait), Rotation: int(q.Rotation)}
	if q.Gates {
		s.Grants = min(cmp.Or(max(q.MaxGrants, 0), 32), 32)
	}
	return s
}

// claimed decodes a claim reply and reads the blobs that were too large to come with it.
func (e *Engine) claimed(ctx context.Context, partition uint16, q ClaimRequest, r *reader) (ClaimReply, error) {
	out := ClaimReply{Duplicate: r.Flag(), Registered: r.Flag(), More: r.Flag(), TickOverdue: r.Flag(), Gated: r.Flag(),
		TableFull: r.Flag(), Table: r.unsigned(), Routes: parseRoutes(r)}
	var err error
	if out.Claims, err = e.claims(ctx, partition, q.Session, q.Number, r); err != nil {
		return out, err
	}
	if n := r.Count(1); n > 0 {
		out.Grants = make([]Grant, n)
	}
	for i := range out.Grants {
		h := header{rest: r.Text()}
		if out.Grants[i] = (Grant{Execution: h.id(partition), Epoch: h.unsigned(), Route: h.unsigned(),
			Wakes: h.unsigned()}); h.err != nil {
			r.Stop("grant %d: %w", i, h.err)
		}
	}
	out.Others = parseRoutes(r)
	return out, r.fail()
}

// claims decodes a list of claims. number is 0 where each claim has its own, which is not told.
func (e *Engine) claims(ctx context.Context, partition uint16, session string, number uint64,
	r *reader) ([]Claim, error) {
	n := r.Count(1)
	if n == 0 {
		return nil, r.fail()
	}
	out := make([]Claim, n)
	var later []large
	for i := range out {
		c := &out[i]
		h := header{rest: r.Text()}
		c.Fence = flowfabric.Fence{Execution: h.id(partition), Session: session, Claim: number,
			Attempt: uint32(h.unsigned()), Epoch: h.unsigned()}
		kind, counts, counted := strings.Cut(h.next(), "/")
		c.Type, c.Route, c.Priority = flowfabric.AttemptType(kind), h.unsigned(), int(h.unsigned())
		if counted {
			c.counted(counts, r)
		}
		c.CreatedAt = time.UnixMilli(int64(h.unsigned())).UTC()
		c.ClaimedAt = time.UnixMilli(int64(h.unsigned())).UTC()
		c.Retries, c.Reclaims = int(h.unsigned()), int(h.unsigned())
		c.TimeLeft, c.DeadlineIn = h.millis(), h.millis()
		c.LastSequence = h.unsigned()
		l := large{claim: c, input: h.next()}
		tags := h.next()
		l.steps, l.resume = h.next(), h.next()
		if h.rest != "" { // a member of a flow
			l.inputs = h.next()
		}
		if h.err != nil || h.rest != "" {
			r.Stop("claim header %d: %w, %q left", i, h.err, clip(h.rest))
		}
		if l.input == "1" {
			c.Input = e.cfg.Box.Shown(r.bytes())
		}
		if tags == "1" {
			c.Tags = r.Pairs()
		}
		if l.steps == "1" {
			c.Steps = r.values()
			e.opened(c.Steps)
		}
		if l.resume == "1" {
			c.resumed(r)
			OpenResult(e.cfg.Box, c.Resume)
		}
		if l.inputs != "" {
			c.member(partition, r, l.inputs == "1")
			e.opened(c.Inputs)
		}
		if l.input == "2" || l.steps == "2" || l.resume == "2" || l.inputs == "2" {
			later = append(later, l)
		}
		if r.Err != nil {
			return nil, r.fail()
		}
	}
	if later == nil {
		return out, nil
	}
	return out, e.blobs(ctx, partition, later)
}

// counted reads how often an execution has continued and, if it was, how often it was replayed or rewound.
func (c *Claim) counted(text string, r *reader) {
	continues, takes, taken := strings.Cut(text, "/")
	takes, c.Stop, _ = strings.Cut(takes, "/")
	var err, bad error
	c.Continues, err = strconv.Atoi(continues)
	if taken {
		c.Takes, bad = strconv.Atoi(takes)
	}
	if err = errors.Join(err, bad); err != nil {
		r.Stop("counts of a claim: %w", err)
	}
}

// member reads what a member of a flow is told: its flow and node, and what its upstreams left it.
func (c *Claim) member(partition uint16, r *reader, inputs bool) {
	flow, node, _ := strings.Cut(r.Text(), " ")
	id, err := ids.ParseUUID(flow)
	if err != nil {
		r.Stop("flow of a claim: %w", err)
		return
	}
	c.Flow, c.Node = flowfabric.FlowID(mint.Join(partition, id)), node
	if inputs {
		c.Inputs = r.values()
	}
}

// resumed reads what ended the last suspension.
func (c *Claim) resumed(r *reader) {
	blob := r.bytes()
	if r.Err != nil {
		return
	}
	resume, err := DecodeResume(blob)
	if err != nil {
		r.Stop("%w", err)
	}
	c.Resume = &resume
}

// large is a claim with parts that did not come with it: those are "2".
type large struct {
	claim                        *Claim
	input, steps, resume, inputs string
}

// blobs reads what was too large to come with its claim, in one round trip.
func (e *Engine) blobs(ctx context.Context, partition uint16, later []large) error {
	p, builds := keys.Of(partition), []func(rueidis.Client) rueidis.Completed(nil)
	for _, l := range later {
		id := ids.UUID(l.claim.Fence.Execution)
		if l.input == "2" {
			builds = append(builds, func(c rueidis.Client) rueidis.Completed {
				return c.B().Get().Key(p.Input(id)).Build()
			})
		}
		if l.steps == "2" {
			builds = append(builds, func(c rueidis.Client) rueidis.Completed {
				return c.B().Hgetall().Key(p.Steps(id)).Build()
			})
		}
	}
	answers := e.plainAll(ctx, builds)
	for _, l := range later {
		c, err := l.claim, error(nil)
		if l.inputs == "2" {
			if c.Inputs, err = e.inputs(ctx, c.Fence.Execution); err != nil {
				return err
			}
		}
		if l.resume == "2" {
			record, err := e.ReadSuspension(ctx, c.Fence.Execution)
			if err != nil {
				return err
			}
			c.Resume = record.Result
		}
		if l.input == "2" {
			c.Input, err = answers[0].AsBytes()
			if c.InputLost = rueidis.IsRedisNil(err); err != nil && !c.InputLost {
				return CallError("read input", err)
			}
			answers = answers[1:]
			c.Input = e.cfg.Box.Shown(c.Input)
		}
		if l.steps == "2" {
			m, err := answers[0].AsStrMap()
			if err != nil {
				return CallError("read steps", err)
			}
			c.Steps, answers = make(map[string][]byte, len(m)), answers[1:]
			for name, value := range m {
				c.Steps[name] = []byte(value)
			}
			e.opened(c.Steps)
		}
	}
	return nil
}

// header walks the space-separated words of a claim's first slot.
type header struct {
	rest string
	err  error
}

func (h *header) next() string {
	word, rest, _ := strings.Cut(h.rest, " ")
	if word == "" && h.err == nil {
		h.err = errors.New("a word is missing")
	}
	h.rest = rest
	return word
}

func (h *header) unsigned() uint64 {
	n, err := strconv.ParseUint(h.next(), 10, 63)
	if err != nil && h.err == nil {
		h.err = err
	}
	return n
}

func (h *header) millis() time.Duration { return time.Duration(h.unsigned()) * time.Millisecond }

// orNone is unsigned, or 0 for -.
func (h *header) orNone() uint64 {
	rest, none := strings.CutPrefix(h.rest, "- ")
	if none {
		h.rest = rest
		return 0
	}
	return h.unsigned()
}

func (h *header) uuid() [16]byte {
	id, err := uuid.Parse(h.next())
	if err != nil && h.err == nil {
		h.err = err
	}
	return id
}

func (h *header) id(partition uint16) flowfabric.ExecutionID {
	return mint.Join(partition, h.uuid())
}

func parseRoutes(r *reader) []Route {
	n := r.Count(2)
	if n == 0 {
		return nil
	}
	out := make([]Route, n)
	for i := range out {
		id := r.unsigned()
		out[i] = route(id, r.Text(), r)
	}
	return out
}

// ParseRoute reads a row of a route table that was read without the library; it does not tell the route's id.
func ParseRoute(row string) (Route, error) {
	r := &reader{}
	out := route(0, row, r)
	return out, r.Err
}

// route reads an id and its row: namespace, lane, kind, capabilities and gates joined by the unit separator.
func route(id uint64, row string, r *reader) Route {
	parts := strings.Split(row, "\x1f")
	if len(parts) != 5 {
		r.Stop("route %d has %d parts, want 5", id, len(parts))
		return Route{}
	}
	out := Route{ID: id, Namespace: parts[0], Lane: parts[1], Kind: parts[2]}
	if parts[3] != "" {
		out.Capabilities = strings.Split(parts[3], ",")
	}
	if parts[4] != "" {
		for _, g := range strings.Split(parts[4], ",") {
			out.Gates = append(out.Gates, flowfabric.Gate(g))
		}
		out.GateNames = valid.GateNames(out.Gates)
	}
	return out
}

// RenewSession extends a session by ttl (1 s..1 h) from the server's now and exchanges lost notices: those up to
// generation processed are forgotten, the next ≤ 100 returned (lua/worker/ff_session_renew.lua). denied.LeaseExpired:
// the session is dead for good. Renewals have a connection of their own, so that no large reply delays them.
func (e *Engine) RenewSession(ctx context.Context, partition uint16, session string, ttl time.Duration,
	processed uint64) (Renewal, error) {
	root, err := e.root(fnRenew, partition)
	if err != nil {
		return Renewal{}, err
	}
	client, err := e.renewals(ctx)
	if err != nil {
		return Renewal{}, err
	}
	q := wire.SessionRenew{Session: session, TTL: ttl, Processed: int(processed)}
	r, _, err := read[wire.SessionRenewReply](e.run(ctx, client, fnRenew, root, arguments(q)))
	if err != nil {
		return Renewal{}, err
	}
	out := Renewal{TickOverdue: r.Overdue, Generation: uint64(r.Generation), MoreLost: r.More}
	for _, notice := range r.Notices {
		h := header{rest: notice}
		lost := Lost{Execution: h.id(partition), Epoch: h.unsigned(), Cause: h.next()}
		if h.err != nil || h.rest != "" {
			return out, fmt.Errorf("ff_session_renew: %w: notice %q", denied.Reply, clip(notice))
		}
		out.Lost = append(out.Lost, lost)
	}
	return out, nil
}

// SessionHeld lists what a session holds, in order of claim (lua/worker/ff_session_held.lua). More than a page is read
// from the end, because members that leave between two pages move the later ones forward: none that stays is missed.
func (e *Engine) SessionHeld(ctx context.Context, partition uint16, session string) ([]Held, error) {
	out, total, err := e.heldPage(ctx, partition, session, 0)
	if err != nil || total <= heldPage {
		return out, err
	}
	seen := map[Held]bool{}
	out = nil
	for offset := (total - 1) / heldPage * heldPage; offset >= 0; offset -= heldPage {
		page, _, err := e.heldPage(ctx, partition, session, offset)
		if err != nil {
			return nil, err
		}
		page = slices.DeleteFunc(page, func(h Held) bool { return seen[h] })
		for _, h := range page {
			seen[h] = true
		}
		out = append(page, out...)
	}
	return out, nil
}

// heldPage is how many members ff_session_held answers.
const heldPage = 100

func (e *Engine) heldPage(ctx context.Context, partition uint16, session string,
	offset int) (out []Held, total int, err error) {
	r, _, err := ask[wire.SessionHeldReply](ctx, e, partition, wire.SessionHeld{Session: session, Offset: offset})
	for _, x := range r.Executions {
		out = append(out, Held{Execution: mint.Join(partition, x.ID), Claim: uint64(x.Claim)})
	}
	return out, r.Total, err
}

// CloseSession ends an empty session; denied.SessionHeld when it holds something (lua/worker/ff_session_close.lua).
func (e *Engine) CloseSession(ctx context.Context, partition uint16, session string) error {
	_, err := e.settled(ctx, partition, wire.SessionClose{Session: session})
	return err
}

// Poll reads how many routes are ready and whether a tick is overdue (lua/system/ff_poll.lua): off-cluster for all
// the given partitions in one call, in a cluster for exactly one. workers is how many worker instances are registered
// in these partitions.
func (e *Engine) Poll(ctx context.Context, partitions []uint16) (states []PollState, workers int, err error) {
	roots := make([]string, len(partitions))
	for i, p := range partitions {
		if err := e.exists("ff_poll", p); err != nil {
			return nil, 0, err
		}
		roots[i] = e.roots[p]
	}
	if len(roots) == 0 || e.server.cluster && len(roots) > 1 {
		return nil, 0, fmt.Errorf("ff_poll: %w: %d partitions in one call", flowfabric.ErrInvalidInput, len(roots))
	}
	r, _, err := read[wire.PollReply](e.callKeys(ctx, fnPoll, roots, protocol))
	if err != nil {
		return nil, 0, err
	}
	states = make([]PollState, len(roots))
	for i, p := range partitions {
		states[i].Partition = p
	}
	for _, x := range r.Partitions {
		if x.Place < 1 || x.Place > len(states) {
			return nil, 0, fmt.Errorf("ff_poll: %w: place %d of %d", denied.Reply, x.Place, len(states))
		}
		states[x.Place-1].Ready, states[x.Place-1].TickOverdue = x.Ready, x.Overdue
	}
	return states, r.Workers, nil
}
