package httpapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// logged is "attempt level message attributes" of lines.
func logged(list []stream.LogLine) string {
	var out []string
	for _, x := range list {
		text := fmt.Sprintf("%d %s %s %s", x.Attempt, x.Level, x.Message, x.Attributes)
		if x.Dropped > 0 {
			text = fmt.Sprintf("(%d) ", x.Dropped) + text
		}
		out = append(out, strings.TrimSpace(text))
	}
	return strings.Join(out, "\n")
}

// jobLogs has a worker over HTTP log, and reads that in every way.
func (a *api) jobLogs() {
	t := a.t
	r := a.remote("worker", "logs")
	path := a.submit(`{"kind":"logs"}`)
	x := r.one()
	r.call("log", x.Lease, `"first":1,"lines":[{"at":"2026-01-02T03:04:05.678Z","level":"debug","message":"a"},
		{"message":"b<","attributes":{"n":1,"g.x":"<"}}]`, 204)
	r.call("log", x.Lease, `"first":1,"lines":[{"message":"again"}]`, 204)
	var following conc.WaitGroup
	var live []sse
	seen := make(chan struct{})
	following.Go(func() {
		live, _ = a.follow(path+"/logs/events?level=info", nil, func(e sse) bool {
			if strings.Contains(e.text, `"b\u003c"`) {
				close(seen)
			}
			return false
		})
	})
	<-seen
	r.call("log", x.Lease, `"first":3,"dropped":4,"lines":[{"level":"error","message":"c"}]`, 204)
	r.call("complete", x.Lease, "", 200)
	following.Wait()
	want := "1 info b< " + `{"g.x":"\u003c","n":1}` + "\n(4) 1 error c"
	var told []stream.LogLine
	for _, e := range live {
		var line stream.LogLine
		must.No(t, json.Unmarshal([]byte(e.text), &line))
		if told = append(told, line); e.name != "line" || e.id != line.Cursor {
			t.Errorf("%+v", e)
		}
	}
	if got := logged(told); got != want {
		t.Errorf("live: %s, want %s", got, want)
	}
	all := into[logPage](t, a.as("viewer", "GET", path+"/logs", "", 200))
	if got := logged(all.Items); got != "1 debug a\n"+want || all.Cursor != "" ||
		all.Items[0].At.Format("15:04:05.000") != "03:04:05.678" {
		t.Errorf("%s %+v", got, all)
	}
	one := into[logPage](t, a.as("viewer", "GET", path+"/logs?limit=2&attempt=1", "", 200))
	rest := into[logPage](t, a.as("viewer", "GET", path+"/logs?cursor="+one.Cursor, "", 200))
	if got := logged(append(one.Items, rest.Items...)); got != logged(all.Items) || len(one.Items) != 2 {
		t.Errorf("in pages: %s", got)
	}
	last := all.Items[2].Cursor
	if _, status := a.follow(path+"/logs/events", http.Header{"Last-Event-ID": {last}}, nil); status != 204 {
		t.Errorf("behind the end: %d", status)
	}
	for query, field := range map[string]string{"level=loud": "level", "attempt=0": "attempt", "limit=0": "limit"} {
		if g := a.as("viewer", "GET", path+"/logs?"+query, "", 400); !strings.Contains(string(g.body), field) {
			t.Errorf("%s: %s", query, g.body)
		}
	}
	a.as("viewer", "GET", path+"/logs?cursor=x", "", 400)
	a.as("viewer", "GET", path+"/logs/events?level=loud", "", 400)
	r.call("close", "", "", 204)
}

// Lines of a worker over HTTP are bounded, and only the holder of the lease stores any.
func TestRemoteLogs(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "logs")
	path := a.submit(`{"kind":"logs"}`)
	x := r.one()
	for members, field := range map[string]string{`"lines":[{"message":"x"}]`: "/first", `"first":1`: "/lines",
		`"first":1,"lines":[{"level":"loud"}]`:                     "/lines/0/level",
		`"first":1,"lines":[{"at":"1960-01-01T00:00:00Z"}]`:        "/lines/0/at",
		`"first":1,"dropped":-1,"lines":[{"message":"x"}]`:         "/dropped",
		`"first":1,"lines":[` + strings.Repeat(`{},`, 100) + `{}]`: "/lines"} {
		if g := r.call("log", x.Lease, members, 400); !strings.Contains(string(g.body), `"field":"`+field+`"`) {
			t.Errorf("%.60s: %s", members, g.body)
		}
	}
	r.call("log", x.Lease, `"first":1,"lines":[{"message":"`+strings.Repeat("x", 100000)+`"}]`, 204)
	r.call("complete", x.Lease, "", 200)
	r.call("log", x.Lease, `"first":2,"lines":[{"message":"late"}]`, 409)
	page := into[logPage](t, a.as("viewer", "GET", path+"/logs", "", 200))
	if len(page.Items) != 1 || len(page.Items[0].Message) > 8<<10 || !strings.HasSuffix(page.Items[0].Message, "…") {
		t.Errorf("%+v", page)
	}
}

// Who may not see payloads sees when something was logged, and its level.
func TestWithheldLogs(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "logs")
	path := a.submit(`{"kind":"logs"}`)
	x := r.one()
	r.call("log", x.Lease, `"first":1,"lines":[{"level":"warn","message":"`+sesame+`","attributes":{"a":1}}]`, 204)
	r.call("complete", x.Lease, "", 200)
	a.server.Config.Handler = a.with(func(Redaction) []byte { return nil })
	g := a.as("viewer", "GET", path+"/logs", "", 200)
	if page := into[logPage](t, g); tells(g.body) || logged(page.Items) != "1 warn" ||
		page.Items[0].At.IsZero() {
		t.Errorf("%s", g.body)
	}
	a.server.Config.Handler = a.with(func(Redaction) []byte { return []byte("some text") })
	page := into[logPage](t, a.as("viewer", "GET", path+"/logs", "", 200))
	if got := logged(page.Items); got != "1 warn some text" {
		t.Error(got)
	}
}
