package link

import (
	"context"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// Rehearsal has calls check what they are asked for, as far as that goes, and change nothing. A plan is made of such
// calls, so that it is judged by the rules of the change itself.
type Rehearsal struct {
	// Gates will exist by then: their names, with the gate above each.
	Gates map[string]string
	// Schedule is the one that was judged last.
	Schedule schedule.Definition
	// Trigger is the definition of the one that was judged last, as it would be stored.
	Trigger string
}

type rehearsing struct{}

// In has the calls under the context only rehearse.
func (r *Rehearsal) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, rehearsing{}, r)
}

// Rehearsed is the rehearsal that a call belongs to; nil: the call is meant.
func Rehearsed(ctx context.Context) *Rehearsal {
	r, _ := ctx.Value(rehearsing{}).(*Rehearsal)
	return r
}

// lacking are the gates that nothing will make.
func (r *Rehearsal) lacking(all []flowfabric.Gate) []flowfabric.Gate {
	if r == nil {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), func(g flowfabric.Gate) bool {
		_, planned := r.Gates[g.Name()]
		return planned
	})
}

// Owner is an option of a schedule: who declares it. A schedule of another owner is not changed.
type Owner string

// ScheduleOption makes it an option of schedules.
func (Owner) ScheduleOption() {}

// ScheduleFlowOption makes it an option of schedules of flows.
func (Owner) ScheduleFlowOption() {}
