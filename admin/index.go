package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Index is what the store keeps so that executions are found without looking at all of them.
type Index struct {
	All  bool         `json:"all" jsonschema:"lists of all states are in the order of creation"`
	Tags []IndexedTag `json:"tags" jsonschema:"tags whose values can be asked for, by key"`
	// Building: what was there before is not in it yet; [Admin.SetIndex] has not come to its end.
	Building bool `json:"building,omitempty" jsonschema:"what was there before is not in it yet"`
}

// IndexedTag is a tag key of an [Index].
type IndexedTag struct {
	Key    string    `json:"key"`
	Ready  bool      `json:"ready" jsonschema:"lists use it"`
	Values int       `json:"values" jsonschema:"how many values the partition has that has most of them"`
	FullAt time.Time `json:"full_at,omitzero" jsonschema:"since when a partition has too many values"`
}

// IndexChange is what [Admin.SetIndex] changes.
type IndexChange struct {
	All  *bool    `json:"all,omitempty" jsonschema:"lists of all states in the order of creation; absent: as it is"`
	Tags []string `json:"tags,omitzero" jsonschema:"tag keys that can be asked for, at most 8; absent: as they are"`
	// told how many executions were listed so far, by the goroutine that called SetIndex
	Progress func(executions int) `json:"-"`
}

// Index reads what the store keeps. Errors: flowfabric.ErrTransport, ErrPartitionFrozen and others when a partition
// does not answer; client.ErrClosed.
func (a *Admin) Index(ctx context.Context) (Index, error) {
	out := Index{All: true, Tags: []IndexedTag{}}
	if err := a.conn.Closed(); err != nil {
		return out, fmt.Errorf("read index: %w", err)
	}
	read := make([]engine.Catalogue, a.store.Partitions())
	failed := a.eachPartition(func(p uint16) (err error) {
		read[p], err = a.conn.Engine.ReadIndex(ctx, p)
		return err
	})
	if err := failed.sum("read index", len(read)); err != nil {
		return out, fmt.Errorf("read index: %w", err)
	}
	keys := map[string]*IndexedTag{}
	for _, c := range read {
		out.All, out.Building = out.All && c.All, out.Building || c.Building
		for _, t := range c.Tags {
			if t.Going {
				continue
			}
			x := keys[t.Key]
			if x == nil {
				x = &IndexedTag{Key: t.Key, Ready: true}
				keys[t.Key] = x
			}
			x.Ready, x.Values = x.Ready && t.Ready, max(x.Values, t.Values)
			if !t.Full.IsZero() && (x.FullAt.IsZero() || t.Full.Before(x.FullAt)) {
				x.FullAt = t.Full
			}
		}
	}
	for _, x := range keys {
		out.Tags = append(out.Tags, *x)
	}
	slices.SortFunc(out.Tags, func(a, b IndexedTag) int { return cmp.Compare(a.Key, b.Key) })
	return out, nil
}

// SetIndex changes what the store keeps, and lists what was there before: it goes over all keys of the store, while
// everything else works, and returns when lists can use it. When it was cut short, or some partition did not answer,
// the same call goes on.
//
// Errors: flowfabric.ErrInvalidInput for more than 8 tags or an illegal key, before any call; ErrTransport,
// ErrPartitionFrozen and others when a partition does not answer; that of ctx; client.ErrClosed.
func (a *Admin) SetIndex(ctx context.Context, change IndexChange, opts ...flowfabric.ActOption) (Index, error) {
	act, err := a.act(opts)
	if err != nil {
		return Index{}, fmt.Errorf("set index: %w", err)
	}
	out, err := a.setIndex(act.Noted(ctx, "set index", "store", "", change.Tags...), change)
	if err != nil {
		return out, fmt.Errorf("set index: %w", err)
	}
	return out, nil
}

func (a *Admin) setIndex(ctx context.Context, change IndexChange) (Index, error) {
	if len(change.Tags) > limits.MaxIndexedTags {
		return Index{}, fmt.Errorf("%w: tags has %d keys, want at most %d", flowfabric.ErrInvalidInput,
			len(change.Tags), limits.MaxIndexedTags)
	}
	for _, key := range change.Tags {
		if err := valid.Tags(map[string]string{key: ""}); err != nil {
			return Index{}, err
		}
	}
	now, err := a.Index(ctx)
	if err != nil || link.Rehearsed(ctx) != nil {
		return now, err
	}
	all, tags := now.All, change.Tags
	if change.All != nil {
		all = *change.All
	}
	if tags == nil {
		for _, t := range now.Tags {
			tags = append(tags, t.Key)
		}
	}
	set := func(ready bool) error {
		failed := a.eachPartition(func(p uint16) error { return a.conn.Engine.SetIndex(ctx, p, all, tags, ready) })
		return failed.sum("set index", int(a.store.Partitions()))
	}
	if err := set(false); err != nil {
		return now, err
	}
	if now, err = a.Index(ctx); err != nil || !now.Building {
		return now, err
	}
	if _, err := maintain.Reindex(ctx, a.conn.Engine, change.Progress); err != nil {
		return now, err
	}
	if err := set(true); err != nil {
		return now, err
	}
	return a.Index(ctx)
}
