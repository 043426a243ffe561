package httpapi

import (
	"errors"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/rollout"
)

// versions are those of applications, with what each still holds.
func (c *call) versions() (out apiv1.Versions, err error) {
	f, err := c.filter(c.query())
	if err != nil {
		return out, err
	}
	workers, failed := c.h.admin.Workers(c.ctx())
	if some, ok := errors.AsType[*admin.PartitionsError](failed); failed != nil && (!ok || some.Failed == some.Total) {
		return out, failed
	}
	seen := map[string]time.Time{}
	for _, p := range c.h.conn.Engine.Versions(c.ctx()) {
		for version, at := range p.Reply {
			if at.After(seen[version]) {
				seen[version] = at
			}
		}
	}
	all, cut := rollout.New(slices.DeleteFunc(workers, func(w flowfabric.Worker) bool {
		return !c.serves(w)
	}), seen), []flowfabric.PublicState(nil)
	f.WithTags, f.WithReasons = false, false
	for _, f.States = range rollout.States {
		more, err := c.look(f, rollout.Most,
			func(x admin.Listed) { all.Add(f.States[0], x.Session, x.ClaimedAt) })
		if err != nil {
			return out, err
		}
		if more {
			cut = append(cut, f.States[0])
		}
	}
	out = all.All(cut)
	if failed != nil {
		out.Missing = inMembers(failed.Error())
	}
	return out, nil
}
