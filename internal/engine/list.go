package engine

import (
	"context"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Index is where a partition keeps an execution; each is in one. What ended other than completed is in
// IndexUnsuccessful as well.
type Index string

// The indexes. What was revoked (codes.Revoked) is in none of them until the tick has requeued it, at once.
const (
	IndexWaiting   Index = "waiting"   // of a route: in the order in which claims take it
	IndexDelayed   Index = "delayed"   // by when it is due
	IndexSuspended Index = "suspended" // by when it was suspended
	IndexBlocked   Index = "blocked"   // members of flows that wait for others, by when they were created
	IndexHeld      Index = "paused"    // by since when an operator holds them
	// of a session: by claim number; what is granted to it, too, whose public state is waiting
	IndexActive       Index = "active"
	IndexEnded        Index = "ended"        // by when it may be purged
	IndexUnsuccessful Index = "unsuccessful" // what ended other than completed, by when it ended
	// in any state, by when it was created: of the routes that Key asks for, or with the tag and value of Key
	IndexCreated Index = "created"
	IndexTagged  Index = "tagged"
	IndexFlow    Index = "flow" // members of a flow, in any state, in the order in which they came
)

// of tells whether executions in a state live here.
func (h Index) of(s codes.State) bool {
	if h == IndexFlow || h == IndexCreated || h == IndexTagged {
		return true
	}
	if h == IndexEnded {
		return s.Terminal()
	}
	if h == IndexUnsuccessful {
		return s.Terminal() && s.Public != flowfabric.Completed
	}
	if h == IndexBlocked {
		return s.Public == flowfabric.WaitingChildren
	}
	granted := strings.HasPrefix(string(s.Code), "G1")
	switch h {
	case IndexHeld:
		return s.Eligibility == "blocked_by_operator"
	case IndexWaiting:
		return s.Eligibility == "eligible_now" && !granted
	case IndexActive:
		return granted || s.Public == flowfabric.Active
	}
	return string(h) == string(s.Public)
}

// Position is a place in an index: what comes next is behind it, whether or not the entry that stood there is still
// there. The zero value is the beginning.
type Position struct {
	Score  int64
	Member string
}

// ListQuery asks for a page of one index.
type ListQuery struct {
	Index Index
	// Key is the route's id with IndexWaiting, the session's with IndexActive, the flow's with IndexFlow, what
	// CreatedKey or TaggedKey make with those, else empty.
	Key     string
	Newest  bool // from the other end
	After   Position
	Limit   int  // 1..100
	Tags    bool // read the tags, too
	Reasons bool // read the message of the last failure, too
}

// CreatedKey asks for executions of a namespace, lane and kind, of which "" is any.
func CreatedKey(namespace, lane, kind string) string {
	return namespace + "\x1f" + lane + "\x1f" + kind
}

// TaggedKey asks for executions that have a tag with a value.
func TaggedKey(key, value string) string { return key + "=" + value }

// ListPage is the answer. It may have fewer than Limit entries although there are more: tags and messages are bounded
// to about 512 KiB.
type ListPage struct {
	Now        time.Time // the server's
	Size       int       // of the index
	More       bool      // there is something behind the last entry
	Executions []Listed
}

// Listed is one entry of an index.
type Listed struct {
	ID    flowfabric.ExecutionID // zero when Member is no id
	Index Index
	Score int64 // by which the index is ordered
	// Member is the entry as it is stored; together with Score it is the Position of this entry.
	Member string
	// Drift says what is wrong with the entry, for example that there is no execution behind it; then the fields that
	// follow may be empty. "" for a sound one.
	Drift string

	flowfabric.ExecutionSummary            // Session is the last holder, the present one of an active execution
	Code                        codes.Code // which State has in words
	Since                       time.Time  // suspended or held since
	PurgeAt                     time.Time  // in IndexEnded and IndexUnsuccessful only
}

// Position is where the entry stands.
func (l Listed) Position() Position { return Position{l.Score, l.Member} }

// listedFields are the core fields of an entry in the order of the reply.
var listedFields = []string{"state", "route", "priority", "created_at", "first_claimed_at", "ended_at", "attempts",
	"attempt_type", "failure_category", "session", "epoch", "claimed_at", "delay_until", "deadline", "retries",
	"reclaims", "cancelled_by", "cancel_source", "purge", "since"}

// ListExecutions reads a page of one index of a partition (lua/operate/ff_list_executions.lua). Entries that stay
// where they are while pages are read come exactly once; one that changes its place within the index comes once,
// twice or not at all. An active execution whose session is dead is shown as lease expired. A damaged entry is listed
// with its Drift and stops nothing.
func (e *Engine) ListExecutions(ctx context.Context, partition uint16, q ListQuery) (ListPage, error) {
	page := wire.ListExecutions{Index: string(q.Index), Key: q.Key, Newest: q.Newest, Limit: q.Limit, Tags: q.Tags,
		Reasons: q.Reasons}
	if page.Member = q.After.Member; page.Member != "" {
		page.Score = strconv.FormatInt(q.After.Score, 10)
	}
	r, err := e.send(ctx, partition, page)
	if err != nil {
		return ListPage{}, err
	}
	out := ListPage{Now: r.Instant(), Size: r.Int()}
	alive := r.Flag()
	out.More = r.Flag()
	n := r.Count(4 + len(listedFields))
	out.Executions = make([]Listed, 0, n)
	used := make([]string, 0, n)
	for range n {
		x, route := listed(partition, q, alive, r)
		x.Failure.Message = e.text(x.Failure.Message)
		out.Executions, used = append(out.Executions, x), append(used, route)
	}
	rows, closed := r.Pairs(), r.Pairs()
	for i := range out.Executions {
		out.Executions[i].route(used[i], rows)
		out.Executions[i].State = Gated(out.Executions[i].State, closed[used[i]])
	}
	return out, r.fail()
}

// listed reads one entry; what is wrong with it alone becomes its Drift. It returns the id of its route, too.
func listed(partition uint16, q ListQuery, alive bool, r *reader) (Listed, string) {
	x := Listed{Index: q.Index, Member: r.Text(), Score: r.number()}
	own := &reader{}
	f := wire.Fields{M: make(map[string]string, len(listedFields)), R: own}
	for _, name := range listedFields {
		f.M[name] = r.Text()
	}
	x.Failure.Message = r.Text()
	x.Tags = r.Pairs()
	if id, err := ids.ParseUUID(x.Member); err != nil {
		own.Stop("%q is no execution id", clip(x.Member))
	} else {
		x.ID = mint.Join(partition, id)
	}
	code := codes.Code(f.M["state"])
	if why, damaged := strings.CutPrefix(string(code), "!"); damaged {
		own.Stop("%s", clip(why))
	} else if code == "" {
		own.Stop("there is no such execution")
	} else if code == codes.Active && q.Index == IndexActive && !alive {
		code = codes.LeaseExpired
	}
	state, known := codes.Project(code)
	x.State, x.Code = state.State, code
	if !known {
		own.Stop("state %q", clip(string(code)))
	} else if !q.Index.of(state) {
		own.Stop("its state is %s", code)
	}
	x.Priority, x.Attempts, x.AttemptType = int(f.Number("priority")), uint32(f.Number("attempts")),
		flowfabric.AttemptType(f.M["attempt_type"])
	x.CreatedAt, x.StartedAt, x.EndedAt, x.ClaimedAt = f.Instant("created_at"), f.Instant("first_claimed_at"),
		f.Instant("ended_at"), f.Instant("claimed_at")
	x.DelayUntil, x.DeadlineAt = f.Instant("delay_until"), f.Instant("deadline")
	x.Retries, x.Reclaims, x.Epoch = int(f.Number("retries")), int(f.Number("reclaims")), uint64(f.Number("epoch"))
	x.Since = f.Instant("since")
	x.Session, x.Worker = f.M["session"], ids.Worker(f.M["session"])
	x.Failure.Category = flowfabric.Category(f.M["failure_category"])
	x.CancelledBy, x.CancelSource = f.M["cancelled_by"], f.M["cancel_source"]
	if code == codes.Completed || x.Failure.Category == "" {
		x.Failure = flowfabric.Failure{}
	}
	switch q.Index {
	case IndexSuspended, IndexHeld:
		x.Since = time.UnixMilli(x.Score).UTC()
	case IndexEnded:
		x.PurgeAt = time.UnixMilli(x.Score).UTC()
	case IndexUnsuccessful:
		x.PurgeAt = f.Instant("purge")
	}
	if own.Err != nil {
		x.Drift = own.Err.Error()
	}
	return x, f.M["route"]
}

// route gives the entry the row of its route.
func (l *Listed) route(id string, rows map[string]string) {
	own := &reader{}
	f := wire.Fields{M: map[string]string{"route": id}, R: own}
	if n := uint64(f.Number("route")); own.Err == nil && n != 0 {
		l.Route = route(n, rows[id], own)
	}
	if own.Err != nil && l.Drift == "" {
		l.Drift = own.Err.Error()
	}
}

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
