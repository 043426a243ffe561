// Package rollout tells which versions of applications are at work, and what each still holds.
//
// Nothing is written for that when an execution is claimed: the id of the session has a mark of the version, and the
// record of an execution has the session that claimed it last.
package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// Most is how many executions of a state are looked at.
const Most = 10000

// States are those of executions that wait and may have been claimed before. Those that are together are in one index.
var States = [][]flowfabric.PublicState{{"held"}, {flowfabric.Waiting, flowfabric.WaitingGate}, {flowfabric.Delayed},
	{flowfabric.Suspended}}

// Rollout counts by version. Make it with [New].
type Rollout struct {
	byMark map[string]*apiv1.Version
}

// New counts workers and what they run. seen are the versions that are known, and when a worker of them was last heard
// of.
func New(workers []flowfabric.Worker, seen map[string]time.Time) *Rollout {
	r := &Rollout{map[string]*apiv1.Version{}}
	for version, at := range seen {
		r.named(version).SeenAt = at
	}
	for _, w := range workers {
		v := r.named(w.Version)
		if w.Alive && w.Registered {
			v.Workers++
			v.Kinds = append(v.Kinds, w.Kinds...)
			if v.Since.IsZero() || w.RegisteredAt.Before(v.Since) {
				v.Since = w.RegisteredAt
			}
		}
		if w.SeenAt.After(v.SeenAt) {
			v.SeenAt = w.SeenAt
		}
		for _, s := range w.Sessions {
			r.of(s.ID).Active += s.Held
		}
	}
	return r
}

// named is the row of a version. Workers without one have a row, too.
func (r *Rollout) named(version string) *apiv1.Version {
	mark := ""
	if version != "" {
		mark = ids.VersionMark(version)
	}
	v := r.row(mark)
	if v.Version == "" {
		v.Version = version
	}
	return v
}

func (r *Rollout) row(mark string) *apiv1.Version {
	if r.byMark[mark] == nil {
		r.byMark[mark] = &apiv1.Version{}
	}
	return r.byMark[mark]
}

// of is the row of the version of a session, that of no version if nothing is known of it.
func (r *Rollout) of(session string) *apiv1.Version {
	if v := r.byMark[ids.SessionMark(session)]; v != nil {
		return v
	}
	return r.row("")
}

// Add counts an execution that waits in a state and was claimed last under a session, at a time. One that was never
// claimed is of no version.
func (r *Rollout) Add(state flowfabric.PublicState, session string, claimed time.Time) {
	if session == "" {
		return
	}
	v := r.of(session)
	switch state {
	case flowfabric.Suspended:
		v.Suspended++
	case flowfabric.Delayed:
		v.Delayed++
	default:
		v.Waiting++
	}
	if v.OldestAt.IsZero() || claimed.Before(v.OldestAt) {
		v.OldestAt = claimed
	}
}

// All are the versions that have workers or work, the one whose workers came last in front. more are the states of
// which not all was looked at.
func (r *Rollout) All(more []flowfabric.PublicState) apiv1.Versions {
	out := apiv1.Versions{Items: []apiv1.Version{}, More: more}
	for _, v := range slices.Collect(maps.Values(r.byMark)) {
		if v.Workers+v.Active+v.Suspended+v.Delayed+v.Waiting > 0 {
			slices.Sort(v.Kinds)
			v.Kinds = slices.Compact(v.Kinds)
			out.Items = append(out.Items, *v)
		}
	}
	slices.SortFunc(out.Items, func(a, b apiv1.Version) int {
		return cmp.Or(b.Since.Compare(a.Since), b.SeenAt.Compare(a.SeenAt), strings.Compare(a.Version, b.Version))
	})
	return out
}
