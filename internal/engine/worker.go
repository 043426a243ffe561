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
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
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
// It returns the digest that claims name (lua/worker/ff_set_interest.lua). It expires 10 minutes after the last idle
// claim that used it.
func (e *Engine) SetSubscription(ctx context.Context, partition uint16, s Subscription) (digest string, err error) {
	classes := slices.Compact(slices.Sorted(slices.Values(s.Classes)))
	namespaces := slices.Compact(slices.Sorted(slices.Values(s.Namespaces)))
	args := make([]string, 2, 5+len(namespaces)+len(classes)+2*len(s.Weights))
	args = append(append(args, strconv.Itoa(len(namespaces))), namespaces...)
	args = append(args, strconv.Itoa(len(classes)))
	for _, id := range classes {
		args = append(args, strconv.FormatUint(id, 10))
	}
	if len(s.Weights) > 0 {
		args = append(args, strconv.Itoa(len(s.Weights)))
		for _, lane := range slices.Sorted(maps.Keys(s.Weights)) {
			args = append(args, lane, strconv.Itoa(s.Weights[lane]))
		}
	}
	sum := sha256.Sum256([]byte(strings.Join(args[2:], ",")))
	digest = hex.EncodeToString(sum[:12])
	args[0], args[1] = protocol, digest
	if _, err := e.call(ctx, fnSetSubscription, partition, args...); err != nil {
		return "", err
	}
	return digest, nil
}

// ClaimNext claims up to Max executions with everything their handlers need (lua/worker/ff_claim_next.lua). It
// opens the session when it finds work. Number is used up only when claims come back; after an error that wraps
// ErrTransport the same Number must be repeated before anything else is done with the session. denied.LeaseExpired:
// the session is dead, mint a new one; denied.UnknownSubscription: store the subscription again.
func (e *Engine) ClaimNext(ctx context.Context, q ClaimRequest) (ClaimReply, error) {
	r, err := e.call(ctx, fnClaim, q.Partition, claimArgs([]string{protocol}, q)...)
	if err != nil {
		return ClaimReply{}, err
	}
	return e.claimed(ctx, q.Partition, q, r)
}

func claimArgs(args []string, q ClaimRequest) []string {
	wait := "0"
	if q.Wait {
		wait = "1"
	}
	grants := "0"
	if q.Gates {
		grants = strconv.Itoa(min(cmp.Or(max(q.MaxGrants, 0), 32), 32))
	}
	return append(args, q.Session, strconv.FormatUint(q.Number, 10), strconv.FormatInt(q.TTL.Milliseconds(), 10),
		strconv.Itoa(q.Max), q.Subscription, strconv.FormatUint(q.Table, 10), wait, strconv.FormatUint(q.Rotation, 10),
		grants)
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
		kind, continues, linked := strings.Cut(h.next(), "/")
		c.Type, c.Route, c.Priority = flowfabric.AttemptType(kind), h.unsigned(), int(h.unsigned())
		if linked {
			if c.Continues, h.err = strconv.Atoi(continues); h.err != nil {
				r.Stop("claim %d: %w", i, h.err)
			}
		}
		c.CreatedAt, c.ClaimedAt = time.UnixMilli(int64(h.unsigned())), time.UnixMilli(int64(h.unsigned()))
		c.Retries, c.Reclaims = int(h.unsigned()), int(h.unsigned())
		c.TimeLeft, c.DeadlineIn = h.millis(), h.millis()
		c.LastSequence = h.unsigned()
		input, tags, steps, resume := h.next(), h.next(), h.next(), h.next()
		inputs := ""
		if h.rest != "" { // a member of a flow
			inputs = h.next()
		}
		if h.err != nil || h.rest != "" {
			r.Stop("claim header %d: %w, %q left", i, h.err, clip(h.rest))
		}
		if input == "1" {
			c.Input = r.bytes()
		}
		if tags == "1" {
			c.Tags = r.Pairs()
		}
		if steps == "1" {
			m := r.Count(2)
			c.Steps = make(map[string][]byte, m)
			for range m {
				name := r.Text()
				c.Steps[name] = []byte(r.Text())
			}
		}
		if resume == "1" {
			c.resumed(r)
		}
		if inputs != "" {
			c.member(partition, r, inputs == "1")
		}
		if input == "2" || steps == "2" || resume == "2" || inputs == "2" {
			later = append(later, large{i, input == "2", steps == "2", resume == "2", inputs == "2"})
		}
		if r.Err != nil {
			return nil, r.fail()
		}
	}
	return out, e.blobs(ctx, partition, out, later)
}

// member reads what a member of a flow is told: its flow and node, and what its upstreams left it.
func (c *Claim) member(partition uint16, r *reader, inputs bool) {
	flow, node, _ := strings.Cut(r.Text(), " ")
	id, err := ids.ParseUUID(flow)
	if err != nil {
		r.Stop("flow of a claim: %w", err)
		return
	}
	c.Flow, c.Node = flowfabric.FlowID(flowfabric.MakeExecutionID(partition, id)), node
	if !inputs {
		return
	}
	n := r.Count(2)
	c.Inputs = make(map[string][]byte, n)
	for range n {
		name := r.Text()
		c.Inputs[name] = r.bytes()
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

// large is a claim whose input, steps or resumption did not come with it.
type large struct {
	claim                int
	input, steps, resume bool
	inputs               bool
}

// blobs reads what was too large to come with a claim, in one round trip.
func (e *Engine) blobs(ctx context.Context, partition uint16, claims []Claim, later []large) error {
	if len(later) == 0 {
		return nil
	}
	p := keys.Of(partition)
	var builds []func(rueidis.Client) rueidis.Completed
	for _, m := range later {
		id := claims[m.claim].Fence.Execution.UUID()
		if m.input {
			builds = append(builds, func(c rueidis.Client) rueidis.Completed {
				return c.B().Get().Key(p.Input(id)).Build()
			})
		}
		if m.steps {
			builds = append(builds, func(c rueidis.Client) rueidis.Completed {
				return c.B().Hgetall().Key(p.Steps(id)).Build()
			})
		}
	}
	answers := e.plainAll(ctx, builds)
	for _, m := range later {
		c := &claims[m.claim]
		if m.inputs {
			inputs, err := e.inputs(ctx, c.Fence.Execution)
			if err != nil {
				return err
			}
			c.Inputs = inputs
		}
		if m.resume {
			record, err := e.ReadSuspension(ctx, c.Fence.Execution)
			if err != nil {
				return err
			}
			c.Resume = record.Result
		}
		if m.input {
			b, err := answers[0].AsBytes()
			if c.InputLost = rueidis.IsRedisNil(err); err != nil && !c.InputLost {
				return callError("read input", err)
			}
			c.Input, answers = b, answers[1:]
		}
		if m.steps {
			b, err := answers[0].AsStrMap()
			if err != nil {
				return callError("read steps", err)
			}
			c.Steps, answers = make(map[string][]byte, len(b)), answers[1:]
			for k, v := range b {
				c.Steps[k] = []byte(v)
			}
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

func (h *header) id(partition uint16) flowfabric.ExecutionID {
	id, err := uuid.Parse(h.next())
	if err != nil && h.err == nil {
		h.err = err
	}
	return flowfabric.MakeExecutionID(partition, id)
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

// parseRoute reads an id and its row: namespace, lane, kind, capabilities and gates joined by the unit separator.
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
	r, err := e.run(ctx, client, fnRenew, root,
		[]string{protocol, session, strconv.FormatInt(ttl.Milliseconds(), 10), strconv.FormatUint(processed, 10)})
	if err != nil {
		return Renewal{}, err
	}
	out := Renewal{TickOverdue: r.Flag(), Generation: r.unsigned(), MoreLost: r.Flag()}
	for range r.Count(1) {
		notice := r.Text()
		fields := strings.Fields(notice)
		if len(fields) != 3 {
			r.Stop("notice %q", clip(notice))
			break
		}
		id, err1 := ids.ParseUUID(fields[0])
		epoch, err2 := strconv.ParseUint(fields[1], 10, 64)
		if err1 != nil || err2 != nil {
			r.Stop("notice %q", clip(notice))
			break
		}
		out.Lost = append(out.Lost, Lost{Execution: flowfabric.MakeExecutionID(partition, id), Epoch: epoch,
			Cause: fields[2]})
	}
	return out, r.fail()
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
	r, err := e.call(ctx, fnHeld, partition, protocol, session, strconv.Itoa(offset))
	if err != nil {
		return nil, 0, err
	}
	r.Flag()
	total = r.Int()
	for range r.Count(2) {
		out = append(out, Held{Execution: r.id(partition), Claim: r.unsigned()})
	}
	return out, total, r.fail()
}

// CloseSession ends an empty session; denied.SessionHeld when it holds something (lua/worker/ff_session_close.lua).
func (e *Engine) CloseSession(ctx context.Context, partition uint16, session string) error {
	_, err := e.call(ctx, fnClose, partition, protocol, session)
	return err
}

// Poll reads how many routes are ready and whether a tick is overdue (lua/system/ff_poll.lua): off-cluster for all
// the given partitions in one call, in a cluster for exactly one. workers is how many worker instances are registered
// in these partitions.
func (e *Engine) Poll(ctx context.Context, partitions []uint16) (states []PollState, workers int, err error) {
	roots := make([]string, len(partitions))
	for i, p := range partitions {
		if p >= e.partitions {
			return nil, 0, fmt.Errorf("%s: %w: partition %d of %d", fnPoll.name, flowfabric.ErrInvalidInput, p,
				e.partitions)
		}
		roots[i] = e.roots[p]
	}
	if len(roots) == 0 || e.server.cluster && len(roots) > 1 {
		return nil, 0, fmt.Errorf("%s: %w: %d partitions in one call", fnPoll.name, flowfabric.ErrInvalidInput,
			len(roots))
	}
	r, err := e.callKeys(ctx, fnPoll, roots, protocol)
	if err != nil {
		return nil, 0, err
	}
	states = make([]PollState, len(roots))
	for i, p := range partitions {
		states[i].Partition = p
	}
	workers = r.Int()
	for range r.Count(3) {
		place := r.number()
		if r.Err == nil && (place < 1 || place > int64(len(states))) {
			r.Stop("place %d of %d", place, len(states))
		}
		if ready, overdue := r.number(), r.Flag(); r.Err == nil {
			states[place-1].Ready, states[place-1].TickOverdue = int(ready), overdue
		}
	}
	return states, workers, r.fail()
}
