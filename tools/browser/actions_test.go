package browser

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/tools/browser/scene"
)

// Each of the actions that TestActions leaves out has its effect, and the reason that was given for it is in the
// audit trail.
func TestActionsHaveReasons(t *testing.T) {
	d := deploy(t, true)
	ctx := t.Context()
	b := openBrowser(t)
	b.window(1280, 900, "light")
	b.enter(d, "admin")
	var said []string // what the audit trail must have
	menu := func(place, menu, item string) {
		t.Helper()
		b.visit(place)
		b.press(menu)
		if item != "" {
			b.press(item)
		}
		b.wait(`document.querySelector("dialog[open]")`)
	}
	confirm := func(noted, button, told string) {
		t.Helper()
		b.fill("Reason", "because of "+noted)
		b.press(button)
		b.says(told)
		b.wait(`!document.querySelector("dialog[open]")`)
		said = append(said, noted+": because of "+noted)
	}

	long := d.submit(map[string]any{"kind": "narrate", "input": 100_000})
	d.until(long, "active")
	menu("executions/"+long, "Actions", "Take it from its worker…")
	confirm("revoke execution", "Take it from its worker", "Taken away.")
	b.wait(`document.querySelector(".history")?.innerText.includes("because of revoke execution")`)
	menu("executions/"+long, "Actions", "Cancel…")
	confirm("cancel execution", "Cancel", "Cancelled.")
	d.until(long, "cancelled")
	menu("executions/"+d.scene.Suspended.String(), "Actions", "Resume without an answer…")
	b.press("Resume")
	b.wait(`document.querySelector("dialog :invalid")`) // nobody goes on without an answer and a reason
	confirm("resume execution", "Resume", "Resumed.")
	if x, err := d.client.Execution(d.scene.Suspended).Suspension(ctx); err == nil && len(x.Waitpoints) > 0 &&
		x.Waitpoints[0].State == "active" {
		t.Errorf("%+v", x)
	}
	waits := d.submit(map[string]any{"kind": "transcribe-audio", "lane": "audio"})
	for _, x := range []struct{ item, field, value, button, told, noted string }{
		{"Set the priority…", "Priority", "5", "Set it", "The priority is set.", "set priority execution"},
		{"Hold…", "", "", "Hold", "Held.", "hold execution"},
		{"Let it go on…", "", "", "Let it go on", "It goes on.", "unhold execution"},
		{"Change tags…", "Key", "desk.name", "Change", "Changed.", "set tags execution"},
	} {
		menu("executions/"+waits, "Actions", x.item)
		if x.field != "" {
			b.fill(x.field, x.value)
		}
		if x.field == "Key" {
			b.fill("Value", "audio")
		}
		confirm(x.noted, x.button, x.told)
	}

	open := flow.New("pictures", flow.Unsealed())
	flow.Add(open, "only", scene.Never, "one.wav", flowfabric.Lane("audio"))
	f, err := client.SubmitFlow(ctx, d.client, open)
	must.No(t, err)
	menu("flows/"+f.ID().String(), "Actions", "Seal…")
	confirm("seal flow", "Seal", "Sealed.")
	menu("flows/"+f.ID().String(), "Actions", "Cancel…")
	confirm("cancel flow", "Cancel the flow", "The flow is cancelled.")
	if s, err := f.Wait(ctx); err != nil || s.State != flowfabric.FlowCancelled ||
		s.Reason != "because of cancel flow" {
		t.Errorf("%+v, %v", s, err)
	}

	for _, x := range []struct{ item, field, value, button, told string }{
		{"Drain…", "", "", "Drain", "Lane audio is draining."}, {"Close…", "", "", "Close", "Lane audio is closed."},
		{"Open…", "", "", "Open", "Lane audio is open."},
		{"Weight…", "Weight", "7", "Set it", "The weight is set."},
	} {
		menu("queues", "Change", x.item)
		if x.field != "" {
			b.fill(x.field, x.value)
		}
		confirm("set lane", x.button, x.told)
	}
	if lanes, err := d.admin.Lanes(ctx, ""); err != nil || lanes[0].Weight != 7 || lanes[0].State != "active" {
		t.Errorf("%+v, %v", lanes[0], err)
	}
	menu("schedules", "Change", "Pause…")
	confirm("pause schedule", "Pause", "Paused.")
	menu("schedules", "Change", "Let it go on…")
	confirm("resume schedule", "Let it go on:", "It goes on.")
	menu("schedules", "Change", "Remove…")
	confirm("remove schedule", "Remove", "Removed.")
	menu("schedules", "New schedule", "")
	for label, value := range map[string]string{"Name": "yearly", "Kind": "resize-image", "Cron": "0 0 1 1 *",
		"Input": `"x.png"`} {
		b.fill(label, value)
	}
	confirm("put schedule", "Save", "The schedule is saved.")

	menu("gates", "Change", "Edit…")
	b.fill("Definition", `{"limits":{"tokens":{"hard":5}},"on_hard":"reject"}`)
	confirm("update gate", "Save", "Saved.")
	if x, err := d.admin.GetGate(ctx, "llm-tokens"); err != nil || x.Limits["tokens"].Hard != 5 {
		t.Errorf("%+v, %v", x, err)
	}
	menu("gates", "Change", "Reset…")
	confirm("reset gate", "Reset", "A new period has begun.")
	menu("gates", "Change", "Remove…")
	confirm("remove gate", "Remove", "Removed.")
	menu("gates", "New gate", "")
	b.fill("Name", "euros")
	confirm("create gate", "Save", "Saved.")
	b.visit("gates")
	b.press("New gate")
	b.fill("Name", "gpu")
	b.fill("Definition", `{"concurrency":10}`)
	confirm("create gate", "Save", "Saved.")
	menu("gates", "Change", "Remove…") // so that gpu is the first gate, which counts no amounts
	confirm("remove gate", "Remove", "Removed.")
	b.wait(`!document.querySelector("main").innerText.includes("euros")`)
	menu("gates", "Change", "Edit…")
	b.fill("Definition", `{"concurrency":3}`)
	confirm("update gate", "Save", "Saved.")
	if x, err := d.admin.GetGate(ctx, "gpu"); err != nil || x.Concurrency != 3 || x.CountsAmounts() {
		t.Errorf("%+v, %v", x, err)
	}
	menu("gates", "Change", "Remove…")
	confirm("remove gate", "Remove", "Removed.")
	menu("gates", "New service", "")
	b.fill("Name", "openai/gpt-5")
	b.fill("Tokens a minute", "60000")
	b.fill("Calls at once", "20")
	confirm("create gate", "Save", "Saved.")
	b.wait(`document.querySelector("main").innerText.includes("60,000 a minute")`)
	if x, err := d.admin.GetGate(ctx, "openai/gpt-5"); err != nil || x.Service == nil || x.Service.Calls != 20 ||
		x.Service.PerMinute["tokens"] != 60000 || x.State == nil {
		t.Errorf("%+v, %v", x, err)
	}
	menu("gates", "Change", "What happened…")
	b.wait(`document.querySelector("dialog").innerText.includes("created")`)
	b.press("Close")
	menu("gates", "Change", "Remove…")
	confirm("remove gate", "Remove", "Removed.")
	menu("health", "Rotate…", "")
	b.fill("Key", "k2")
	b.press("Rotate")
	b.wait(`document.querySelector("dialog .notice")`) // this process does not have that key
	b.fill("Key", "k1")
	b.fill("Reason", "because of a key")
	b.press("Rotate")
	b.says("Rotated.") // it was the key before, so that nothing changed

	bulk := func(where, action string, count int, field, value, noted string) {
		t.Helper()
		b.visit("executions?" + where)
		b.press("All that match")
		b.press(action + "…")
		if field != "" {
			b.fill(field, value)
		}
		b.fill("Reason", "because of "+noted)
		b.press(fmt.Sprintf("%s %d", action, count))
		b.says("done")
		b.press("Close")
		said = append(said, noted+": because of "+noted)
	}
	bulk("kind=transcribe-audio&state=waiting", "Hold", 7, "", "", "hold executions")
	bulk("kind=transcribe-audio&state=held", "Let go on", 8, "", "", "unhold executions") // and the one that anna held
	bulk("kind=transcribe-audio&state=waiting", "Set the priority", 8, "Priority", "9", "set priority executions")
	bulk("kind=write-article&state=delayed", "Run now", 1, "", "", "run now executions")
	bulk("kind=transcribe-audio&state=waiting", "Cancel", 8, "", "", "cancel executions")
	bulk("kind=narrate&state=cancelled", "Replay", 1, "", "", "replay executions")
	bulk("kind=send-invoice&state=failed", "Purge", 2, "", "", "purge executions")
	_, answer := d.ask("viewer", "GET", "trail?limit=1000", nil)
	items, _ := answer["items"].([]any)
	var trail []string
	for _, x := range items {
		entry, _ := x.(map[string]any)
		if entry["by"] == "admin" {
			trail = append(trail, fmt.Sprintf("%v %v: %v", entry["action"], entry["on"], entry["why"]))
		}
	}
	for _, want := range said {
		if !slices.Contains(trail, want) {
			t.Errorf("the audit trail has no %q:\n%s", want, strings.Join(trail, "\n"))
		}
	}
	b.quiet(asked401, "status of 4") // what was refused on purpose
}
