package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/narrow"
)

// BulkAction is the action that [Admin.Bulk] applies to each execution: exactly one of its fields is set. Each field
// says which executions are looked at when the filter names no states.
type BulkAction struct {
	Replay   *Replay        // [Admin.Replay] of what failed or expired; without Force a success is skipped
	Cancel   bool           // [client.Execution.Cancel] of all that has not ended
	Purge    *time.Duration // [Admin.Purge] of all that ended, with tombstones kept for so long
	RunNow   bool           // [Admin.SetDelay] of 0 of what is delayed
	Priority *int           // [Admin.SetPriority] of all that has not ended and has another one
	Hold     bool           // [Admin.Hold] of what waits
	Unhold   bool           // [Admin.Unhold] of what is held
}

// bulkAction is a [BulkAction] at work.
type bulkAction struct {
	name   string
	states []flowfabric.PublicState // when the filter names none
	again  bool                     // what it did may soon match again
	done   func(x Listed) bool      // there is nothing to do; nil = never
	apply  func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error
}

// unended are the states in [Filter].States that are not an end.
var unended = []flowfabric.PublicState{flowfabric.WaitingChildren, Held, flowfabric.Waiting, flowfabric.WaitingGate,
	flowfabric.Delayed, flowfabric.Suspended, flowfabric.Active}

// chosen are the actions that are set.
func (b BulkAction) chosen() (chosen []bulkAction) {
	if how := b.Replay; how != nil {
		chosen = append(chosen, bulkAction{name: "replay",
			states: []flowfabric.PublicState{flowfabric.Failed, flowfabric.Expired}, again: true,
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.Replay(ctx, id, *how, opts...)
			}})
	}
	if b.Cancel {
		chosen = append(chosen, bulkAction{name: "cancel", states: unended,
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.client.Execution(id).Cancel(ctx, opts...)
			}})
	}
	if keep := b.Purge; keep != nil {
		chosen = append(chosen, bulkAction{name: "purge", states: []flowfabric.PublicState{Ended},
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, _ []flowfabric.ActOption) error {
				return a.Purge(ctx, id, *keep)
			}})
	}
	if b.RunNow {
		chosen = append(chosen, bulkAction{name: "run now", states: []flowfabric.PublicState{flowfabric.Delayed},
			again: true,
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.SetDelay(ctx, id, 0, opts...)
			}})
	}
	if priority := b.Priority; priority != nil {
		chosen = append(chosen, bulkAction{name: "set priority", states: unended,
			done: func(x Listed) bool { return x.Priority == *priority },
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.SetPriority(ctx, id, *priority, opts...)
			}})
	}
	if b.Hold {
		chosen = append(chosen, bulkAction{name: "hold",
			states: []flowfabric.PublicState{flowfabric.Waiting, flowfabric.WaitingGate},
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.Hold(ctx, id, opts...)
			}})
	}
	if b.Unhold {
		chosen = append(chosen, bulkAction{name: "unhold", states: []flowfabric.PublicState{Held},
			apply: func(ctx context.Context, a *Admin, id flowfabric.ExecutionID, opts []flowfabric.ActOption) error {
				return a.Unhold(ctx, id, opts...)
			}})
	}
	return chosen
}

// BulkOptions say how [Admin.Bulk] works. The zero value changes everything that matches.
type BulkOptions struct {
	DryRun      bool   `json:"dry_run,omitempty" jsonschema:"only count"`
	Limit       int    `json:"limit,omitempty" jsonschema:"how many at most; 0, the default: all"`
	Cursor      string `json:"cursor,omitempty" jsonschema:"cursor of the previous answer, with the same filter and action"`
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"calls at a time, 1..256; default 32"`
	// called after every page of up to 1,000, by the goroutine that called Bulk
	Progress func(BulkResult) `json:"-"`
}

// BulkResult counts what [Admin.Bulk] did.
type BulkResult struct {
	Matched int     `json:"matched"`
	Done    int     `json:"done"`
	Skipped int     `json:"skipped" jsonschema:"changed meanwhile, so that the action does not apply"`
	Failed  int     `json:"failed"`
	Errors  []error `json:"-"` // the first ten of those that failed
	// Texts are those of Errors.
	Texts  []string `json:"errors,omitempty" jsonschema:"the first ten"`
	Cursor string   `json:"cursor,omitempty" jsonschema:"there is more"`
	DryRun bool     `json:"dry_run,omitempty" jsonschema:"nothing was changed"`
}

const (
	bulkCursorVersion      = "ffk1."
	defaultBulkConcurrency = 32
	maxBulkConcurrency     = 256
	maxBulkErrors          = 10
)

// Bulk does an action to everything that a filter matches, page by page, with the calls for single executions. If the
// filter names no states, the action chooses them. What changed meanwhile, so that the action does not apply any
// more, is skipped. What was created after the first call began is left out; replay and run-now also leave out what
// was claimed or ended after that, so work that fails again at once is run again only once. Damaged entries are left
// out. Memory does not grow with the number of executions.
//
// With an error, also when ctx ends, the result says what was done, and its Cursor resumes it. A page that was not
// finished is then listed again: what is done does not match any more, except that an execution which was replayed or
// run and stopped again may be skipped or left out. Repeating all of it is safe. An error of a single execution is
// counted, and does not stop the others.
//
// Errors: flowfabric.ErrInvalidInput for a filter, option or cursor that is not legal; those of [Admin.ListPage].
func (a *Admin) Bulk(ctx context.Context, f Filter, do BulkAction, o BulkOptions,
	opts ...flowfabric.ActOption) (BulkResult, error) {
	var action bulkAction
	chosen := do.chosen()
	if len(chosen) == 1 {
		action = chosen[0]
	}
	b, err := a.bulk(ctx, f, action, o, opts)
	if err == nil {
		act, _ := a.act(opts)
		err = b.run(act.In(ctx, f.Namespace, action.name, "executions", b.filter.words()))
	}
	if err != nil {
		return b.out, fmt.Errorf("bulk %s: %w", cmp.Or(action.name, "action"), err)
	}
	return b.out, nil
}

// bulk is one call of Bulk.
type bulk struct {
	admin   *Admin
	filter  Filter
	action  bulkAction
	options BulkOptions
	opts    []flowfabric.ActOption
	began   time.Time // of the first call, by the server's clock
	mu      sync.Mutex
	out     BulkResult
}

// bulk checks what is asked for and finds out when it began.
func (a *Admin) bulk(ctx context.Context, f Filter, action bulkAction, o BulkOptions,
	opts []flowfabric.ActOption) (*bulk, error) {
	f.narrow = narrow.Of(ctx)
	b := &bulk{admin: a, filter: f, action: action, options: o, opts: opts,
		out: BulkResult{Cursor: o.Cursor, DryRun: o.DryRun}}
	b.options.Concurrency = cmp.Or(o.Concurrency, defaultBulkConcurrency)
	switch {
	case a.closed():
		return b, client.ErrClosed
	case action.apply == nil:
		return b, fmt.Errorf("%w: the action has no field or several, want one", flowfabric.ErrInvalidInput)
	case o.Limit < 0:
		return b, fmt.Errorf("%w: limit %d, want 0 or more", flowfabric.ErrInvalidInput, o.Limit)
	case b.options.Concurrency < 1 || b.options.Concurrency > maxBulkConcurrency:
		return b, fmt.Errorf("%w: concurrency %d, want 1..%d", flowfabric.ErrInvalidInput, o.Concurrency,
			maxBulkConcurrency)
	}
	if _, err := a.act(opts); err != nil {
		return b, err
	}
	if len(f.States) == 0 {
		b.filter.States = action.states
		if f.HeldBy != "" {
			b.filter.States = nil
		}
	}
	if o.Cursor != "" {
		return b, b.resume(o.Cursor)
	}
	info, err := a.store.DescribePartition(ctx, 0)
	b.began = info.Now
	return b, err
}

// resume reads a cursor: when it began, and the place of the listing.
func (b *bulk) resume(cursor string) error {
	text, ours := strings.CutPrefix(cursor, bulkCursorVersion+b.action.name+".")
	began, place, parted := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(began, 10, 64)
	if !ours || !parted || err != nil {
		return fmt.Errorf("%w: cursor %.40q is not one that Bulk returned for this action", flowfabric.ErrInvalidInput,
			cursor)
	}
	b.began, b.options.Cursor = time.UnixMilli(ms), place
	return nil
}

func (b *bulk) cursor(place string) string {
	return bulkCursorVersion + b.action.name + "." + strconv.FormatInt(b.began.UnixMilli(), 10) + "." + place
}

// run does page after page.
func (b *bulk) run(ctx context.Context) error {
	for place := b.options.Cursor; ; {
		b.out.Cursor = b.cursor(place)
		size := limits.MaxListPage
		if b.options.Limit > 0 {
			size = min(size, b.options.Limit-b.out.Matched)
		}
		found, err := b.admin.listPage(ctx, b.filter, place, size)
		if err != nil {
			return err
		}
		if err := b.page(ctx, found.Items); err != nil {
			return err
		}
		place, b.out.Cursor = found.Cursor, ""
		if place != "" {
			b.out.Cursor = b.cursor(place)
		}
		if b.options.Progress != nil {
			b.options.Progress(b.out)
		}
		if place == "" || b.options.Limit > 0 && b.out.Matched >= b.options.Limit {
			return nil
		}
	}
}

// page does the action to one page.
func (b *bulk) page(ctx context.Context, items []Listed) error {
	p := pool.New().WithMaxGoroutines(b.options.Concurrency)
	for _, x := range items {
		if x.Drift != "" || b.fresh(x) || b.action.done != nil && b.action.done(x) {
			continue
		}
		if ctx.Err() != nil {
			break
		}
		b.mu.Lock()
		b.out.Matched++
		b.mu.Unlock()
		if !b.options.DryRun {
			p.Go(func() { b.count(ctx, b.action.apply(ctx, b.admin, x.ID, b.opts)) })
		}
	}
	p.Wait()
	return context.Cause(ctx)
}

// fresh tells whether something became what it is only after the bulk action began.
func (b *bulk) fresh(x Listed) bool {
	return x.CreatedAt.After(b.began) || b.action.again && (x.ClaimedAt.After(b.began) || x.EndedAt.After(b.began))
}

// count notes how one execution went. What ctx cut off is in no count: the page is done again.
func (b *bulk) count(ctx context.Context, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err == nil:
		b.out.Done++
	case ctx.Err() != nil:
		b.out.Matched--
	case moved(err):
		b.out.Skipped++
	default:
		b.out.Failed++
		if len(b.out.Errors) < maxBulkErrors {
			b.out.Errors, b.out.Texts = append(b.out.Errors, err), append(b.out.Texts, err.Error())
		}
	}
}

// moved tells whether an error says that an execution is in a state to which the action does not apply.
func moved(err error) bool {
	for _, state := range []error{denied.Terminal, denied.NotTerminal, denied.NotEligible, denied.NoExecution,
		denied.ReplayNotAllowed, flowfabric.ErrResultPurged, denied.NotActive} {
		if errors.Is(err, state) {
			return true
		}
	}
	return false
}
