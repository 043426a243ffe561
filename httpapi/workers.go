package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gateway"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Bounds of workers that speak HTTP.
const (
	defaultLease  = 30 * time.Second
	leastLease    = 2 * time.Second
	mostLease     = 10 * time.Minute
	mostClaimWait = 30 * time.Second
	maxServes     = 256              // names of one list of a worker
	maxLeases     = 1000             // of one renewal
	maxWorkerName = 24               // the session adds twelve characters
	sessionSpare  = 60 * time.Second // that a session lasts longer than a lease: a claim may wait half of it
)

// workerBody is what a worker says of itself.
type workerBody struct {
	Name                  string `json:"name,omitempty" jsonschema:"for people, 1..24 of A-Z a-z 0-9 . _ -; default http"`
	flowfabric.WorkerInfo `for:"open" required:"kinds"`
}

type workerOpened struct {
	Session string `json:"session" jsonschema:"name it in every call. It ends a minute after the last call plus a lease, or with close"`
	LeaseMs int64  `json:"lease_ms"`
}

type claimBody struct {
	Max    int    `json:"max,omitempty" jsonschema:"1..100, default 1"`
	WaitMs *int64 `json:"wait_ms,omitempty" jsonschema:"how long to wait until there is some: 0..30000, default 20000"`
}

type claimAnswer struct {
	Executions []claimed `json:"executions" jsonschema:"none when the time was over"`
}

// claimed is everything that a handler needs.
type claimed struct {
	flowfabric.Route
	Lease        string                             `json:"lease" jsonschema:"proves in every write that the execution is this worker's; opaque"`
	LeaseMs      int64                              `json:"lease_ms" jsonschema:"renew before that is over"`
	ID           string                             `json:"id"`
	Attempt      uint32                             `json:"attempt" jsonschema:"1 for the first"`
	AttemptType  string                             `json:"attempt_type" jsonschema:"initial, retry, reclaim, replay, continue, or resumed when the attempt goes on"`
	Continues    int                                `json:"continues,omitempty" jsonschema:"how often it went on with another input (see :continue)"`
	Priority     int                                `json:"priority"`
	CreatedAt    time.Time                          `json:"created_at,omitzero"`
	Retries      int                                `json:"retries"`
	Reclaims     int                                `json:"reclaims"`
	TimeLeftMs   int64                              `json:"time_left_ms,omitempty" jsonschema:"of the attempt's timeout; 0: none"`
	DeadlineInMs int64                              `json:"deadline_in_ms,omitempty" jsonschema:"0: none"`
	LastSequence uint64                             `json:"last_sequence" jsonschema:"of the frames that this attempt has; the next one is one more"`
	Input        flowfabric.Payload                 `json:"input"`
	InputLost    bool                               `json:"input_lost,omitempty" jsonschema:"somebody deleted it from the store; fail the execution"`
	Tags         map[string]string                  `json:"tags,omitempty"`
	Steps        map[string]flowfabric.Payload      `json:"steps,omitempty" jsonschema:"recorded by earlier runs, by name: do not run these again"`
	Waits        map[string]suspend.Result          `json:"waits,omitempty" jsonschema:"what ended the waits of earlier runs, by name"`
	Receipts     map[string]map[string]receipt      `json:"receipts,omitempty" jsonschema:"what earlier runs received, by mailbox and number"`
	Children     map[string]map[string]childOutcome `json:"children,omitempty" jsonschema:"how the children of earlier waits ended, by the names of the wait and of the child"`
	Flow         string                             `json:"flow,omitempty"`
	Node         string                             `json:"node,omitempty"`
	Inputs       map[string]flowfabric.Payload      `json:"inputs,omitempty" jsonschema:"results of upstream nodes, by the name of the input"`
}

type leasesBody struct {
	Leases []string `json:"leases" jsonschema:"of everything that it still works on, at most 1000"`
}

// closeBody ends a session.
type closeBody struct {
	Leases []string `json:"leases,omitempty" jsonschema:"of everything that it still works on, at most 1000; default none"`
}

type leasesAnswer struct {
	Leases []leaseAnswer `json:"leases" jsonschema:"in the order of the request"`
}

type leaseAnswer struct {
	Lease string `json:"lease"`
	Held  bool   `json:"held"`
	Code  string `json:"code,omitempty" jsonschema:"why it is not: stop working on it"`
}

// workers are the sessions that this process has seen lately. What it does not know is in the store.
type workers struct {
	mu    sync.Mutex
	known map[string]*workerSession
}

type workerSession struct {
	id       string
	info     flowfabric.WorkerInfo
	offer    offer.Offer
	lease    time.Duration
	token    string
	renewed  time.Time
	renewing sync.Mutex
	until    time.Time // it lives, as far as this process knows; guarded by workers.mu
}

const (
	maxKnown    = 10_000 // sessions that a process remembers; others are read again
	maxSessions = 1000   // of one token that live, of those that a process remembers
)

func newSession(id, token string, info flowfabric.WorkerInfo) *workerSession {
	return &workerSession{id: id, info: info, token: token, lease: time.Duration(info.Lease),
		offer: offer.New(info.Namespaces, info.Lanes, info.Kinds, info.Capabilities).Weighing(info.LaneWeights)}
}

// tokenOf is what a session of a principal is registered under: another one cannot use it.
func tokenOf(who Principal) string {
	sum := sha256.Sum256([]byte(who.Name))
	return "api-" + hex.EncodeToString(sum[:16])
}

func (w *workers) remember(s *workerSession) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.known) >= maxKnown {
		maps.DeleteFunc(w.known, func(_ string, s *workerSession) bool { return time.Now().After(s.until) })
	}
	if len(w.known) >= maxKnown {
		clear(w.known)
	}
	s.until = time.Now().Add(s.lease + sessionSpare)
	w.known[s.id] = s
}

// room tells whether a token may have another session.
func (w *workers) room(token string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, s := range w.known {
		if s.token == token && time.Now().Before(s.until) {
			n++
		}
	}
	return n < maxSessions
}

func (w *workers) find(id string) *workerSession {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.known[id]
}

func (w *workers) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.known, id)
}

// checkNames checks a list of names of a worker.
func checkNames(field string, list []string, least int) error {
	if len(list) < least || len(list) > maxServes {
		return invalid("/"+field, "it has %d names, want %d..%d", len(list), least, maxServes)
	}
	for i, name := range list {
		if name == offer.AllNamespaces && field == "namespaces" {
			continue
		}
		if err := valid.Name(field, name); err != nil {
			return invalid(fmt.Sprintf("/%s/%d", field, i), "%.80q is no name: 1..64 bytes", name)
		}
	}
	return nil
}

// info checks what a worker says, and fills in what it does not.
func (b *workerBody) info(c *call) (flowfabric.WorkerInfo, error) {
	none := flowfabric.WorkerInfo{}
	b.Name = cmp.Or(b.Name, "http")
	if len(b.Name) > maxWorkerName ||
		strings.Trim(b.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return none, invalid("/name", "it is %.64q, want 1..%d of A-Z a-z 0-9 . _ -", b.Name, maxWorkerName)
	}
	if len(b.Lanes) == 0 {
		b.Lanes = []string{"default"}
	}
	if len(b.Namespaces) == 0 {
		if b.Namespaces = c.who.Namespaces; len(b.Namespaces) == 0 {
			b.Namespaces = []string{c.h.conn.Namespace}
		}
	}
	for _, err := range []error{checkNames("kinds", b.Kinds, 1), checkNames("lanes", b.Lanes, 1),
		checkNames("namespaces", b.Namespaces, 1), checkNames("capabilities", b.Capabilities, 0)} {
		if err != nil {
			return none, err
		}
	}
	for _, name := range b.Namespaces {
		if !c.who.may(name) {
			return none, &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/namespaces",
				Detail: c.who.Name + " may do nothing in namespace " + strconv.Quote(name)}
		}
	}
	for _, lane := range slices.Sorted(maps.Keys(b.LaneWeights)) {
		switch n := b.LaneWeights[lane]; {
		case !slices.Contains(b.Lanes, lane):
			return none, invalid("/lane_weights", "it names lane %.64q, which is not among lanes", lane)
		case n < 1 || n > limits.MaxLaneWeight:
			return none, invalid("/lane_weights", "lane %.64q has %d, want 1..%d", lane, n, limits.MaxLaneWeight)
		}
	}
	var err error
	if b.Capabilities, err = valid.Capabilities(b.Capabilities); err != nil {
		return none, invalid("/capabilities", "%v", err)
	}
	b.Lease = cmp.Or(b.Lease, flowfabric.Millis(defaultLease))
	if lease := time.Duration(b.Lease); lease < leastLease || lease > mostLease {
		return none, invalid("/lease_ms", "it is %d, want %d..%d", lease.Milliseconds(), leastLease.Milliseconds(),
			mostLease.Milliseconds())
	}
	if b.Concurrency < 0 || b.Concurrency > 10_000 {
		return none, invalid("/concurrency", "it is %d, want 1..10000", b.Concurrency)
	}
	if len(b.Version) > 256 {
		return none, invalid("/version", "it has %d bytes, want at most 256", len(b.Version))
	}
	if len(b.Labels) > 32 {
		return none, invalid("/labels", "there are %d, want at most 32", len(b.Labels))
	}
	b.Pool, b.Host, b.Concurrency, b.StartedAt = b.Name, "api", max(1, b.Concurrency), time.Now()
	return b.WorkerInfo, nil
}

func (c *call) openWorker() error {
	var b workerBody
	if err := c.body(&b); err != nil {
		return err
	}
	info, err := b.info(c)
	if err != nil {
		return err
	}
	if !c.h.workers.room(tokenOf(c.who)) {
		return &problem{Status: http.StatusTooManyRequests, Code: "too_many_sessions",
			Detail: fmt.Sprintf("the token has %d sessions that live: close some, or open one for many executions",
				maxSessions)}
	}
	s := newSession(b.Name+"-"+strings.ReplaceAll(uuid.NewString(), "-", "")[20:], tokenOf(c.who), info)
	if _, err := c.h.conn.Engine.RegisterWorker(c.ctx(), s.registration(0)); err != nil {
		return err
	}
	s.renewed = time.Now()
	c.h.workers.remember(s)
	return c.answerJSON(http.StatusCreated, workerOpened{s.id, s.lease.Milliseconds()})
}

func (s *workerSession) registration(inFlight int) engine.Registration {
	return engine.Registration{Instance: s.id, Token: s.token, TTL: s.lease + sessionSpare, InFlight: inFlight,
		Info: s.info}
}

// session is the one that the path names, if it lives and is the principal's. It says in the store that it still
// lives, now and then, and always with how many executions the worker has: -1 is not told.
func (c *call) session(inFlight int) (*workerSession, error) {
	id, token := c.r.PathValue("session"), tokenOf(c.who)
	gone := &problem{Status: http.StatusNotFound, Code: "session_not_found",
		Detail: "there is no such session of yours: it was closed, or has ended without calls; open another"}
	if len(id) > gateway.MaxWorker ||
		strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return nil, gone
	}
	s := c.h.workers.find(id)
	if s == nil {
		info, owner, found, err := c.h.conn.Engine.ReadWorker(c.ctx(), id)
		switch {
		case err != nil:
			return nil, err
		case !found || owner != token || info.Lease == 0:
			return nil, gone
		}
		s = newSession(id, token, info)
	}
	if s.token != token {
		return nil, gone
	}
	for _, name := range s.info.Namespaces {
		// the token may have lost some since
		if !c.who.may(name) {
			return nil, &problem{Status: http.StatusForbidden, Code: "forbidden",
				Detail: c.who.Name + " may do nothing in namespace " + strconv.Quote(name)}
		}
	}
	s.renewing.Lock()
	defer s.renewing.Unlock()
	if inFlight < 0 && time.Since(s.renewed) < s.lease/3 {
		return s, nil
	}
	r, err := c.h.conn.Engine.RegisterWorker(c.ctx(), s.registration(max(0, inFlight)))
	switch {
	case errors.Is(err, denied.InstanceInUse):
		return nil, gone
	case err != nil:
		return nil, err
	case !r.Renewed: // it had ended
		c.h.workers.forget(id)
		_, _ = c.h.conn.Engine.LeaveWorker(c.ctx(), id, token)
		return nil, gone
	}
	s.renewed = time.Now()
	c.h.workers.remember(s)
	return s, nil
}

func (c *call) claimWork() error {
	var b claimBody
	if err := c.body(&b); err != nil {
		return err
	}
	wait := 20 * time.Second
	if b.WaitMs != nil {
		wait = ms(*b.WaitMs)
	}
	if b.Max == 0 {
		b.Max = 1
	}
	if b.Max < 1 || b.Max > gateway.MaxClaim {
		return invalid("/max", "it is %d, want 1..%d", b.Max, gateway.MaxClaim)
	}
	if wait < 0 || wait > mostClaimWait {
		return invalid("/wait_ms", "it is %d, want 0..%d", wait.Milliseconds(), mostClaimWait.Milliseconds())
	}
	s, err := c.session(-1)
	if err != nil {
		return err
	}
	claims, err := c.h.gateway.Claim(c.ctx(), gateway.Request{Worker: s.id, Offer: s.offer, Max: b.Max, Wait: wait,
		TTL: s.lease})
	if err != nil && len(claims) == 0 {
		return err
	}
	out := claimAnswer{Executions: make([]claimed, 0, len(claims))}
	for i := range claims {
		x, err := c.claimed(s, &claims[i])
		if err != nil {
			c.h.gateway.Return(claims)
			return err
		}
		out.Executions = append(out.Executions, x)
	}
	text, err := json.Marshal(out)
	if err != nil {
		c.h.gateway.Return(claims)
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	_, err = c.w.Write(append(text, '\n'))
	if err == nil {
		err = http.NewResponseController(c.w).Flush()
	}
	if err != nil && !errors.Is(err, http.ErrNotSupported) || c.ctx().Err() != nil { // nobody took the answer
		c.h.gateway.Return(claims)
	}
	return nil
}

// claimed is a claim as the worker sees it.
func (c *call) claimed(s *workerSession, x *gateway.Claim) (claimed, error) {
	out := claimed{Lease: leaseText(x.Fence), LeaseMs: s.lease.Milliseconds(), ID: x.Fence.Execution.String(),
		Route: x.Route, Attempt: x.Fence.Attempt,
		AttemptType: string(x.Type), Continues: x.Continues, Priority: x.Priority, CreatedAt: x.CreatedAt,
		Retries: x.Retries, Reclaims: x.Reclaims, TimeLeftMs: x.TimeLeft.Milliseconds(),
		DeadlineInMs: x.DeadlineIn.Milliseconds(),
		LastSequence: x.LastSequence,
		Input:        x.Input, InputLost: x.InputLost, Tags: x.Tags, Node: x.Node}
	if !x.Flow.IsZero() {
		out.Flow = x.Flow.String()
	}
	for name, value := range x.Inputs {
		if out.Inputs == nil {
			out.Inputs = map[string]flowfabric.Payload{}
		}
		out.Inputs[name] = value
	}
	for _, name := range slices.Sorted(maps.Keys(x.Steps)) {
		if err := out.recorded(c, x.Fence.Execution, name, x.Steps[name]); err != nil {
			return out, err
		}
	}
	if x.Resume != nil && x.Resume.Name != "" && !engine.IsReceipt(x.Resume.Name) { // receive tells of those
		out.wait(x.Resume.Name, *x.Resume)
	}
	return out, nil
}

func (out *claimed) wait(name string, answer suspend.Result) {
	if out.Waits == nil {
		out.Waits = map[string]suspend.Result{}
	}
	out.Waits[name] = answer
}

// recorded sorts a recorded step: the handler's own, or what the library keeps as one.
func (out *claimed) recorded(c *call, id flowfabric.ExecutionID, name string, value []byte) error {
	if name, ok := strings.CutPrefix(name, engine.StepReceipt); ok {
		return out.received(name, value)
	}
	if wait, ok := strings.CutPrefix(name, engine.StepAwait); ok {
		if engine.IsReceipt(wait) {
			return nil
		}
		r, err := engine.DecodeResume(value)
		if err == nil {
			out.wait(wait, r)
		}
		return err
	}
	if wait, ok := strings.CutPrefix(name, engine.StepChildren); ok {
		outcomes, err := engine.DecodeChildren(id.Partition(), value)
		if err != nil {
			return err
		}
		if out.Children == nil {
			out.Children = map[string]map[string]childOutcome{}
		}
		out.Children[wait], err = c.outcomes(outcomes)
		return err
	}
	if strings.HasPrefix(name, "\x1f") { // the library's own
		return nil
	}
	if out.Steps == nil {
		out.Steps = map[string]flowfabric.Payload{}
	}
	out.Steps[name] = value
	return nil
}

// leaseText is a fence as workers carry it.
func leaseText(f flowfabric.Fence) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s,%s,%d,%d,%d", f.Execution, f.Session, f.Claim,
		f.Epoch, f.Attempt))
}

func parseLease(text string) (f flowfabric.Fence, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	parts := strings.Split(string(raw), ",")
	if err != nil || len(parts) != 5 || len(parts[1]) > 64 {
		return f, false
	}
	var e [4]error
	f.Execution, e[0] = flowfabric.ParseExecutionID(parts[0])
	f.Session = parts[1]
	f.Claim, e[1] = strconv.ParseUint(parts[2], 10, 53)
	f.Epoch, e[2] = strconv.ParseUint(parts[3], 10, 53)
	attempt, err := strconv.ParseUint(parts[4], 10, 32)
	f.Attempt, e[3] = uint32(attempt), err
	return f, errors.Join(e[:]...) == nil && leaseText(f) == text // others decode to the same bytes
}

func noLease(field string) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "fence_required", Field: field,
		Detail: "the lease is missing: it came with the execution"}
}

// fence reads a lease of a body: one that this session was given.
func (s *workerSession) fence(field, lease string) (flowfabric.Fence, error) {
	f, ok := parseLease(lease)
	switch {
	case lease == "":
		return f, noLease(field)
	case !ok:
		return f, invalid(field, "it is no lease: it came with the execution, and is passed on as it is")
	case ids.Worker(f.Session) != s.id:
		return f, &problem{Status: http.StatusConflict, Code: flowfabric.CodeOf(denied.StaleLease), Field: field,
			Detail: "the lease is another session's"}
	}
	return f, nil
}

func (c *call) renewWork(b *leasesBody) (none leasesAnswer, err error) {
	s, fences, err := c.fences(b.Leases, len(b.Leases))
	if err != nil {
		return none, err
	}
	out := leasesAnswer{Leases: make([]leaseAnswer, len(fences))}
	renewing := pool.New().WithErrors().WithMaxGoroutines(16)
	for i, f := range fences {
		renewing.Go(func() error {
			err := c.h.gateway.Renew(c.ctx(), f, s.lease)
			out.Leases[i] = leaseAnswer{Lease: b.Leases[i], Held: err == nil, Code: flowfabric.CodeOf(err)}
			if flowfabric.ClassOf(err) == flowfabric.ClassStop || errors.Is(err, flowfabric.ErrOverBudget) ||
				err == nil {
				return nil
			}
			return err // it says nothing about the lease: the worker asks again
		})
	}
	return out, renewing.Wait()
}

// fences reads the leases of a body: those that this session was given.
func (c *call) fences(leases []string, inFlight int) (*workerSession, []flowfabric.Fence, error) {
	if len(leases) > maxLeases {
		return nil, nil, invalid("/leases", "there are %d, want at most %d", len(leases), maxLeases)
	}
	s, err := c.session(inFlight)
	if err != nil {
		return nil, nil, err
	}
	fences := make([]flowfabric.Fence, len(leases))
	for i, lease := range leases {
		if fences[i], err = s.fence(fmt.Sprintf("/leases/%d", i), lease); err != nil {
			return nil, nil, err
		}
	}
	return s, fences, nil
}

func (c *call) closeWorker(b *closeBody) error {
	s, fences, err := c.fences(b.Leases, -1)
	if err != nil {
		return err
	}
	for _, f := range fences {
		if _, err := c.h.conn.Engine.ReleaseExecution(c.ctx(), f); err != nil &&
			flowfabric.ClassOf(err) != flowfabric.ClassStop {
			return err
		}
	}
	if _, err := c.h.conn.Engine.LeaveWorker(c.ctx(), s.id, s.token); err != nil {
		return err
	}
	c.h.workers.forget(s.id)
	return nil
}
