package httpapi

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/gateway"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Bounds of workers that speak HTTP.
const (
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
	// Schemas are of some of the kinds.
	Schemas map[string]apiv1.KindSchemas `json:"schemas,omitempty" jsonschema:"of its kinds: what inputs must fit. The last worker to say something counts; an empty object takes it back. Default: nothing is said"`
}

type workerOpened struct {
	Session string `json:"session" jsonschema:"name it in every call. It ends a minute after the last call plus a lease, or with close"`
	LeaseMs int64  `json:"lease_ms"`
}

// closeBody ends a session.
type closeBody struct {
	Leases []string `json:"leases,omitempty" jsonschema:"of everything that it still works on, at most 1000; default none"`
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

// info checks what a worker says, and fills in what it does not.
func (b *workerBody) info(c *call) (flowfabric.WorkerInfo, error) {
	none := flowfabric.WorkerInfo{}
	b.Name = cmp.Or(b.Name, "http")
	if len(b.Name) > maxWorkerName ||
		strings.Trim(b.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") != "" {
		return none, invalid("/name", "it is %.64q, want 1..%d of A-Z a-z 0-9 . _ -", b.Name, maxWorkerName)
	}
	if len(b.Lanes) == 0 {
		b.Lanes = []string{limits.DefaultLane}
	}
	if len(b.Namespaces) == 0 {
		if b.Namespaces = c.who.Namespaces; len(b.Namespaces) == 0 {
			b.Namespaces = []string{c.h.conn.Namespace}
		}
	}
	for field, list := range map[string][]string{"kinds": b.Kinds, "lanes": b.Lanes} {
		if len(list) < 1 || len(list) > maxServes {
			return none, invalid("/"+field, "it has %d names, want 1..%d", len(list), maxServes)
		}
	}
	b.Concurrency = cmp.Or(b.Concurrency, 1)
	if err := valid.Worker(&b.WorkerInfo); err != nil {
		return none, misdeclared(err)
	}
	b.Capabilities = valid.Offered(b.Capabilities, b.Version)
	for _, name := range b.Namespaces {
		if !c.who.may(name) {
			return none, &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "/namespaces",
				Detail: c.who.Name + " may do nothing in namespace " + strconv.Quote(name)}
		}
	}
	b.Lease = cmp.Or(b.Lease, flowfabric.Millis(limits.DefaultLeaseTTL))
	if lease := time.Duration(b.Lease); lease < leastLease || lease > mostLease {
		return none, invalid("/lease_ms", "it is %d, want %d..%d", lease.Milliseconds(), leastLease.Milliseconds(),
			mostLease.Milliseconds())
	}
	b.Pool, b.Host, b.StartedAt = b.Name, "api", time.Now()
	return b.WorkerInfo, nil
}

// schemas checks those of kinds.
func (b *workerBody) schemas() (map[string]apiv1.KindSchemas, error) {
	out := make(map[string]apiv1.KindSchemas, len(b.Schemas))
	for kind, schemas := range b.Schemas {
		at := "/schemas/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(kind)
		if !slices.Contains(b.Kinds, kind) {
			return nil, invalid(at, "it is none of the kinds")
		}
		checked, err := kindschema.Compact(schemas)
		if wrong, ok := errors.AsType[*kindschema.FieldError](err); ok {
			return nil, invalid(at+"/"+wrong.Field, "%s", wrong.Wrong)
		}
		out[kind] = checked
	}
	return out, nil
}

// misdeclared names the member of the body that [valid.Worker] refuses.
func misdeclared(err error) error {
	wrong, ok := errors.AsType[*valid.WorkerError](err)
	if !ok {
		return err
	}
	f, _ := of[flowfabric.WorkerInfo]().FieldByName(wrong.Field)
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	if wrong.Item != "" && f.Type.Kind() == reflect.Slice {
		return invalid("/"+name+"/"+wrong.Item, "it %s", wrong.Detail)
	}
	return invalid("/"+name, "%s %s", cmp.Or(wrong.Item, "it"), wrong.Detail)
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
	schemas, err := b.schemas()
	if err != nil {
		return err
	}
	if len(schemas) > 0 {
		for _, namespace := range info.Namespaces {
			// a full server must not keep workers out, who end work
			err := c.h.conn.Engine.PutSchemas(c.ctx(), namespace, schemas)
			if err != nil && !errors.Is(err, flowfabric.ErrOutOfMemory) {
				return err
			}
		}
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

func (c *call) closeWorker(b *closeBody) error {
	s, fences, err := c.fences(b.Leases, -1)
	if err != nil {
		return err
	}
	for _, f := range fences {
		if _, err := c.h.conn.Engine.ReleaseExecution(c.ctx(), f); err != nil &&
			denied.ClassOf(err) != fault.Stop {
			return err
		}
	}
	if _, err := c.h.conn.Engine.LeaveWorker(c.ctx(), s.id, s.token); err != nil {
		return err
	}
	c.h.workers.forget(s.id)
	return nil
}
