package admin

import (
	"context"
	"errors"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// Overview is the store at one moment: what partitions, queues and workers tell, in sum.
type Overview struct {
	At            time.Time         `json:"at"` // by the server's clock
	Waiting       int               `json:"waiting"`
	OldestAt      time.Time         `json:"oldest_at,omitzero" jsonschema:"creation of the oldest that waits"`
	Stored        int               `json:"stored" jsonschema:"executions in any state"`
	Delayed       int               `json:"delayed"`
	Suspended     int               `json:"suspended"`
	Held          int               `json:"held"`
	Blocked       int               `json:"waiting_children" jsonschema:"wait for others"`
	Active        int               `json:"active"`
	Ended         int               `json:"ended" jsonschema:"and still stored"`
	Closed        int               `json:"closed" jsonschema:"queues that a gate keeps back, by partition"`
	UsedUp        []UsedUp          `json:"gates_used_up,omitempty" jsonschema:"gates that have no room for the work that waits for them, over HTTP at most ten, those for which most waits in front"`
	Outbox        int               `json:"outbox" jsonschema:"messages that gates have not got yet"`
	Schedules     int               `json:"schedules" jsonschema:"schedules that are not paused"`
	Totals        flowfabric.Totals `json:"totals" jsonschema:"totals of executions since the store was created"`
	CreatedRate   float64           `json:"created_per_s" jsonschema:"over the last ten seconds, like the rates that follow"`
	EndedRate     float64           `json:"ended_per_s"`
	CompletedRate float64           `json:"completed_per_s"`
	FailedRate    float64           `json:"failed_per_s" jsonschema:"failed or expired"`
	Workers       int               `json:"workers" jsonschema:"live workers"`
	Lost          int               `json:"workers_lost" jsonschema:"workers lost within the last hour"`
	Slots         int               `json:"slots" jsonschema:"executions that the workers can run at once"`
	Partitions    int               `json:"partitions" jsonschema:"partitions that answer"`
	Silent        int               `json:"partitions_silent" jsonschema:"partitions that do not answer"`
	Owned         int               `json:"partitions_maintained" jsonschema:"a process runs their timers"`
	Frozen        int               `json:"partitions_frozen"`
	Overdue       int               `json:"partitions_overdue" jsonschema:"no process runs their timers"`
	Lag           flowfabric.Millis `json:"lag_ms" jsonschema:"for how long the earliest thing is due that nobody has done"`
	Queues        []Queue           `json:"-"` // see [Admin.Queues]

	created int
}

// Overview looks at everything. Queues, and so Waiting, OldestAt and Stored, are of a namespace ("" is the client's,
// or [AllNamespaces]), the rest is of the store. What some partitions do not answer is missing in the sums, and the
// error says so beside them; with Partitions 0 none did. It has no rates: see [Overview.Since].
//
// Errors: flowfabric.ErrInvalidInput before any call; a [*PartitionsError]; client.ErrClosed.
func (a *Admin) Overview(ctx context.Context, namespace string) (o Overview, err error) {
	if namespace, err = a.namespace(namespace); err != nil {
		return o, err
	}
	partitions, err := a.Partitions(ctx)
	for _, p := range partitions {
		if p.Err != nil {
			o.Silent++
			continue
		}
		o.Partitions++
		if p.Now.After(o.At) {
			o.At = p.Now
		}
		t := &o.Totals
		for n, more := range map[*int]int{&o.Delayed: p.Delayed.Count, &o.Suspended: p.Suspended.Count,
			&o.Blocked: p.Blocked.Count, &o.Held: p.Held.Count, &o.Ended: p.Ended.Count, &o.Closed: p.Closed.Count,
			&o.Outbox: p.Outbox.Count, &o.Schedules: p.Schedules.Count, &t.Purged: p.Totals.Purged,
			&t.Completed: p.Totals.Completed, &t.Failed: p.Totals.Failed, &t.Cancelled: p.Totals.Cancelled,
			&t.Expired: p.Totals.Expired, &t.Skipped: p.Totals.Skipped} {
			*n += more
		}
		for n, is := range map[*int]bool{&o.Owned: p.Owner != "", &o.Overdue: p.TickOverdue, &o.Frozen: p.Frozen} {
			if is {
				*n++
			}
		}
		o.Lag = max(o.Lag, p.Lag)
	}
	if o.Partitions == 0 {
		return o, err
	}
	errs := []error{err}
	if o.Closed > 0 {
		gated, err := a.Gated(ctx)
		errs, o.UsedUp = append(errs, err), gated.usedUp()
	}
	workers, err := a.Workers(ctx)
	errs = append(errs, err)
	for _, w := range workers {
		o.Active += w.InFlight
		switch {
		case w.Alive:
			o.Workers++
			o.Slots += w.Concurrency
		case !w.Dead:
			o.Lost++
		}
	}
	queues, err := a.Queues(ctx, AllNamespaces)
	o.created = o.Totals.Purged
	for _, q := range queues {
		o.created += q.Stored
	}
	o.Queues = slices.DeleteFunc(queues, func(q Queue) bool { return !within(namespace, q.Namespace) && q.Drift == "" })
	for _, q := range o.Queues {
		o.Waiting += q.Waiting
		o.Stored += q.Stored
		if !q.OldestAt.IsZero() && (o.OldestAt.IsZero() || q.OldestAt.Before(o.OldestAt)) {
			o.OldestAt = q.OldestAt
		}
	}
	return o, errors.Join(append(errs, err)...)
}

// Since tells the rates since an earlier look. They stay as they are when not as many partitions answered both.
func (o *Overview) Since(earlier Overview) {
	took := o.At.Sub(earlier.At).Seconds()
	if earlier.At.IsZero() || took <= 0 || o.Partitions != earlier.Partitions {
		return
	}
	// a store that was emptied starts over
	per := func(now, before int) float64 { return float64(max(0, now-before)) / took }
	x, y := o.Totals, earlier.Totals
	o.CreatedRate, o.CompletedRate = per(o.created, earlier.created), per(x.Completed, y.Completed)
	o.FailedRate = per(x.Failed+x.Expired, y.Failed+y.Expired)
	o.EndedRate = per(x.Completed+x.Failed+x.Cancelled+x.Expired+x.Skipped,
		y.Completed+y.Failed+y.Cancelled+y.Expired+y.Skipped)
}
