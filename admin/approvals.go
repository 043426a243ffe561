package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// ApprovalFilter says which waits [Admin.Approvals] lists. The zero value is all in the client's namespace.
type ApprovalFilter struct {
	Namespace  string // default client.Config.Namespace; or AllNamespaces
	Lane, Kind string // "" = any
	Assignee   string // of the question; "" = any, also without a question
	Asked      bool   // only waits with a question, so none for children, messages or signals alone
	// Root is of children, and theirs, of this execution, which no handler made; zero = any, also of no handler.
	Root flowfabric.ExecutionID
}

// Approval is an open wait of a suspended execution, or one of several questions that it asks at once
// (handler.Task.AskAll): then Waitpoints is the one that takes its answers.
type Approval struct {
	ID flowfabric.ExecutionID `json:"execution"`
	flowfabric.Route
	Flow flowfabric.FlowID `json:"flow,omitzero" jsonschema:"if it is a node or a child of one"`
	// Root and Path are of an execution that a handler made, see suspend.Record.
	Root      flowfabric.ExecutionID `json:"root,omitzero" jsonschema:"the execution above it that no handler made"`
	Path      []string               `json:"path,omitempty" jsonschema:"names of the children from the root to it"`
	Name      string                 `json:"name" jsonschema:"under which the handler waits"`
	Reason    string                 `json:"reason,omitempty"`
	Question  *suspend.Question      `json:"question,omitempty"`
	Since     time.Time              `json:"since,omitzero"`
	TimeoutAt time.Time              `json:"timeout_at,omitzero"` // zero: it has no end of its own
	// Waitpoints are those that are open; none if only an operator or the time ends the wait.
	Waitpoints []suspend.Waitpoint `json:"waitpoints" jsonschema:"those that are open; none if only an operator or the time ends the wait"`
}

// maxJudged is how many suspended executions a page with such a filter looks at before it returns with what it has.
const maxJudged = 2000

// Approvals lists the open waits of suspended executions in all partitions, the oldest first, limit of them (1..100;
// 0 is 50), behind the place that cursor names: "", or the Cursor of the page before, with the same filter. What was
// answered meanwhile is left out, so a page may be short, or empty, and have a cursor. Several questions of one
// execution are entries of their own on the same page, which may have up to 15 more of them than limit. With Asked, an
// assignee or a root it looks at 2,000 executions at most. It makes a call to every partition, with a root to its
// partition alone, and one for each execution that it looks at, many at a time.
//
// Errors: those of [Admin.ListPage]; flowfabric.ErrNotFound and ErrResultPurged for a root that is not there.
func (a *Admin) Approvals(ctx context.Context, f ApprovalFilter, cursor string, limit int) (Page[Approval], error) {
	page, err := a.approvals(ctx, f, cursor, cmp.Or(limit, limits.DefaultApprovals))
	if err != nil {
		return Page[Approval]{}, fmt.Errorf("approvals: %w", err)
	}
	return page, nil
}

func (a *Admin) approvals(ctx context.Context, f ApprovalFilter, cursor string,
	limit int) (page Page[Approval], err error) {
	if a.closed() {
		return page, client.ErrClosed
	}
	if limit < 1 || limit > limits.MaxApprovals {
		return page, fmt.Errorf("%w: limit %d, want 1..%d", flowfabric.ErrInvalidInput, limit, limits.MaxApprovals)
	}
	if len(f.Assignee) > limits.MaxAssignee {
		return page, fmt.Errorf("%w: ApprovalFilter.Assignee has %d bytes, want at most %d", flowfabric.ErrInvalidInput,
			len(f.Assignee), limits.MaxAssignee)
	}
	filter, err := Filter{Namespace: f.Namespace, Lane: f.Lane, Kind: f.Kind,
		States: []flowfabric.PublicState{flowfabric.Suspended}}.complete(a.conn.Namespace)
	if err != nil {
		return page, err
	}
	if !f.Root.IsZero() { // all below it are members of its flow
		r, err := a.conn.Engine.ReadSuspension(ctx, f.Root)
		if filter.Flow = r.Flow; err != nil || r.Flow.IsZero() {
			return page, err
		}
	}
	mark := filter.mark(a.store.Partitions()) + "\x1fassignee " + f.Assignee
	if f.Asked {
		mark += "\x1fasked"
	}
	if !f.Root.IsZero() {
		mark += "\x1froot " + f.Root.String()
	}
	at, err := parsePlace(cursor, mark, a.store.Partitions())
	if err != nil {
		return page, err
	}
	chunk := limit
	if f.picks() && f.Root.IsZero() {
		chunk = limits.MaxApprovals
	}
	for judged := 0; ; judged += chunk {
		l := &lister{store: a.store, filter: filter, limit: chunk, at: at}
		more, err := l.run(ctx)
		if err != nil {
			return page, err
		}
		found, err := a.judged(ctx, l.out)
		if err != nil {
			return page, err
		}
		at = l.at
		for i, x := range found {
			x = slices.DeleteFunc(x, func(x Approval) bool { return !f.takes(x) })
			if len(x) == 0 {
				continue
			}
			if page.Items = append(page.Items, x...); len(page.Items) >= limit && i < len(found)-1 {
				at = place{index: slices.Index(indexes[:], engine.IndexSuspended),
					after: engine.Position{Score: l.out[i].Since.UnixMilli(), Member: ids.UUID(l.out[i].ID).String()}}
				more = true
				break
			}
		}
		// a place in the middle of what was found is one of the index of all that is suspended
		enough := len(page.Items) >= limit || len(page.Items) > 0 && !f.Root.IsZero()
		if more && (enough || judged+chunk >= maxJudged || !f.picks()) {
			page.Cursor = at.text(mark)
			return page, nil
		}
		if !more {
			return page, nil
		}
	}
}

// picks tells whether only what an execution waits for says if it is listed.
func (f ApprovalFilter) picks() bool { return f.Asked || f.Assignee != "" || !f.Root.IsZero() }

func (f ApprovalFilter) takes(x Approval) bool {
	return (!f.Asked || x.Question != nil) &&
		(f.Assignee == "" || x.Question != nil && x.Question.Assignee == f.Assignee) &&
		(f.Root.IsZero() || x.Root == f.Root)
}

// judged reads what listed executions wait for, nothing for one that waits no longer.
func (a *Admin) judged(ctx context.Context, list []Listed) ([][]Approval, error) {
	out := make([][]Approval, len(list))
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(approvalCalls).WithContext(ctx).WithCancelOnError()
	for i, x := range list {
		if x.ID.IsZero() {
			continue
		}
		p.Go(func(ctx context.Context) (err error) {
			out[i], err = a.approval(ctx, x)
			return err
		})
	}
	return out, p.Wait()
}

// approvalCalls is how many suspensions are read at a time. The connection puts the calls of many goroutines into few
// packets.
const approvalCalls = 32

// approval is what an execution waits for: one entry, or one for each open question of several.
func (a *Admin) approval(ctx context.Context, x Listed) (all []Approval, err error) {
	r, err := a.conn.Engine.ReadSuspension(ctx, x.ID)
	switch {
	case errors.Is(err, denied.NoExecution) || errors.Is(err, flowfabric.ErrResultPurged) ||
		err == nil && r.State != flowfabric.Suspended:
		return nil, nil // it was answered meanwhile
	case err != nil:
		return nil, inPartition(x.ID.Partition(), err)
	}
	open := Approval{ID: x.ID, Route: x.Route, Flow: r.Flow, Root: r.Root, Path: r.Path, Name: r.Name,
		Reason: r.Reason, Question: r.Question,
		Since: r.CreatedAt, TimeoutAt: r.TimeoutAt, Waitpoints: []suspend.Waitpoint{}}
	for _, w := range r.Waitpoints {
		if w.Open() {
			open.Waitpoints = append(open.Waitpoints, w)
		}
	}
	for _, w := range open.Waitpoints {
		if w.Question != nil {
			one := open
			one.Question, one.TimeoutAt, one.Waitpoints = w.Question, w.ExpiresAt, []suspend.Waitpoint{w}
			all = append(all, one)
		}
	}
	if all == nil {
		all = []Approval{open}
	}
	return all, nil
}
