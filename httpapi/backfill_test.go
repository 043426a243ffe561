package httpapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/backfill"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// fromSchedules submits the work of schedules now and for instants that have passed.
func (a *api) fromSchedules() {
	t := a.t
	for _, body := range []string{`{"every_ms":3600000,"kind":"echo","input":7,"deadline_ms":60000}`,
		`{"every_ms":3600000,"kind":"pair","nodes":[{"name":"a","kind":"echo","input":1},` +
			`{"name":"b","kind":"echo","input":2,"after":["a"]}]}`} {
		const path = "/v1/schedules/past"
		a.as("operator", "PUT", path, body, 200)
		before := into[admin.ScheduleInfo](t, a.as("operator", "GET", path, "", 200))
		a.as("operator", "POST", path+":pause", "", 204)

		run := into[backfill.Run](t, a.as("operator", "POST", path+":run", `{}`, 200))
		again := into[backfill.Run](t, a.as("operator", "POST", path+":run", `{}`, 200))
		if a.doneRun(run); run.Existed || run.Execution == again.Execution && run.Flow == again.Flow {
			t.Errorf("%+v, then %+v", run, again)
		}

		to := run.Due.Truncate(time.Hour)
		span := fmt.Sprintf(`{"from":%q,"to":%q}`, to.Add(-4*time.Hour).Format(time.RFC3339), to.Format(time.RFC3339))
		first := into[backfilled](t, a.as("operator", "POST", path+":backfill", span, 200))
		if first.Created != 5 || first.Existed+first.Refused != 0 || len(first.Items) != 5 {
			t.Fatalf("%+v", first)
		}
		for i, r := range first.Items {
			due := to.Add(time.Duration(i-4) * time.Hour)
			want := mint.Join(ids.Scheduled(before.Partition, "past", before.Incarnation, due))
			if a.doneRun(r); !r.Due.Equal(due) || r.Flow.IsZero() && r.Execution != want {
				t.Errorf("%d: %+v, want %s of %s", i, r, want, due)
			}
		}
		second := into[backfilled](t, a.as("operator", "POST", path+":backfill", span, 200))
		if second.Existed != 5 || second.Created+second.Refused != 0 || !slices.EqualFunc(first.Items, second.Items,
			func(a, b backfill.Run) bool { return a.Execution == b.Execution && a.Flow == b.Flow }) {
			t.Errorf("%+v", second)
		}
		after := into[admin.ScheduleInfo](t, a.as("viewer", "GET", path, "", 200))
		if !after.Paused || after.Fired != before.Fired || !after.Next.Equal(before.Next) {
			t.Errorf("the schedule has moved: %+v", after)
		}
		a.as("operator", "DELETE", path, "", 204)
	}
}

// doneRun waits for the end of what was submitted, and looks whose it is.
func (a *api) doneRun(r backfill.Run) {
	a.t.Helper()
	if r.Execution.IsZero() {
		r.Execution = r.Flow.Member("b")
	}
	x := a.until("/v1/executions/"+r.Execution.String(), string(flowfabric.Completed))
	if due, err := time.Parse(time.RFC3339, x.Tags["schedule.due"]); err != nil || !due.Equal(r.Due) ||
		x.Tags["schedule.name"] != "past" {
		a.t.Errorf("%s has the tags %v, want those of %s", x.ID, x.Tags, r.Due)
	}
}

// What is edited has other times, and submits what it did.
func (a *api) editsSchedules() {
	t := a.t
	const path = "/v1/schedules/edited"
	a.as("operator", "PUT", path, `{"every_ms":3600000,"kind":"echo","priority":3,"tags":{"a.b":"c"},`+
		`"input":{"n":7},"max_runs":9}`, 200)
	a.as("operator", "POST", path+":edit", `{}`, 400)
	a.as("operator", "POST", path+":edit", `{"cron":"0 3 * * *","zone":"Europe/Berlin","overlap":"skip"}`, 200)
	s := into[admin.ScheduleInfo](t, a.as("operator", "GET", path, "", 200))
	if s.When != "0 3 * * * (Europe/Berlin)" || s.Overlap != "skip" || s.Runs != 0 || s.Kind != "echo" ||
		s.Priority != 3 || s.Tags["a.b"] != "c" {
		t.Errorf("%+v", s)
	}
	for want, body := range map[string]string{`{"n":7}`: `{"every_ms":60000}`, `8`: `{"every_ms":60000,"input":8}`} {
		a.as("operator", "POST", path+":edit", body, 200)
		run := into[backfill.Run](t, a.as("operator", "POST", path+":run", `{}`, 200))
		a.until("/v1/executions/"+run.Execution.String(), string(flowfabric.Completed))
		got := a.as("operator", "GET", "/v1/executions/"+run.Execution.String()+"/input", "", 200)
		if !strings.Contains(string(got.body), `"value":`+want) {
			t.Errorf("%s: its input is %s", body, got.body)
		}
		a.as("operator", "PUT", path, `{"every_ms":3600000,"kind":"echo","input":{"n":7}}`, 200)
	}
	a.as("operator", "DELETE", path, "", 204)
}

// A range that is too long, in the future or upside down is refused with its field, and so is a schedule of another
// namespace.
func TestRangesOfSchedules(t *testing.T) {
	a := newAPI(t)
	const path = "/v1/schedules/past"
	a.as("operator", "PUT", path, `{"every_ms":60000,"kind":"echo"}`, 200)
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	for _, x := range []struct{ from, to, field string }{
		{"", "", "/from"}, {at(-24 * time.Hour), "", "/to"}, {at(-time.Hour), at(time.Hour), "/to"},
		{at(-time.Hour), at(-2 * time.Hour), "/to"},
	} {
		body := `{`
		if x.from != "" {
			body += `"from":"` + x.from + `"`
		}
		if x.to != "" {
			body += `,"to":"` + x.to + `"`
		}
		if p := into[problem](t, a.as("operator", "POST", path+":backfill", body+`}`, 400)); p.Field != x.field {
			t.Errorf("%+v: %+v", x, p)
		}
	}
	good := `{"from":"` + at(-time.Minute) + `"}`
	for action, good := range map[string]string{":run": "{}", ":backfill": good} {
		a.as("producer", "POST", path+action, good, 403)
		a.as("blue", "POST", path+action, good, 404)
		a.as("operator", "POST", "/v1/schedules/none"+action, good, 404)
	}
	if got := into[backfilled](t, a.as("operator", "POST", path+":backfill", good, 200)); got.Created != 1 &&
		got.Created != 2 {
		t.Errorf("%+v", got)
	}
}
