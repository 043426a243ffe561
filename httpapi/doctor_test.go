package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// status is what an examination says of a check; "" if it does not have it.
func statusOf(c doctor.Checkup, check string) doctor.Status {
	if i := slices.IndexFunc(c.Checks, func(k doctor.Check) bool { return k.Name == check }); i >= 0 {
		return c.Checks[i].Status
	}
	return ""
}

// The deployment of a handler is examined, on a server of each kind, and also when it is gone: then that is what was
// found.
func TestDoctor(t *testing.T) {
	t.Run("embedded", func(t *testing.T) {
		a := newAPI(t)
		c := into[doctor.Checkup](t, a.as("viewer", "GET", "/v1/doctor", "", 200))
		if !c.Healthy || statusOf(c, "version") != "warn" || statusOf(c, "partitions") != "ok" ||
			statusOf(c, "served") != "ok" || statusOf(c, "drift") != "skip" || c.CheckedKeys != 0 {
			t.Errorf("%+v", c)
		}
		a.as("blue", "GET", "/v1/doctor", "", 403)
		a.until(a.submit(`{"kind":"echo"}`), "completed") // the worker has started
		a.store.Close()
		if again := into[doctor.Checkup](t, a.as("viewer", "GET", "/v1/doctor", "", 200)); !again.Healthy {
			t.Errorf("within five seconds another examination was made: %+v", again)
		}
		a.h.doctor.at = time.Now().Add(-examinationFresh)
		if gone := into[doctor.Checkup](t, a.as("viewer", "GET", "/v1/doctor", "", 200)); gone.Healthy ||
			statusOf(gone, "partitions") != "fail" {
			t.Errorf("%+v", gone)
		}
	})
	t.Run("valkey", func(t *testing.T) {
		srv := testserver.Start(t, testserver.ServerValkey,
			testserver.Args("--maxmemory", "200mb", "--maxmemory-policy", "volatile-lru"))
		c, err := client.Connect(t.Context(),
			client.Config{URL: srv.URL(), Partitions: 2, Logger: slog.New(slog.DiscardHandler)})
		must.No(t, err)
		defer c.Close()
		h, err := New(Config{Admin: admin.New(c), Authorize: Open, Logger: slog.New(slog.DiscardHandler)})
		must.No(t, err)
		defer h.Close()
		examined := func() doctor.Checkup {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/v1/doctor", nil))
			return into[doctor.Checkup](t, got{w.Code, w.Header(), w.Body.Bytes()})
		}
		if c := examined(); c.Healthy || statusOf(c, "eviction") != "fail" || statusOf(c, "library") != "ok" ||
			statusOf(c, "rights") != "ok" || statusOf(c, "memory") != "ok" {
			t.Errorf("%+v", c)
		}
		srv.Kill()
		h.doctor.at = time.Time{}
		if c := examined(); c.Healthy || statusOf(c, "reachable") != "fail" {
			t.Errorf("%+v", c)
		}
	})
}

// Requests share an examination while it runs and for five seconds. One whose caller leaves does not wait, and one
// that fails keeps nobody waiting.
func TestExaminationsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var x examinations
		var made atomic.Int32
		slow := func(ctx context.Context) doctor.Diagnosis {
			made.Add(1)
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			return doctor.Diagnosis{Embedded: true, Nodes: []doctor.NodeReport{{}}}
		}
		var asking conc.WaitGroup
		for range 10 {
			asking.Go(func() {
				if c, err := x.get(t.Context(), slow); err != nil || statusOf(c, "version") != "warn" {
					t.Errorf("%+v, %v", c, err)
				}
			})
		}
		synctest.Wait()
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := x.get(left, slow); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		asking.Wait()
		time.Sleep(examinationFresh - time.Millisecond)
		if _, err := x.get(t.Context(), slow); err != nil || made.Load() != 1 {
			t.Errorf("%d examinations, %v", made.Load(), err)
		}
		time.Sleep(time.Millisecond)
		if _, err := x.get(left, slow); err != nil || made.Load() != 2 {
			t.Errorf("%d examinations, %v", made.Load(), err)
		}
		time.Sleep(examinationFresh)
		asking.Go(func() {
			defer func() { _ = recover() }()
			_, _ = x.get(t.Context(), func(context.Context) doctor.Diagnosis { time.Sleep(time.Second); panic("bug") })
		})
		synctest.Wait()
		if c, err := x.get(t.Context(), slow); err != nil || len(c.Checks) == 0 || made.Load() != 3 {
			t.Errorf("after a panic: %+v, %v, %d examinations", c, err, made.Load())
		}
		asking.Wait()
		time.Sleep(examinationFresh)
		began := time.Now()
		_, err := x.get(t.Context(),
			func(ctx context.Context) doctor.Diagnosis { <-ctx.Done(); return doctor.Diagnosis{} })
		if took := time.Since(began); err != nil || took != examinationTime {
			t.Errorf("%s, %v", took, err)
		}
	})
}
