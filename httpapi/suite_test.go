package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testnode"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

// desk writes streams as the suite tells it: each is an execution, whose handler appends what is posted.
type desk struct {
	a    *api
	mu   sync.Mutex
	pens map[string]*pen // by path
	work map[flowfabric.ExecutionID]*pen
}

type pen struct {
	id     flowfabric.ExecutionID
	media  string
	closed bool
	orders chan order
	mu     sync.Mutex // one writer at a time
}

type order struct {
	frames []stream.Frame
	last   bool
	done   chan error
}

// hold is the handler.
func (d *desk) hold(ctx context.Context, t *handler.Task, _ string) (string, error) {
	d.mu.Lock()
	p := d.work[t.ID()]
	d.mu.Unlock()
	if p == nil {
		return "", handler.Permanent(errors.New("nobody writes here"))
	}
	for {
		select {
		case <-ctx.Done():
			return "", context.Cause(ctx)
		case o := <-p.orders:
			var err error
			for _, f := range o.frames {
				err = errors.Join(err, t.FrameBytes(ctx, f))
			}
			o.done <- errors.Join(err, t.Flush(ctx))
			if o.last {
				return "", nil
			}
		}
	}
}

// order has the handler append frames, and end the stream.
func (d *desk) order(p *pen, frames []stream.Frame, last bool) error {
	o := order{frames, last, make(chan error, 1)}
	p.orders <- o
	if err := <-o.done; err != nil || !last {
		return err
	}
	p.closed = true
	_, err := client.Attach(d.a.client, penKind, p.id).Result(d.a.t.Context())
	return err
}

var viewOf = map[string]string{"text/plain": "text", "application/json": "json"}

// framesOf are what a body becomes: messages of JSON, text, or bytes; each has at most 64 KiB.
func framesOf(media string, body []byte) ([]stream.Frame, bool) {
	var out []stream.Frame
	if len(body) == 0 {
		return nil, true
	}
	if viewOf[media] == "json" {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil {
			if !json.Valid(body) {
				return nil, false
			}
			list = []json.RawMessage{body}
		}
		for _, m := range list {
			out = append(out, stream.Frame{Type: "item", Encoding: stream.JSON, Payload: m})
		}
		return out, true
	}
	encoding := stream.Bytes
	if viewOf[media] == "text" {
		encoding = stream.UTF8
	}
	for len(body) > 0 {
		n := min(len(body), 64<<10)
		for encoding == stream.UTF8 && n < len(body) && !utf8.RuneStart(body[n]) {
			n--
		}
		out, body = append(out, stream.Frame{Type: "piece", Encoding: encoding, Payload: body[:n]}), body[n:]
	}
	return out, true
}

func (d *desk) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	d.mu.Lock()
	p := d.pens[q.URL.Path]
	d.mu.Unlock()
	body, _ := io.ReadAll(q.Body)
	media, _, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	last := strings.EqualFold(q.Header.Get("Stream-Closed"), "true")
	switch {
	case q.Method == http.MethodPut && p != nil:
		if status := http.StatusOK; p.media == media && p.closed == last {
			d.answer(w, p, status)
			return
		}
		w.WriteHeader(http.StatusConflict)
	case q.Method == http.MethodPut:
		frames, ok := framesOf(media, body)
		if !ok {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		p, err := d.open(q.URL.Path, media)
		if err == nil {
			err = d.order(p, frames, last)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Location", "http://"+q.Host+q.URL.Path)
		d.answer(w, p, http.StatusCreated)
	case p == nil && (q.Method == http.MethodPost || q.Method == http.MethodDelete):
		w.WriteHeader(http.StatusNotFound)
	case q.Method == http.MethodPost:
		p.mu.Lock()
		defer p.mu.Unlock()
		frames, ok := framesOf(p.media, body)
		switch {
		case p.closed && last && len(body) == 0:
			d.answer(w, p, http.StatusNoContent)
		case p.closed:
			d.answer(w, p, http.StatusConflict)
		case len(body) == 0 && !last || !ok || len(frames) == 0 && len(body) > 0 || len(body) > 0 && media == "":
			w.WriteHeader(http.StatusBadRequest)
		case len(body) > 0 && media != p.media:
			w.WriteHeader(http.StatusConflict)
		default:
			if err := d.order(p, frames, last); err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			d.answer(w, p, http.StatusNoContent)
		}
	case q.Method == http.MethodDelete:
		d.mu.Lock()
		delete(d.pens, q.URL.Path)
		d.mu.Unlock()
		_ = d.a.client.Execution(p.id).Cancel(q.Context())
		w.WriteHeader(http.StatusNoContent)
	default: // what is tested
		id, as := mint.ID(0), "text"
		if p != nil {
			id, as = p.id, viewName(p.media)
		}
		q.URL.Path = "/v1/executions/" + id.String() + "/stream"
		q.URL.RawQuery = strings.Trim(q.URL.RawQuery+"&as="+as, "&")
		q.Header.Set("Authorization", "Bearer "+secrets["viewer"])
		d.a.h.ServeHTTP(w, q)
	}
}

func viewName(media string) string {
	if name := viewOf[media]; name != "" {
		return name
	}
	return "bytes"
}

// open makes a stream: an execution that runs.
func (d *desk) open(path, media string) (*pen, error) {
	d.mu.Lock()
	defer d.mu.Unlock() // the handler waits for its pen
	x, err := client.Submit(d.a.t.Context(), d.a.client, penKind, "")
	if err != nil {
		return nil, err
	}
	p := &pen{id: x.ID(), media: media, orders: make(chan order)}
	d.pens[path], d.work[p.id] = p, p
	return p, nil
}

var penKind = handler.Define[string, string]("pen")

// answer says where the stream ends.
func (d *desk) answer(w http.ResponseWriter, p *pen, status int) {
	seen := httptest.NewRecorder()
	q := httptest.NewRequest(http.MethodHead, "/v1/executions/"+p.id.String()+"/stream?as="+viewName(p.media), nil)
	q.Header.Set("Authorization", "Bearer "+secrets["viewer"])
	d.a.h.ServeHTTP(seen, q)
	w.Header().Set("Content-Type", p.media)
	w.Header().Set("Stream-Next-Offset", seen.Header().Get("Stream-Next-Offset"))
	if p.closed {
		w.Header().Set("Stream-Closed", "true")
	}
	w.WriteHeader(status)
}

// Parts of the suite that write are left out: streams of executions are written by handlers.
var suiteParts = []string{"Read Operations", "Long-Poll Operations", "Browser Security Headers", "HEAD Metadata should",
	"Offset Validation and Resumability", "Long-Poll Edge Cases", "Caching and ETag", "Chunking and Large Payloads",
	"Read-Your-Writes Consistency", "SSE Mode", "JSON Mode", "HEAD with Stream Closure", "Read Closed Streams",
	"Long-poll with Stream Closure", "SSE with Stream Closure", "Immutability Properties",
	"Offset Validation Properties", "Byte-Exactness Property", "State Hash Verification"}

const byHandlers = "handlers write the streams of executions"

// unlike are tests of these parts that our streams do not pass, and why not.
var unlike = map[string]string{
	"Browser Security Headers should include X-Content-Type-Options: nosniff on PUT responses":  byHandlers,
	"Browser Security Headers should include X-Content-Type-Options: nosniff on POST responses": byHandlers,
}

// The protocol's own suite, against streams that are written over HTTP.
func TestDurableStreamsSuite(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	dir, node := testnode.Installed(t, suiteFolder)
	a := newAPI(t, func(cfg *Config) { cfg.AllowedOrigins = []string{"https://example.com"} })
	a.h.poll = 2 * time.Second // the suite does not wait for longer
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		q.Header.Set("Authorization", "Bearer "+secrets["producer"])
		a.h.ServeHTTP(w, q)
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	runSuite(t, suite{dir: dir, node: node, url: server.URL + "/v1/streams", names: ".*"})
}

// The read part of the protocol's own suite, against executions whose handler appends what the suite posts.
func TestDurableStreamsSuiteOfExecutions(t *testing.T) {
	if testing.Short() {
		t.Skip("it is long")
	}
	dir, node := testnode.Installed(t, suiteFolder)
	a := newAPI(t, func(cfg *Config) { cfg.AllowedOrigins = []string{"https://example.com"} })
	a.h.poll = 2 * time.Second // the suite does not wait for longer
	d := &desk{a: a, pens: map[string]*pen{}, work: map[flowfabric.ExecutionID]*pen{}}
	w, err := runtime.New(runtime.Config{URL: a.store.URL(), Concurrency: 1000, Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(penKind, d.hold))
	must.No(t, err)
	ctx, stop := context.WithCancel(context.Background())
	var running conc.WaitGroup
	running.Go(func() {
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("worker: %v", err)
		}
	})
	server := httptest.NewServer(d)
	defer func() {
		server.CloseClientConnections()
		server.Close()
		stop()
		running.Wait()
	}()
	names := "^(Property-Based Tests .fast-check. |Stream Closure )?(" + strings.Join(suiteParts, "|") + ")"
	runSuite(t, suite{dir: dir, node: node, url: server.URL, names: names, unlike: unlike})
}

const suiteFolder = "testdata/durable-streams"

// suite is a run of the protocol's own suite.
type suite struct {
	dir    string
	node   testnode.Node
	url    string
	names  string            // of the tests, a pattern
	unlike map[string]string // tests that do not pass, and why
}

func runSuite(t *testing.T, s suite) {
	// Without bounds of its own: other packages' tests run beside it.
	ending, cancel := testwait.Context(t, t.Context())
	defer cancel()
	cmd := s.node.Command(ending, s.dir, s.node.Program, "node_modules/vitest/vitest.mjs", "run",
		"--reporter=json", "--outputFile=report.json", "--testTimeout=0", "--hookTimeout=0", "-t", s.names,
		"suite.test.js")
	cmd.Env = append(cmd.Env, "STREAMS_URL="+s.url, "CI=1")
	text, _ := cmd.CombinedOutput()
	report, err := os.ReadFile(filepath.Join(s.dir, "report.json"))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var result struct {
		NumPassedTests, NumFailedTests, NumPendingTests int
		TestResults                                     []struct {
			AssertionResults []struct {
				FullName, Status string
				FailureMessages  []string
			}
		}
	}
	must.No(t, json.Unmarshal(report, &result))
	for _, file := range result.TestResults {
		for _, x := range file.AssertionResults {
			switch why := s.unlike[x.FullName]; {
			case x.Status == "failed" && why == "":
				t.Errorf("%s: %.600s", x.FullName, strings.Join(x.FailureMessages, "; "))
			case x.Status == "passed" && why != "":
				t.Errorf("%s passes although %s", x.FullName, why)
			}
		}
	}
	t.Logf("%d passed, %d failed, %d left out", result.NumPassedTests, result.NumFailedTests, result.NumPendingTests)
}
