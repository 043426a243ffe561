package httpapi

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
)

// Of two namespaces that put a schedule of one name at the same time one gets it, and the other is refused.
func TestScheduleOfTwoNamespaces(t *testing.T) {
	a := newAPI(t)
	for i := range 60 {
		status := map[string]int{}
		var mu sync.Mutex
		var both sync.WaitGroup
		for _, who := range []string{"blue", "red"} {
			both.Go(func() {
				r, err := http.NewRequestWithContext(t.Context(), "PUT", a.server.URL+fmt.Sprintf("/v1/schedules/s%d",
					i), strings.NewReader(`{"every_ms":3600000,"kind":"echo"}`))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+secrets[who])
				r.Header.Set("Content-Type", "application/json")
				answer, err := http.DefaultClient.Do(r)
				if err != nil {
					t.Error(err)
					return
				}
				answer.Body.Close()
				mu.Lock()
				defer mu.Unlock()
				status[who] = answer.StatusCode
			})
		}
		both.Wait()
		if status["blue"]+status["red"] != http.StatusOK+http.StatusConflict {
			t.Fatalf("%v, want that one is refused", status)
		}
	}
}

// A schedule that became another namespace's after a request has looked at it stays as it is, whatever the request
// wanted to do with it.
func TestScheduleOfAnotherNamespaceMeanwhile(t *testing.T) {
	a := newAPI(t)
	gate := newGate(t, a.store.URL())
	c, err := client.Connect(t.Context(), client.Config{CallTimeout: time.Hour, URL: gate.url,
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	h, err := New(Config{Admin: admin.New(c), Authorize: a.h.cfg.Authorize, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	const every = `{"every_ms":3600000,"kind":"echo"}`
	const reds = `{"every_ms":3600000,"kind":"echo","namespace":"red"}`
	for i, x := range []struct {
		method, action, body, function string
		want                           int
	}{
		{"POST", ":pause", "", "ff_pause_schedule", http.StatusNotFound},
		{"POST", ":resume", "", "ff_pause_schedule", http.StatusNotFound},
		{"DELETE", "", "", "ff_remove_schedule", http.StatusNotFound},
		{"PUT", "", `{"every_ms":60000,"kind":"echo"}`, "ff_put_schedule", http.StatusConflict},
	} {
		for _, remade := range []bool{true, false} {
			path := fmt.Sprintf("/v1/schedules/s%d-%v", i, remade)
			a.as("blue", "PUT", path, every, http.StatusOK)
			gate.hold(x.function)
			w := httptest.NewRecorder()
			var asking conc.WaitGroup
			answered := make(chan struct{})
			asking.Go(func() {
				defer close(answered)
				r := httptest.NewRequestWithContext(t.Context(), x.method, path+x.action, strings.NewReader(x.body))
				r.Header.Set("Authorization", "Bearer "+secrets["blue"])
				r.Header.Set("Content-Type", "application/json")
				h.ServeHTTP(w, r)
			})
			select {
			case <-gate.reached:
			case <-answered:
				t.Fatalf("%s %s: it was answered %d without a call of %s", x.method, path, w.Code, x.function)
			}
			if remade {
				a.as("operator", "DELETE", path, "", http.StatusNoContent)
			}
			a.as("operator", "PUT", path, reds, http.StatusOK)
			if x.action == ":resume" {
				a.as("red", "POST", path+":pause", "", http.StatusNoContent)
			}
			before := string(a.as("red", "GET", path, "", http.StatusOK).body)
			gate.open <- struct{}{}
			asking.Wait()
			if w.Code != x.want {
				t.Errorf("%s %s%s: %d, want %d: %s", x.method, path, x.action, w.Code, x.want, w.Body)
			}
			if after := a.do(request{method: "GET", path: path, role: "red"}); string(after.body) != before {
				t.Errorf("%s %s%s changed\n%s into\n%s", x.method, path, x.action, before, after.body)
			}
		}
	}
}

// gate stands in front of a store, and can keep the next call of a function from it.
type gate struct {
	url           string
	mu            sync.Mutex
	function      []byte // the one that is held; nil: none
	reached, open chan struct{}
}

func newGate(t *testing.T, store string) *gate {
	t.Helper()
	at, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	behind := at.Host
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at.Host = l.Addr().String()
	g := &gate{url: at.String(), reached: make(chan struct{}), open: make(chan struct{})}
	var running conc.WaitGroup
	t.Cleanup(running.Wait)
	t.Cleanup(func() { l.Close() })
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", behind)
			if err != nil {
				from.Close()
				continue
			}
			pass := func(in, out net.Conn, held bool) {
				defer in.Close()
				defer out.Close()
				text := make([]byte, 64<<10)
				for {
					n, err := in.Read(text)
					if err != nil {
						return
					}
					if held {
						g.wait(text[:n])
					}
					if _, err := out.Write(text[:n]); err != nil {
						return
					}
				}
			}
			running.Go(func() { pass(from, to, true) })
			running.Go(func() { pass(to, from, false) })
		}
	})
	return g
}

// hold keeps the next call of a function: it comes to reached, and goes on after open.
func (g *gate) hold(function string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.function = []byte(function)
}

func (g *gate) wait(text []byte) {
	g.mu.Lock()
	held := g.function != nil && bytes.Contains(text, g.function)
	if held {
		g.function = nil
	}
	g.mu.Unlock()
	if held {
		g.reached <- struct{}{}
		<-g.open
	}
}
