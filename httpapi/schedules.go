package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/option"
	"github.com/flowfabric/flowfabric-go/schedule"
)

// scheduleBody is what is submitted when.
type scheduleBody struct {
	Cron                string    `json:"cron,omitempty" jsonschema:"minute hour day month weekday"`
	Zone                string    `json:"zone,omitempty" jsonschema:"of the cron expression, such as Europe/Berlin; default UTC"`
	EveryMs             int64     `json:"every_ms,omitempty" jsonschema:"instead of cron"`
	Anchor              time.Time `json:"anchor,omitzero" jsonschema:"a time that every_ms counts from; default 1970-01-01T00:00:00Z"`
	FirstRunNow         bool      `json:"first_run_now,omitempty" jsonschema:"run once at the creation as well; a schedule that exists is not run by it"`
	schedule.Definition `for:"schedule"`
	given
	Nodes []nodeBody `json:"nodes,omitempty" jsonschema:"each run submits a flow of these nodes, which say lane, priority, times, retries, retention and capabilities themselves"`
}

type schedulePut struct {
	scheduleBody
	Owner string `json:"owned_by,omitempty" jsonschema:"the owner that declares it: a schedule of another owner is not changed; absent: it belongs to nobody"`
	IfNew bool   `json:"if_new,omitempty" jsonschema:"refuse to change a schedule that exists"`
	why
}

func (c *call) putSchedule(b *schedulePut) (set client.ScheduleSet, err error) {
	name := c.r.PathValue("key")
	for tries := 1; ; tries++ {
		own, err := c.ownSchedule(name)
		if err != nil {
			return set, err
		}
		if b.IfNew {
			own = []client.SchedulingOption{flowfabric.IfNew()}
		}
		revisions := len(own)
		if b.Owner != "" {
			own = append(own, link.Owner(b.Owner))
		}
		d, err := c.declaration(name, b.scheduleBody, "", own...)
		if err != nil {
			return set, err
		}
		set, err = d.Put(c.ctx(), c.h.client, c.act(b.why)...)
		if revisions > 0 && !b.IfNew && errors.Is(err, denied.ScheduleChanged) && tries < maxScheduleTries {
			continue // somebody else has made or changed it meanwhile
		}
		return set, ownedElsewhere(err, "key")
	}
}

// ownedElsewhere tells that a schedule belongs to another owner.
func ownedElsewhere(err error, field string) error {
	if _, taken := errors.AsType[*client.ScheduleOwnerError](err); taken {
		return &problem{Status: http.StatusConflict, Code: "schedule_owned", Field: field,
			Detail: inMembers(err.Error())}
	}
	return err
}

// ownSchedule sees to it that a principal of some namespaces changes no schedule of another one: what it puts
// replaces what was looked at, or is new.
func (c *call) ownSchedule(name string) ([]client.SchedulingOption, error) {
	if len(c.who.Namespaces) == 0 {
		return nil, nil
	}
	s, err := c.h.admin.GetSchedule(c.ctx(), name)
	switch {
	case errors.Is(err, flowfabric.ErrNotFound):
		return []client.SchedulingOption{flowfabric.IfNew()}, nil
	case err != nil:
		return nil, err
	case !c.who.may(s.Namespace):
		return nil, &problem{Status: http.StatusConflict, Code: "schedule_changed", Field: "key",
			Detail: "the name is taken elsewhere"}
	}
	return []client.SchedulingOption{flowfabric.IfRevision(s.Revision)}, nil
}

// declaration is what a body says; at is where the body is in that of the request.
func (c *call) declaration(name string, b scheduleBody, at string,
	more ...client.SchedulingOption) (none client.ScheduleDeclaration, err error) {
	var spec schedule.Spec
	switch {
	case (b.Cron == "") == (b.EveryMs == 0):
		return none, invalid(at+"/cron", "want either cron or every_ms")
	case b.EveryMs != 0 && b.Zone != "":
		return none, invalid(at+"/zone", "it belongs to cron")
	case b.Cron != "" && !b.Anchor.IsZero():
		return none, invalid(at+"/anchor", "it belongs to every_ms")
	case b.Cron != "":
		zone := b.Zone
		if zone == "" {
			zone = "UTC"
		}
		spec = schedule.Cron(b.Cron, zone)
	default:
		spec = schedule.Every(ms(b.EveryMs), b.Anchor)
	}
	if err := cmp.Or(c.whole(&b.Item.Start, at), b.check(at)); err != nil {
		return none, err
	}
	b.Creator = scheduleCreator
	opts, whole := []client.ScheduleOption{flowfabric.StartWith(b.Item.Start)},
		[]client.ScheduleFlowOption{flowfabric.StartWith(b.Item.Start)}
	for _, o := range append(b.times(), more...) {
		opts, whole = append(opts, o), append(whole, o)
	}
	if len(b.Nodes) > 0 {
		if err := option.Foreign(&b.Item.Start, "flow word", "a flow: it belongs to the nodes"); err != nil {
			return none, invalid(at+"/nodes", "%v", err)
		}
		if b.Input != nil || b.Base64 != nil {
			return none, invalid(at+"/nodes", "the input belongs to the nodes")
		}
		f, err := c.graphOf(b.Kind, b.Nodes, at+"/nodes")
		if err != nil {
			return none, err
		}
		return client.DeclareFlowSchedule(name, spec, f, whole...), nil
	}
	return client.DeclareSchedule(name, spec, handler.Define[[]byte, []byte](b.Kind), b.input(), opts...), nil
}

// scheduleCreator is who creates what a schedule submits: the same whoever put it, so that putting what is there
// changes nothing.
const scheduleCreator = "schedule"

// times are the options about when it runs.
func (b scheduleBody) times() []client.SchedulingOption {
	opts := []client.SchedulingOption{client.MaxRuns(b.Runs), client.Jitter(time.Duration(b.Jitter))}
	if !b.Until.IsZero() {
		opts = append(opts, client.Until(b.Until))
	}
	if b.FirstRunNow {
		opts = append(opts, client.FirstRunNow())
	}
	if b.Overlap != "" {
		opts = append(opts, client.Overlap(b.Overlap))
	}
	if b.CatchUp != "" {
		opts = append(opts, client.CatchUp(b.CatchUp))
	}
	return opts
}

// ownedBody is all that an owner declares.
type ownedBody struct {
	Schedules map[string]scheduleBody `json:"schedules" jsonschema:"by name; the owner's other schedules are removed"`
}

func (c *call) syncSchedules(b *ownedBody) (done client.ScheduleSync, err error) {
	var all []client.ScheduleDeclaration
	for name, s := range b.Schedules {
		d, err := c.declaration(name, s, "/schedules/"+name)
		if err != nil {
			return done, err
		}
		all = append(all, d)
	}
	done, err = c.h.client.SyncSchedules(c.ctx(), c.r.PathValue("key"), all...)
	return done, ownedElsewhere(err, "/schedules")
}

type scheduleList admin.Page[admin.ScheduleInfo]

// shownRuns is how many runs to come are told of a schedule.
const shownRuns = 5

func (c *call) schedules() (scheduleList, error) {
	q := c.query()
	page := q.paging()
	if q.err != nil {
		return scheduleList{}, q.err
	}
	list, err := c.h.admin.Schedules(c.ctx())
	list = slices.DeleteFunc(list, func(s admin.ScheduleInfo) bool { return !c.who.may(s.Namespace) })
	out, err := cut(page, list, err, func(s admin.ScheduleInfo) string { return s.Name })
	for i, s := range out.Items {
		out.Items[i].Upcoming = s.NextRuns(shownRuns)
	}
	return scheduleList(out), err
}

func (c *call) getSchedule() (s admin.ScheduleInfo, err error) {
	q := c.query()
	n := q.number("next", 0, maxPage, shownRuns)
	if q.err != nil {
		return s, q.err
	}
	if s, err = c.schedule(); err == nil {
		s.Upcoming = s.NextRuns(int(n))
	}
	return s, err
}

// schedule is the one that the path names, if the principal may see it.
func (c *call) schedule() (admin.ScheduleInfo, error) {
	name := c.r.PathValue("key")
	s, err := c.h.admin.GetSchedule(c.ctx(), name)
	c.acting("", s.Namespace)
	if err == nil && !c.who.may(s.Namespace) {
		err = &problem{Status: http.StatusNotFound, Code: "schedule_not_found", Detail: "no schedule has this name"}
	}
	return s, err
}

// onSchedule does something to the schedule that the path names, which must have the revision that was judged: of its
// name another namespace may have made one since.
func (c *call) onSchedule(do func(s admin.ScheduleInfo) error) error {
	for tries := 1; ; tries++ {
		s, err := c.schedule()
		if err == nil {
			err = do(s)
		}
		if tries < maxScheduleTries && errors.Is(err, denied.ScheduleChanged) {
			continue
		}
		return err
	}
}

// maxScheduleTries is how often a schedule is looked at again that somebody changed meanwhile.
const maxScheduleTries = 5

func (c *call) changeSchedule(b *why,
	do func(context.Context, string, ...flowfabric.ChangeOption) error) error {
	return c.onSchedule(func(s admin.ScheduleInfo) error {
		return do(c.ctx(), s.Name, c.change(*b, flowfabric.IfRevision(s.Revision))...)
	})
}

func (c *call) pauseSchedule(b *why) error { return c.changeSchedule(b, c.h.admin.PauseSchedule) }

func (c *call) resumeSchedule(b *why) error { return c.changeSchedule(b, c.h.admin.ResumeSchedule) }

func (c *call) removeSchedule() error {
	reason, err := c.reason()
	if err == nil {
		err = c.onSchedule(func(s admin.ScheduleInfo) error {
			_, err := c.h.admin.RemoveSchedule(c.ctx(), s.Name, c.change(reason, flowfabric.IfRevision(s.Revision))...)
			return err
		})
	}
	return c.nothingToSay(err)
}
