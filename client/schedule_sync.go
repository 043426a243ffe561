package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/calendar"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// maxSyncCalls is how many partitions a [Client.SyncSchedules] reads at once.
const maxSyncCalls = 16

// ScheduleSync lists the changes that [Client.SyncSchedules] made, each in the order of names.
type ScheduleSync struct {
	Created   []string `json:"created,omitempty"`
	Updated   []string `json:"updated,omitempty"`
	Unchanged []string `json:"unchanged,omitempty"`
	Removed   []string `json:"removed,omitempty"`
}

// ScheduleOwnerError tells that a schedule belongs to another owner than the one that declares it.
// [Client.SyncSchedules] leaves it as it is. Give yours another name; to take it over, remove it from the other
// declaration first, or call [Schedule], after which it belongs to nobody.
type ScheduleOwnerError struct {
	Name  string
	Owner string // to whom it belongs
	Other string // who declared it now
}

func (e *ScheduleOwnerError) Error() string {
	return fmt.Sprintf("schedule %q belongs to owner %q, not to %q", e.Name, e.Owner, e.Other)
}

// SyncSchedules declares all schedules of an owner. It creates those that are missing, changes those that differ, and
// removes those of the owner that are not declared; without declarations all of them. A schedule that is equal is
// left as it is, and keeps its revision. A schedule that belongs to nobody is taken over; one that belongs to another
// owner is refused. owner is a name of your choice, of a service for example: 1..64 bytes of printable ASCII without
// braces.
//
// Call it at every start of a program. Processes that declare the same may do so at the same time. While a new
// version replaces an old one, the last declaration counts: a process of the old version that starts in between
// brings its schedules back, and the next start of the new version removes them. A removed schedule loses its counts,
// and one that is created again does not catch up on what came in between. So change a schedule under its name, and
// do not rename it.
//
// It reads every partition, one call each, and makes one or two calls for each schedule that changes. What it did so
// far is returned with an error, and it may be called again.
//
// Errors before any I/O: those of [Schedule] and [ScheduleFlow] for all declarations at once, with their names;
// ErrInvalidInput for an owner out of bounds, for a name that is declared twice, and for flowfabric.IfNew and
// IfRevision.
// Then [*ScheduleOwnerError] for each schedule of another owner, before anything is changed. From the server: those
// of [Schedule], and ErrPartitionFrozen.
func (c *Client) SyncSchedules(ctx context.Context, owner string,
	schedules ...ScheduleDeclaration) (ScheduleSync, error) {
	fail := func(err error) (ScheduleSync, error) {
		return ScheduleSync{}, fmt.Errorf("sync schedules of %q: %w", owner, err)
	}
	if c.closed.Load() {
		return fail(ErrClosed)
	}
	wanted, err := c.declared(owner, schedules)
	if err != nil {
		return fail(err)
	}
	found, err := c.allSchedules(ctx)
	if err != nil {
		return fail(err)
	}
	var others []error
	for name := range wanted {
		if _, err := mine(name, owner, engine.SchedulePage{Schedules: found[name]}); err != nil {
			others = append(others, err)
		}
	}
	if len(others) > 0 {
		slices.SortFunc(others, func(a, b error) int { return bytes.Compare([]byte(a.Error()), []byte(b.Error())) })
		return fail(errors.Join(others...))
	}
	out, err := c.converge(ctx, owner, wanted, found)
	if err != nil {
		err = fmt.Errorf("sync schedules of %q: %w", owner, err)
	}
	for _, names := range [][]string{out.Created, out.Updated, out.Unchanged, out.Removed} {
		slices.Sort(names)
	}
	return out, err
}

// declared checks all declarations, by name.
func (c *Client) declared(owner string, schedules []ScheduleDeclaration) (map[string]*scheduling, error) {
	errs := []error{valid.Name("owner", owner)}
	wanted := make(map[string]*scheduling, len(schedules))
	for _, d := range schedules {
		refuse := func(err error) { errs = append(errs, fmt.Errorf("schedule %q: %w", d.name, err)) }
		s, err := d.checked(c)
		if err != nil {
			refuse(err)
			continue
		}
		if s.expected != nil {
			refuse(fmt.Errorf("%w: IfNew and IfRevision go with Schedule", flowfabric.ErrInvalidInput))
		}
		if wanted[d.name] != nil {
			refuse(fmt.Errorf("%w: it is declared twice", flowfabric.ErrInvalidInput))
		}
		s.definition.Owner, s.owned = owner, true
		if _, err := s.text(d.name); err != nil {
			refuse(err)
		}
		wanted[d.name] = s
	}
	return wanted, errors.Join(errs...)
}

// allSchedules reads the schedules of all partitions, by name.
func (c *Client) allSchedules(ctx context.Context) (map[string][]engine.Schedule, error) {
	lists := make([][]engine.Schedule, c.store.Partitions())
	calls := pool.New().WithMaxGoroutines(maxSyncCalls).WithErrors().WithFirstError()
	for p := range lists {
		calls.Go(func() error {
			for after, more := "", true; more; {
				page, err := c.store.Schedules(ctx, uint16(p), engine.ScheduleQuery{After: after})
				if err != nil {
					return fmt.Errorf("list schedules of partition %d: %w", p, err)
				}
				for _, s := range page.Schedules {
					lists[p], after = append(lists[p], s), s.Name
				}
				more = page.More && len(page.Schedules) > 0
			}
			return nil
		})
	}
	if err := calls.Wait(); err != nil {
		return nil, err
	}
	found := map[string][]engine.Schedule{}
	for _, list := range lists {
		for _, s := range list {
			found[s.Name] = append(found[s.Name], s)
		}
	}
	return found, nil
}

// mine tells which revision a schedule has that may be changed for an owner, 0 if there is none.
func mine(name, owner string, page engine.SchedulePage) (*uint64, error) {
	if len(page.Schedules) == 0 {
		return new(uint64), nil
	}
	s := page.Schedules[0]
	if other := calendar.OwnerOf(s.Definition); other != "" && other != owner {
		return nil, &ScheduleOwnerError{Name: name, Owner: other, Other: owner}
	}
	return &s.Revision, nil
}

// converge makes what is found what is wanted.
func (c *Client) converge(ctx context.Context, owner string, wanted map[string]*scheduling,
	found map[string][]engine.Schedule) (out ScheduleSync, err error) {
	for name, s := range wanted {
		text, err := s.text(name)
		if err != nil {
			return out, err
		}
		there := found[name]
		if len(there) > 0 && bytes.Equal(there[0].Definition, text) {
			out.Unchanged = append(out.Unchanged, name)
			continue
		}
		set, err := c.put(ctx, name, s)
		switch {
		case err != nil:
			return out, err
		case set.Already: // another process was faster
			out.Unchanged = append(out.Unchanged, name)
		case len(there) > 0:
			out.Updated = append(out.Updated, name)
		default:
			out.Created = append(out.Created, name)
		}
	}
	for name, there := range found {
		if wanted[name] != nil || calendar.OwnerOf(there[0].Definition) != owner {
			continue
		}
		removed, err := c.drop(ctx, owner, there[0])
		if err != nil {
			return out, fmt.Errorf("remove schedule %q: %w", name, err)
		}
		if removed {
			out.Removed = append(out.Removed, name)
		}
	}
	return out, nil
}

// drop removes a schedule while it is the owner's.
func (c *Client) drop(ctx context.Context, owner string, s engine.Schedule) (removed bool, err error) {
	for try := 1; ; try++ {
		already, err := c.store.RemoveSchedule(link.Act{By: c.cfg.Creator}.Noted(ctx, "remove", "schedule", s.Name,
			"no longer declared by "+owner), s.Name, &s.Revision)
		if err == nil || !errors.Is(err, denied.ScheduleChanged) || try >= maxPutTries {
			return err == nil && !already, err
		}
		page, err := c.store.Schedules(ctx, s.Partition, engine.ScheduleQuery{Name: s.Name, Limit: 1})
		if err != nil {
			return false, err
		}
		if len(page.Schedules) == 0 || calendar.OwnerOf(page.Schedules[0].Definition) != owner {
			return false, nil // somebody else has removed it or taken it over
		}
		s = page.Schedules[0]
	}
}
