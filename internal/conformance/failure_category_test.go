package conformance

import (
	"fmt"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
)

// What is told of an end, and how those who look for failures find it.
var categoryScenarios = []scenario{
	{name: "an ended execution has a category only if a failure ended it", run: func(w *env) {
		for _, x := range []struct {
			what, want string
			code       codes.Code
			end        func(id flowfabric.ExecutionID, f flowfabric.Fence)
		}{
			{"success", "", "T1", func(_ flowfabric.ExecutionID, f flowfabric.Fence) { w.no(w.complete(f, "").Err) }},
			{"cancelled", "", "T3", func(id flowfabric.ExecutionID, _ flowfabric.Fence) { w.cancel(id) }},
			{"failed", "last", "T2", func(_ flowfabric.ExecutionID, f flowfabric.Fence) { w.fail(f, "last") }},
			{"timed out", "attempt_timeout", "T4",
				func(flowfabric.ExecutionID, flowfabric.Fence) { w.advance(time.Second); w.settleTime() }},
			{"deadline", "execution_deadline", "T4",
				func(flowfabric.ExecutionID, flowfabric.Fence) { w.advance(30 * time.Minute); w.settleTime() }},
		} {
			k, opts := w.worker("w1"), []option{retries(1)}
			k.ttl = time.Hour
			switch x.what {
			case "timed out":
				opts = append(opts, timeout(time.Second))
			case "deadline":
				opts = append(opts, deadline(30*time.Minute))
			}
			id := w.create(opts...)
			w.fail(k.one(id).Fence, "first")
			w.advance(time.Minute)
			w.settleTime()
			x.end(id, k.one(id).Fence)
			w.code(id, x.code)
			events, err := w.e.ReadHistory(w.ctx, id)
			w.no(err)
			last := events[len(events)-1]
			w.all(x.what, eq(last.Kind, timeline.EventEnded), eq(last.State, codes.Shown(x.code).Public),
				eq(last.Detail, x.want))
			at := slices.IndexFunc(events, func(e flowfabric.Event) bool { return e.Kind == timeline.EventAttempt })
			same(w, x.what+": the attempt before", events[at].Detail, "ended_failure first")
		}
	}},
	{name: "an execution that a suspension timeout cancelled has a category", run: func(w *env) {
		w.seed()
		_, c, _ := w.waiting(within(time.Second, "cancel"))
		w.advance(time.Second)
		w.settleTime()
		w.code(c.Fence.Execution, "T3")
		events, err := w.e.ReadHistory(w.ctx, c.Fence.Execution)
		w.no(err)
		same(w, "category", events[len(events)-1].Detail, "suspension_timeout")
	}},
	{name: "a listing of failed executions includes those whose last attempt timed out", run: func(w *env) {
		c, k := w.client(), w.worker("w1")
		lane := "lane-" + time.Now().Format("150405.000000")
		on := func(x *engine.NewExecution) { x.Lane = lane }
		k.ttl = time.Hour
		timedOut, late, broken, fine, retried := w.create(on, timeout(time.Second)),
			w.create(on, deadline(30*time.Minute)), w.create(on), w.create(on), w.create(on, retries(3))
		for _, claim := range k.claim(10) {
			switch claim.Fence.Execution {
			case broken:
				w.fail(claim.Fence, "disk_full")
			case fine:
				w.no(w.complete(claim.Fence, "").Err)
			case retried:
				w.fail(claim.Fence, "disk_full")
			}
		}
		w.advance(time.Second)
		w.settleTime()
		w.code(timedOut, "T4")
		w.advance(30 * time.Minute)
		w.settleTime()
		w.code(late, "T4")
		for _, x := range []struct {
			filter admin.Filter
			want   []flowfabric.ExecutionID
		}{
			{admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed}},
				[]flowfabric.ExecutionID{timedOut, broken}},
			{admin.Filter{States: []flowfabric.PublicState{flowfabric.Expired}},
				[]flowfabric.ExecutionID{timedOut, late}},
			{admin.Filter{States: []flowfabric.PublicState{flowfabric.Failed, flowfabric.Expired}},
				[]flowfabric.ExecutionID{timedOut, late, broken}},
			{admin.Filter{Categories: []flowfabric.Category{"disk_full"}}, []flowfabric.ExecutionID{broken, retried}},
			{admin.Filter{States: []flowfabric.PublicState{admin.Ended},
				Categories: []flowfabric.Category{"disk_full", "attempt_timeout"}},
				[]flowfabric.ExecutionID{timedOut, broken}},
			{admin.Filter{States: []flowfabric.PublicState{flowfabric.Completed},
				Categories: []flowfabric.Category{"disk_full"}},
				nil},
		} {
			x.filter.Lane, x.filter.Namespace = lane, admin.AllNamespaces
			var got []flowfabric.ExecutionID
			for found, err := range admin.New(c).List(w.ctx, x.filter) {
				w.no(err)
				got = append(got, found.ID)
			}
			byID := func(a, b flowfabric.ExecutionID) int {
				return slices.Compare([]byte(a.String()), []byte(b.String()))
			}
			slices.SortFunc(got, byID)
			slices.SortFunc(x.want, byID)
			sameList(w, fmt.Sprintf("%v %v", x.filter.States, x.filter.Categories), got, x.want...)
		}
		_, err := admin.New(c).ListPage(w.ctx, admin.Filter{Categories: []flowfabric.Category{""}}, "", 1)
		w.is(err, flowfabric.ErrInvalidInput)
		page, err := admin.New(c).ListPage(w.ctx, admin.Filter{Lane: lane, Namespace: admin.AllNamespaces,
			Categories: []flowfabric.Category{"disk_full", "attempt_timeout"}}, "", 1)
		w.no(err)
		_, err = admin.New(c).ListPage(w.ctx,
			admin.Filter{Lane: lane, Namespace: admin.AllNamespaces, Categories: []flowfabric.Category{"disk_full"}},
			page.Cursor, 1)
		w.is(err, flowfabric.ErrInvalidInput) // a cursor is good for its filter
	}},
}
