package engine

import (
	"context"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Catalogue is what a partition keeps so that executions are found by when they were created: all of them, and those
// that have a tag.
type Catalogue struct {
	All  bool // lists of all states in the order of creation
	Tags []CataloguedTag
	// Building: what was there before it was said is not in it yet, of executions in all (All) or of tags.
	Building bool
	New      bool // it was never set
}

// CataloguedTag is a tag key whose values can be asked for.
type CataloguedTag struct {
	Key    string
	Ready  bool      // false: what was there before is not in it yet
	Going  bool      // it is being removed
	Values int       // in the partition
	Full   time.Time // since when executions with further values are not in it; zero: all are
}

// ReadIndex reads what a partition's catalogue keeps (lua/operate/ff_read_index.lua).
func (e *Engine) ReadIndex(ctx context.Context, partition uint16) (c Catalogue, err error) {
	r, _, err := ask[wire.ReadIndexReply](ctx, e, partition, wire.ReadIndex{})
	if err != nil {
		return c, err
	}
	c.All, c.Building, c.New = r.Routes == "1", r.Routes == "~", r.Routes == "-"
	for _, t := range r.Tags {
		c.Tags = append(c.Tags, CataloguedTag{Key: t.Key, Ready: t.Mark == "+", Going: t.Mark == "-",
			Values: int(t.Values), Full: t.Full})
		c.Building = c.Building || t.Mark == "~"
	}
	return c, nil
}

// SetIndex says what the catalogue of a partition keeps (lua/operate/ff_set_index.lua), and removes what it does not
// keep any more. With ready, what is kept can be asked for from now on: every execution that was there before has been
// given to [Engine.IndexExecutions] since it was said. The call may be repeated.
func (e *Engine) SetIndex(ctx context.Context, partition uint16, all bool, tags []string, ready bool) error {
	call := wire.SetIndex{Routes: all, Ready: ready, Tags: slices.Compact(slices.Sorted(slices.Values(tags)))}
	for {
		r, _, err := ask[wire.SetIndexReply](ctx, e, partition, call)
		if err != nil || !r.More {
			return err
		}
		call.Cursor = r.Cursor
	}
}

// IndexExecutions lists executions of a partition, at most 100, in its catalogue
// (lua/operate/ff_index_executions.lua). The call may be repeated.
func (e *Engine) IndexExecutions(ctx context.Context, partition uint16, list []flowfabric.ExecutionID) error {
	call := wire.IndexExecutions{Executions: make([]string, len(list))}
	for i, id := range list {
		call.Executions[i] = ids.UUID(id).String()
	}
	_, _, err := ask[wire.IndexExecutionsReply](ctx, e, partition, call)
	return err
}

// CountExecutions counts executions of a partition by their state, the newest first, down to those created at since,
// and about most of them (lua/operate/ff_count_executions.lua): those of the routes that [CreatedKey] asks for, of
// which only those that have a tag, if tagged (see [TaggedKey]) is not "". more tells that there are others.
// denied.NotIndexed.
func (e *Engine) CountExecutions(ctx context.Context, partition uint16, routes, tagged string, since time.Time,
	most int) (counts map[codes.Code]int, more bool, err error) {
	counts = map[codes.Code]int{}
	call := wire.CountExecutions{Index: string(IndexCreated), Key: routes, Limit: min(most, 1000)}
	if tagged != "" {
		call.Index, call.Key, call.Limit = string(IndexTagged), tagged, min(most, 1000)
		if routes != CreatedKey("", "", "") {
			call.Of = routes
		}
	}
	if !since.IsZero() {
		call.Since = int(max(0, since.UnixMilli()))
	}
	for left := most; ; {
		r, _, err := ask[wire.CountExecutionsReply](ctx, e, partition, call)
		if err != nil {
			return counts, false, err
		}
		for _, s := range r.States {
			counts[codes.Code(s.Code)] += s.Count
		}
		left -= call.Limit
		if !r.More || left <= 0 {
			return counts, r.More, nil
		}
		call.Score, call.Member = r.Score, r.Member
	}
}
