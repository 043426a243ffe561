package browser

import (
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// lose starts a worker and kills it, and returns its name once it counts as lost.
func (d *deployment) lose() (instance string) {
	d.t.Helper()
	worker := startWorker(d.t, d.store)
	look := func(alive bool) func() (bool, any) {
		return func() (bool, any) {
			all, err := d.admin.Workers(d.t.Context())
			must.No(d.t, err)
			for _, w := range all {
				if w.Instance != "writer-1" && w.Alive == alive {
					instance = w.Instance
					return true, nil
				}
			}
			return false, len(all)
		}
	}
	testwait.Progress(d.t, "the worker is there", look(true))
	must.No(d.t, worker.Process.Kill())
	testwait.Progress(d.t, "the worker is lost", look(false))
	return instance
}

// A schedule is run now, for a range that has passed, and at other times; its list leads to its runs.
func TestRunEditAndBackfillSchedules(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "operator")
	menu := func(item string) {
		t.Helper()
		b.visit("schedules")
		b.text(`[...document.querySelectorAll("main tr")].find(r => r.innerText.includes("refresh-sources"))` +
			`.querySelector("button").click()`)
		b.press(item)
		b.wait(`document.querySelector("dialog[open]")`)
	}
	runs := func() (n int) {
		return counted(t.Context(), t, d, admin.Filter{Tags: map[string]string{"schedule.name": "refresh-sources"}})
	}

	menu("Run now…")
	b.says("The schedule stays as it is: paused.")
	b.fill("Reason", "the feeds were empty")
	b.press("Run now")
	b.says("It was submitted.")
	b.wait(`location.hash.startsWith("#/executions/") && document.querySelector("main h1")`)
	if runs() != 1 {
		t.Errorf("%d runs", runs())
	}

	to := time.Now().Truncate(15 * time.Minute)
	for _, want := range []string{"3 runs submitted, 0 had", "0 runs submitted, 3 had"} {
		menu("Backfill…")
		for label, at := range map[string]time.Time{"From": to.Add(-30 * time.Minute), "To": to} {
			b.fill(label, b.text(`(d => new Date(d - d.getTimezoneOffset() * 60000).toISOString().slice(0, 16))`+
				`(new Date(`+literal(at.Format(time.RFC3339))+`))`))
		}
		b.press("Backfill")
		b.says(want)
		b.says("Backfill of refresh-sources")
		b.press("Close")
	}
	if runs() != 4 {
		t.Errorf("%d runs", runs())
	}

	menu("Edit…")
	b.fill("Every so many seconds", "")
	b.fill("Cron", "0 4 * * *")
	b.fill("Time zone", "Europe/Berlin")
	b.fill("Reason", "less often")
	b.press("Save")
	b.says("The schedule is saved.")
	b.says("0 4 * * * (Europe/Berlin)")
	s, err := d.admin.GetSchedule(t.Context(), "refresh-sources")
	if err != nil || s.When != "0 4 * * * (Europe/Berlin)" || !s.Paused || s.Kind != "fetch-sources" {
		t.Errorf("%+v, %v", s, err)
	}

	b.text(`[...document.querySelectorAll("main tr")].find(r => r.innerText.includes("refresh-sources"))` +
		`.querySelector("a[title]").click()`)
	b.wait(`document.querySelectorAll("main tbody tr").length === 4`)
	b.visit("trail?on=schedule&name=refresh-sources&by=operator")
	for _, said := range []string{"run", "backfill", "put", "the feeds were empty", "less often"} {
		b.says(said)
	}
	x, err := d.admin.GetSchedule(t.Context(), "nightly-report")
	must.No(t, err)
	if x.Fired != 0 || x.LastID != (flowfabric.ExecutionID{}) {
		t.Errorf("another schedule has run: %+v", x)
	}
	b.visit("overview")
	b.wait(`document.querySelector("main h1").innerText === "Overview" && document.querySelector("nav [aria-current]")`)
	b.quiet(asked401)
}

// A token of a namespace is not offered what it may not see.
func TestMenuOfANamespace(t *testing.T) {
	d := deploy(t, true)
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "blue")
	b.wait(`document.querySelector("nav a")`)
	b.want(`[...document.querySelectorAll("nav a")].map(a => a.innerText.trim()).join()`,
		"Overview,Executions,Flows,Approvals,Queues,Workers,Schedules,Audit trail")
	b.visit("schedules")
	b.says("Nothing is scheduled")
	b.visit("gates")
	b.says("Not with this token")
	b.quiet(asked401, "status of 403")
}
