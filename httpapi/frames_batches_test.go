package httpapi

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/stream"
)

func oneBatch(lease string, first int, frames string) string {
	return fmt.Sprintf(`{"lease":%q,"first":%d,"frames":[%s]}`, lease, first, frames)
}

// Frames of several executions go in one call, each batch on its own, and a repeat adds nothing.
func TestFramesOfSeveral(t *testing.T) {
	a := newAPI(t)
	r, stranger := a.remote("worker", "remote"), a.remote("worker", "remote")
	for range 5 {
		a.submit(`{"kind":"remote"}`)
	}
	x := r.take(4)
	foreign := stranger.one()
	a.as("producer", "POST", "/v1/executions/"+x[2].ID+":cancel", `{}`, 204)
	all := `"batches":[` + strings.Join([]string{oneBatch(x[0].Lease, 1, `{"text":"one"},{"text":" two"}`),
		oneBatch(x[1].Lease, 1, `{"text":"eins"}`), oneBatch(x[2].Lease, 1, `{"text":"never"}`),
		oneBatch(x[3].Lease, 7, `{"text":"gap"}`), oneBatch(foreign.Lease, 1, `{"text":"not mine"}`)}, ",") + "]"
	for range 2 {
		g := into[framesAnswer](t, r.call("frames", "", all, 200))
		want := []batchFrames{{x[0].Lease, true, 2, ""}, {x[1].Lease, true, 1, ""},
			{x[2].Lease, false, 0, "stale_lease"}, {x[3].Lease, true, 0, "frame_sequence_gap"},
			{foreign.Lease, false, 0, "stale_lease"}}
		if len(g.Batches) != len(want) || g.LastSequence != 0 {
			t.Fatalf("%+v", g)
		}
		for i, b := range g.Batches {
			if b != want[i] {
				t.Errorf("%d: %+v, want %+v", i, b, want[i])
			}
		}
	}
	overlap := oneBatch(x[0].Lease, 2, `{"text":" two"},{"text":" three"}`)
	more := into[framesAnswer](t, r.call("frames", "", `"batches":[`+overlap+"]", 200))
	if more.Batches[0].LastSequence != 3 {
		t.Errorf("%+v", more)
	}
	for i, want := range []string{"one two three", "eins", "", ""} {
		if tr := into[transcript](t, a.as("viewer", "GET", "/v1/executions/"+x[i].ID+"/transcript", "",
			200)); tr.Text != want {
			t.Errorf("%d: %q, want %q", i, tr.Text, want)
		}
	}
	own := oneBatch(x[0].Lease, 4, `{"type":"flowfabric.child","text":"x"}`)
	good := oneBatch(x[1].Lease, 2, `{"text":"zwei"}`)
	for field, members := range map[string]string{
		"/batches":                 `"batches":[]`,
		"/batches/1/lease":         `"batches":[` + good + "," + oneBatch("nonsense", 1, `{"text":"x"}`) + "]",
		"/batches/1/first":         `"batches":[` + good + "," + oneBatch(x[0].Lease, 0, `{"text":"x"}`) + "]",
		"/batches/1/frames":        `"batches":[` + good + "," + oneBatch(x[0].Lease, 4, ``) + "]",
		"/batches/1/frames/0":      `"batches":[` + good + "," + oneBatch(x[0].Lease, 4, `{"text":"x","json":1}`) + "]",
		"/batches/1/frames/0/type": `"batches":[` + good + "," + own + "]",
		"/batches/0/frames/0/more": `"batches":[` + oneBatch(x[0].Lease, 4, `{"text":"x","more":1}`) + "]",
		"/frames":                  `"lease":"` + x[0].Lease + `","first":4`,
	} {
		if p := into[problem](t, r.call("frames", "", members, 400)); p.Field != field {
			t.Errorf("%s: %+v", field, p)
		}
	}
	for _, members := range []string{`"batches":[` + good + "," + good + "]",
		`"first":1,"batches":[` + good + "]", `"batches":[` + strings.Repeat(good+",", 100) + good + "]"} {
		r.call("frames", "", members, 400)
	}
	none := into[problem](t, r.call("frames", "", `"first":1,"frames":[{"text":"x"}]`, 400))
	if none.Code != "fence_required" {
		t.Errorf("%+v", none)
	}
	if tr := into[transcript](t, a.as("viewer", "GET", "/v1/executions/"+x[1].ID+"/transcript", "",
		200)); tr.Text != "eins" {
		t.Errorf("a body that was refused has added to %q", tr.Text)
	}
}

// A worker in another language can say all that an agent in Go says: its frames come out as they went in.
func TestFramesOfAgents(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	x := r.one()
	r.call("frames", x.Lease, `"first":1,"frames":[
		{"type":"reasoning","text":"hm"},
		{"type":"call","json":{"id":"c1","name":"search"},"source":"gpt"},
		{"type":"arguments","text":"{\"q\":","correlation":"c1"},
		{"type":"arguments","text":"\"é😀\"}","correlation":"c1"},
		{"type":"message","json":{"role":"assistant","id":"m 7","parts":[{"type":"text","text":"x"}]}},
		{"type":"usage","json":{"turn":1,"usage":{"input":12345678901234567890}}},
		{"type":"result","json":{"id":"c1","text":"found"},"live_ms":60000}]`, 200)
	r.call("complete", x.Lease, "", 200)
	var got []string
	events, _ := a.follow(path+"/events", nil, func(e sse) bool { return e.name == "end" })
	for _, e := range events {
		f := e.data.Frame
		if e.name != "frame" {
			continue
		}
		got = append(got, strings.Join([]string{f.Type, f.Correlation, f.Source, string(f.Payload)}, "|"))
		if beside := f.Mode == stream.ModeBestEffort; beside != (f.Type == "result") {
			t.Errorf("%s is %v", f.Type, f.Mode)
		}
	}
	want := []string{"reasoning|||hm", `call||gpt|{"id":"c1","name":"search"}`, `arguments|c1||{"q":`,
		`arguments|c1||"é😀"}`,
		`message|||{"role":"assistant","id":"m 7","parts":[{"type":"text","text":"x"}]}`,
		`usage|||{"turn":1,"usage":{"input":12345678901234567890}}`, `result|||{"id":"c1","text":"found"}`}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Whoever sends a message names it; the worker gets the name with the message, and again in every run.
func TestNamesOfMessages(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	a.as("producer", "POST", path+"/messages", `{"mailbox":"user","payload":{"id":"mine-1","text":"hello"}}`, 200)
	x := r.one()
	g := into[receiveAnswer](t, r.call("receive", x.Lease, `"mailbox":"user","number":1`, 200))
	if len(g.Messages) != 1 || string(g.Messages[0].Payload) != `{"id":"mine-1","text":"hello"}` {
		t.Fatalf("%+v", g)
	}
	r.call("release", x.Lease, "", 200)
	x = r.one()
	if m := x.Receipts["user"]["1"].Messages; len(m) != 1 || m[0].Number != g.Messages[0].Number ||
		string(m[0].Payload) != string(g.Messages[0].Payload) {
		t.Errorf("%+v, want %+v", m, g.Messages)
	}
}
