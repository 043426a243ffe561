package httpapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/sourcegraph/conc/pool"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// BenchmarkWorkerSession is how many jobs that do nothing one session takes and completes over HTTP, from a Redis
// server: with a call for each completion, 16 of them at once, and with completions that go with the next claim.
func BenchmarkWorkerSession(b *testing.B) {
	b.Run("single", func(b *testing.B) {
		s := newBenchSession(b)
		for left := b.N; left > 0; {
			x := s.claim(claimBody{Max: new(min(left, 100))})
			left -= len(x)
			calls := pool.New().WithMaxGoroutines(16)
			for _, x := range x {
				calls.Go(func() { s.call("complete", completeBody{leased: leased{x.Lease}}, new(already)) })
			}
			calls.Wait()
		}
	})
	b.Run("batched", func(b *testing.B) {
		s := newBenchSession(b)
		var done []completeBody
		for left := b.N; left > 0 || len(done) > 0; {
			x := s.claim(claimBody{Max: new(min(left, 100)), Complete: done})
			left, done = left-len(x), done[:0]
			for _, x := range x {
				done = append(done, completeBody{leased: leased{x.Lease}})
			}
		}
	})
}

type benchSession struct {
	*testing.B
	http *http.Client
	url  string
}

// newBenchSession has b.N executions wait, and a session for them.
func newBenchSession(b *testing.B) *benchSession {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(b.Context(), client.Config{URL: testserver.Redis(b), Partitions: 4, Logger: quiet})
	must.No(b, err)
	h, err := New(Config{Admin: admin.New(c), Authorize: Open, Logger: quiet})
	must.No(b, err)
	server := httptest.NewServer(h)
	s := &benchSession{b, &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}, server.URL + "/v1/workers"}
	b.Cleanup(func() {
		s.http.CloseIdleConnections()
		server.Close()
		h.Close()
		c.Close()
	})
	_, err = client.SubmitMany(b.Context(), c, handler.Define[int, int]("noop"), make([]int, b.N))
	must.No(b, err)
	var opened workerOpened
	s.post(s.url, map[string]any{"kinds": []string{"noop"}}, &opened)
	s.url += "/" + opened.Session
	b.ResetTimer()
	return s
}

func (s *benchSession) claim(q claimBody) []claimed {
	var out claimAnswer
	s.call("claim", q, &out)
	for _, x := range out.Completed {
		if x.Code != "" || x.Already {
			s.Fatalf("%+v", x)
		}
	}
	return out.Executions
}

func (s *benchSession) call(verb string, q, out any) { s.post(s.url+":"+verb, q, out) }

func (s *benchSession) post(url string, q, out any) {
	body, err := json.Marshal(q)
	must.No(s, err)
	answer, err := s.http.Post(url, "application/json", bytes.NewReader(body))
	must.No(s, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode/100 != 2 {
		err = fmt.Errorf("%d: %s", answer.StatusCode, text)
	}
	must.No(s, err)
	must.No(s, json.Unmarshal(text, out))
}
