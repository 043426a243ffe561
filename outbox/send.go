package outbox

import (
	"context"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

const (
	callsAtOnce = 4
	// maxCall leaves room for framing below the 1 MiB of a call.
	maxCall = 900 << 10
)

// state is what became of a row in a batch.
type state int

const (
	untried state = iota // it is behind a row of its key that failed
	relayed
	failed // row.err says why
)

func (r *row) fail(err error) { r.state, r.err = failed, err }

// submit makes executions of rows. Those of a key are in one partition, whose calls follow each other, and never in one
// call: the store judges the items of a call each by itself.
func (r *relay) submit(ctx context.Context, rows []*row) {
	partitions := map[uint16][]*row{}
	blocked := map[string]bool{}
	for _, x := range rows {
		if blocked[x.orderKey] {
			continue
		}
		err := x.decode(r.cfg.Partitions)
		if err == nil {
			err = r.client.Link().Gates.Require(ctx, x.sub.Item.Gates())
		}
		if err != nil {
			x.fail(err)
			blocked[x.orderKey] = x.orderKey != ""
			continue
		}
		p := x.sub.Item.ID.Partition()
		partitions[p] = append(partitions[p], x)
	}
	calls := pool.New().WithMaxGoroutines(callsAtOnce)
	for p, rows := range partitions {
		calls.Go(func() { r.submitTo(ctx, p, rows) })
	}
	calls.Wait()
}

// submitTo submits the rows of one partition.
func (r *relay) submitTo(ctx context.Context, partition uint16, rows []*row) {
	blocked := map[string]bool{}
	for len(rows) > 0 {
		var now, later []*row
		now, later = call(rows, blocked)
		if len(now) == 0 {
			return
		}
		r.create(ctx, partition, now)
		away := true
		for _, x := range now {
			if x.state == failed && x.orderKey != "" {
				blocked[x.orderKey] = true
			}
			away = away && x.state == failed && !final(x.err)
		}
		if away { // neither would the others get through
			for _, x := range later {
				if x.orderKey == "" {
					x.fail(now[0].err)
				}
			}
			return
		}
		rows = later
	}
}

// call takes from rows what fits into one call, of each key the first; what is behind a failed row of its key is in
// neither list.
func call(rows []*row, blocked map[string]bool) (now, later []*row) {
	keys := map[string]bool{}
	bytes, tags := 0, 0
	for i, x := range rows {
		if blocked[x.orderKey] {
			continue
		}
		full := len(now) == limits.MaxBatch || len(now) > 0 &&
			(bytes+x.sub.Size > maxCall || tags+len(x.sub.Item.Tags) > limits.MaxCallTags)
		if full {
			return now, append(later, rows[i:]...)
		}
		if x.orderKey != "" && keys[x.orderKey] {
			later = append(later, x)
			continue
		}
		keys[x.orderKey] = true
		now, bytes, tags = append(now, x), bytes+x.sub.Size, tags+len(x.sub.Item.Tags)
	}
	return now, later
}

// create makes one call. If the call as a whole is refused for good, each of its rows is tried alone.
func (r *relay) create(ctx context.Context, partition uint16, rows []*row) {
	items := make([]engine.NewExecution, len(rows))
	for i, x := range rows {
		items[i] = x.sub.Item
	}
	created, err := r.client.Link().Engine.CreateExecutions(ctx, partition, items)
	switch {
	case err != nil && len(rows) > 1 && final(err):
		for _, x := range rows {
			r.create(ctx, partition, []*row{x})
		}
	case err != nil:
		for _, x := range rows {
			x.fail(err)
		}
	default:
		for i, x := range rows {
			x.state = relayed
			if created[i].Err != nil {
				x.fail(created[i].Err)
			}
		}
	}
}
