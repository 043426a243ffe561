package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// The throughput of a picture: what ended in the window before it, by route and in sum, failures apart.
func TestTopRates(t *testing.T) {
	w := newEnv(t, testserver.Embedded(t))
	id, err := flowfabric.ParseExecutionID(w.names["failed"])
	must.No(t, err)
	last, err := w.client.Execution(id).Get(w.ctx)
	must.No(t, err)
	same := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	s := w.topSource(w.url)
	rates, _, err := recent(w.ctx, s, last.EndedAt.Add(rateWindow))
	failed := rates[routeOf("default", "default", "broken")]
	if err != nil || !same(failed.ended, 0.1) || !same(failed.failed, 0.1) || !same(rates[""].failed, 0.1) {
		t.Errorf("the failed one is just within the window: %+v, %v", rates, err)
	}
	rates, _, err = recent(w.ctx, s, last.EndedAt.Add(rateWindow+time.Millisecond))
	if err != nil || len(rates) != 0 {
		t.Errorf("all of it is too old: %+v, %v", rates, err)
	}
}

// topSource is where top looks and acts, with the URL of a store or of a process that serves it.
func (w *env) topSource(url string) topSource {
	w.Helper()
	a := &app{url: url, namespace: "default", timeout: time.Hour, err: io.Discard}
	d, err := a.door(w.ctx, mustExist)
	must.No(w, err)
	w.Cleanup(d.close)
	return topSource{door: d}
}

// A person chooses rows by keys. Nothing happens before a question is answered with y, and then exactly that does.
func TestTopActs(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	w.topActs(t, w.topSource(w.url))
}

// The same is shown and done over the API of a process that serves.
func TestTopActsOverHTTP(t *testing.T) {
	w := newEnv(t, testserver.Redis(t))
	api, err := httpapi.New(httpapi.Config{Admin: admin.New(w.client), Authorize: httpapi.Open,
		Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer api.Close()
	server := httptest.NewServer(api)
	defer server.Close()
	_, here, _ := w.run("top --once --json", "")
	t.Setenv("FLOWFABRIC_URL", server.URL)
	t.Setenv("FLOWFABRIC_BY", "")
	code, there, why := w.run("top --once --json", "")
	var one, two topView
	must.No(t, errors.Join(json.Unmarshal([]byte(here), &one), json.Unmarshal([]byte(there), &two)))
	if code != exitOK || one.Waiting != two.Waiting || one.Stored != two.Stored || one.Ended != two.Ended ||
		one.Workers != two.Workers || len(one.Queues) != len(two.Queues) || len(two.Queues) == 0 {
		t.Errorf("exit %d: %s\nof the store:\n%s\nover HTTP:\n%s", code, why, here, there)
	}
	w.topActs(t, w.topSource(server.URL))
}

func (w *env) topActs(t *testing.T, s topSource) {
	acts := &topActs{app: &app{timeout: time.Hour}, source: s}
	look := func() {
		t.Helper()
		v, err := sample(w.ctx, s, admin.Overview{})
		must.No(t, errors.Join(err, acts.look(w.ctx, v.Queues)))
	}
	press := func(keys string) {
		t.Helper()
		told := make(chan byte)
		ctx, stop := context.WithCancel(w.ctx)
		var reading conc.WaitGroup
		reading.Go(func() { readKeys(ctx, strings.NewReader(keys), told) })
		for range strings.ReplaceAll(keys, "\x1b[B", "j") {
			if acts.key(w.ctx, <-told) {
				t.Errorf("%q ends top", keys)
			}
		}
		stop()
		reading.Wait()
	}
	to := func(name string) {
		t.Helper()
		look()
		for acts.row = len(acts.queues); acts.listed[acts.row-len(acts.queues)].ID.String() != w.names[name]; {
			press("\x1b[B")
		}
	}
	state := func(name string) flowfabric.PublicState {
		t.Helper()
		id, err := flowfabric.ParseExecutionID(w.names[name])
		must.No(t, err)
		s, err := w.client.Execution(id).Get(w.ctx)
		must.No(t, err)
		return s.State.Public
	}
	to("failed")
	press("rn")
	if s := state("failed"); s != flowfabric.Failed || acts.said != "nothing was changed" {
		t.Errorf("after no: %s, %s", s, acts.said)
	}
	press("r")
	p := &page{}
	if acts.text(p); !strings.Contains(p.String(), "replay "+w.names["failed"]+"? y") {
		t.Errorf("the question is not shown: %s", p)
	}
	press("y")
	if s := state("failed"); s != flowfabric.Waiting {
		t.Errorf("replayed it is %s: %s", s, acts.said)
	}
	to("held")
	press("cy")
	if s := state("held"); s != flowfabric.Cancelled || !strings.HasPrefix(acts.said, "done") {
		t.Errorf("cancelled it is %s: %s", s, acts.said)
	}
	for _, want := range []flowfabric.LaneState{flowfabric.LanePaused, flowfabric.LaneActive} {
		look()
		acts.row = slices.IndexFunc(acts.queues, func(q topQueue) bool { return q.Lane == "batch" })
		press("py")
		look()
		if is := acts.queues[acts.row].State; is != want {
			t.Errorf("the lane is %s, want %s: %s", is, want, acts.said)
		}
	}
	if !acts.key(w.ctx, 'q') {
		t.Error("q does not end top")
	}
}
