package httpapi

import (
	"bufio"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// crowd are readers of the same path.
type crowd struct {
	group         conc.WaitGroup
	texts         []string // ids and data that each got, however they were cut into arrays
	first, second sync.WaitGroup
}

// gather starts readers of a path, whose crowd knows when all of them have had the first and the second frame.
func (a *api) gather(n int, path string) *crowd {
	a.t.Helper()
	ctx, cancel := testwait.Context(a.t, a.t.Context())
	a.t.Cleanup(cancel)
	c := &crowd{texts: make([]string, n)}
	c.first.Add(n)
	c.second.Add(n)
	for i := range n {
		c.group.Go(func() {
			first, second := sync.OnceFunc(c.first.Done), sync.OnceFunc(c.second.Done)
			defer first()
			defer second()
			r, err := http.NewRequestWithContext(ctx, "GET", a.server.URL+path, nil)
			if err != nil {
				a.t.Error(err)
				return
			}
			r.Header.Set("Authorization", "Bearer "+secrets["viewer"])
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				a.t.Error(err)
				return
			}
			defer answer.Body.Close()
			var text strings.Builder
			lines := bufio.NewScanner(answer.Body)
			for lines.Scan() {
				line := lines.Text()
				if strings.HasPrefix(line, "id: ") || strings.HasPrefix(line, "data: {") || strings.HasPrefix(line,
					"data:[") {
					text.WriteString(line + "\n")
				}
				if strings.Contains(line, `"first"`) {
					first()
				}
				if strings.Contains(line, `"second"`) {
					second()
				}
			}
			if err := lines.Err(); err != nil {
				a.t.Error(err)
			}
			c.texts[i] = strings.ReplaceAll(text.String(), "]\ndata:[", ",")
		})
	}
	return c
}

// A frame is encoded once for all who follow live, whichever door they came through, and all are told the same as
// somebody who reads it later.
func TestAFrameIsEncodedOnceForAllReaders(t *testing.T) {
	const readers, frames = 100, 200
	a := newAPI(t)
	begin := make(chan struct{})
	kind := handler.Define[int, string]("bursts")
	w, err := runtime.New(runtime.Config{URL: a.store.URL(), Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(kind, func(ctx context.Context, t *handler.Task, n int) (string, error) {
			for _, word := range []string{"first", "second"} {
				if err := t.Frame(ctx, "token", word); err != nil {
					return "", err
				}
				select {
				case <-begin:
				case <-ctx.Done():
					return "", context.Cause(ctx)
				}
			}
			for range n {
				if err := t.Frame(ctx, "token", strings.Repeat("word ", 20)); err != nil {
					return "", err
				}
			}
			return "", nil
		}))
	must.No(t, err)
	ctx, stop := context.WithCancel(t.Context())
	var running conc.WaitGroup
	running.Go(func() { _ = w.Run(ctx) })
	defer running.Wait()
	defer stop()

	var sent, streamed atomic.Int64
	write := a.h.written
	a.h.written = func(e stream.TailEvent) []byte {
		if e.Kind == stream.TailFrame {
			sent.Add(1)
		}
		return write(e)
	}
	json := views["json"]
	defer func() { views["json"] = json }()
	counting := json
	counting.of = func(e stream.TailEvent) []byte {
		if e.Kind == stream.TailFrame {
			streamed.Add(1)
		}
		return json.of(e)
	}
	views["json"] = counting

	path := a.submit(`{"kind":"bursts","input":200}`)
	doors := map[string]*crowd{}
	for _, door := range []string{"/events", "/stream?as=json&offset=-1&live=sse"} {
		doors[door] = a.gather(readers, path+door)
	}
	for _, c := range doors {
		c.first.Wait()
	}
	begin <- struct{}{}
	for _, c := range doors { // who has had that follows live
		c.second.Wait()
	}
	sent.Store(0)
	streamed.Store(0)
	begin <- struct{}{}
	for _, c := range doors {
		c.group.Wait()
	}
	if got := sent.Load(); got != frames {
		t.Errorf("%d frames were encoded %d times for %d readers", frames, got, readers)
	}
	if got := streamed.Load(); got != frames {
		t.Errorf("%d frames were encoded %d times for %d readers of a durable stream", frames, got, readers)
	}
	for door, c := range doors {
		later := a.gather(1, path+door)
		later.group.Wait()
		want := later.texts[0]
		if n := strings.Count(want, strings.Repeat("word ", 20)); n != frames {
			t.Fatalf("%s: who reads later got %d frames: %.2000s", door, n, want)
		}
		for i, got := range c.texts {
			if got != want {
				t.Fatalf("%s: reader %d got\n%.2000s\nwant\n%.2000s", door, i, got, want)
			}
		}
	}
}
