package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// An answer is given to others who ask the same, may see the same and say how old it may be; to nobody else.
func TestAnswersAreShared(t *testing.T) {
	a := newAPI(t)
	a.submit(`{"kind":"nobody","lane":"side"}`)
	list := func(role, age, query string) int {
		t.Helper()
		g := a.do(request{method: "GET", path: "/v1/executions?kind=nobody" + query, role: role,
			header: http.Header{"Cache-Control": {age}}})
		if g.status != 200 || g.header.Get("Content-Type") != "application/json" {
			t.Fatalf("%d %s", g.status, g.body)
		}
		return len(into[executionPage](t, g).Items)
	}
	if n := list("viewer", "max-age=5", ""); n != 1 {
		t.Errorf("%d", n)
	}
	a.submit(`{"kind":"nobody","lane":"side"}`)
	for _, x := range []struct {
		role, age, query string
		want             int
	}{{"viewer", "max-age=5", "", 1}, {"admin", "no-store, max-age=900", "", 2}, {"viewer", "", "", 2},
		{"viewer", "max-age=0", "", 2}, {"viewer", "max-age=x", "", 2},
		{"viewer", "max-age=5", "&limit=7", 2}, {"blue", "max-age=5", "", 0}} {
		if n := list(x.role, x.age, x.query); n != x.want {
			t.Errorf("%+v: %d", x, n)
		}
	}
	if g := a.do(request{method: "GET", path: "/v1/executions?kind=nobody", role: "worker",
		header: http.Header{"Cache-Control": {"max-age=5"}}}); g.status != 403 {
		t.Errorf("a worker: %d", g.status)
	}
}

// What pages load by themselves is read once for all who look at the same within some seconds.
func TestPagesReadOnceForAll(t *testing.T) {
	a := newAPI(t)
	id := a.submit(`{"kind":"nobody","lane":"side"}`)
	paths := []string{"/v1/executions?newest=true", "/v1/failures", "/v1/times?by_kind=true", "/v1/doctor",
		"/v1/workers", "/v1/versions", "/v1/queues", "/v1/flows", "/v1/approvals", id, id + "/history", id + "/why", id + "/steps",
		id + "/messages", id + "/wait"}
	reads := map[*sharedAnswer]bool{}
	const pages = 10
	for range pages {
		for _, path := range paths {
			g := a.do(request{method: "GET", path: path, role: "admin",
				header: http.Header{"Cache-Control": {"max-age=20"}}})
			if g.status != http.StatusOK && g.status != http.StatusNoContent {
				t.Fatalf("%s: %d %s", path, g.status, g.body)
			}
			a.h.sharing.mu.Lock()
			for _, answer := range a.h.sharing.answers {
				reads[answer] = true
			}
			a.h.sharing.mu.Unlock()
		}
	}
	if n := len(reads); n < len(paths) || n > 3*len(paths) { // more than once only if all of it takes 20 seconds
		t.Errorf("%d reads for %d requests of %d paths", n, pages*len(paths), len(paths))
	}
}

// What words keep for operators is shown to nobody else, also when an operator has read the same a moment ago.
func TestViewersDoNotSeeWhatIsForOperators(t *testing.T) {
	a := newAPI(t)
	r := a.remote("worker", "remote")
	path := a.submit(`{"kind":"remote"}`)
	r.one()
	for at, fields := range map[string][]string{
		path:                         {`"session":`, `"epoch":`},
		"/v1/executions?kind=remote": {`"session":`, `"epoch":`},
		"/v1/workers":                {`"host":`, `"sessions":`},
	} {
		read := func(role string) string {
			g := a.do(request{method: "GET", path: at, role: role, header: http.Header{"Cache-Control": {"max-age=5"}}})
			if g.status != http.StatusOK || !strings.Contains(string(g.body), "remote") {
				t.Fatalf("%s: %d %s", at, g.status, g.body)
			}
			return string(g.body)
		}
		for _, role := range []string{"operator", "viewer", "admin"} {
			text := read(role)
			for _, field := range fields {
				if shown := strings.Contains(text, field); shown != (role != "viewer") {
					t.Errorf("%s as %s: %s shown: %t, in %s", at, role, field, shown, text)
				}
			}
		}
	}
}

// sharedCall is a call of a route that does what it is told.
func sharedCall(ctx context.Context, h *Handler, handle func(*call) error) (*call, *httptest.ResponseRecorder) {
	w := httptest.NewRecorder()
	q := httptest.NewRequestWithContext(ctx, "GET", "/v1/lanes", nil)
	return &call{h: h, w: w, r: q, route: &route{handle: handle}}, w
}

// While one is read, others wait for it, also when the one who began it leaves. A failure reaches those who wait, and
// the next one reads anew.
func TestSharingWaits(t *testing.T) {
	h := &Handler{sharing: sharing{answers: map[string]*sharedAnswer{}}}
	begun, release := make(chan struct{}), make(chan error)
	slow := func(c *call) error {
		close(begun)
		if err := <-release; err != nil {
			return err
		}
		if c.ctx().Err() != nil {
			return c.ctx().Err()
		}
		return c.answerJSON(http.StatusOK, health{"read"})
	}
	leaving, leave := context.WithCancel(t.Context())
	var asking conc.WaitGroup
	asking.Go(func() {
		c, _ := sharedCall(leaving, h, slow)
		_ = h.sharing.answer(c, time.Minute)
	})
	<-begun
	leave()
	asking.Go(func() {
		c, w := sharedCall(t.Context(), h, func(*call) error { return errors.New("it was read twice") })
		if err := h.sharing.answer(c, time.Minute); err != nil || !strings.Contains(w.Body.String(), "read") {
			t.Errorf("%v: %s", err, w.Body)
		}
	})
	release <- nil
	asking.Wait()

	broken := errors.New("broken")
	h.sharing.answers = map[string]*sharedAnswer{}
	c, _ := sharedCall(t.Context(), h, func(*call) error { return broken })
	if err := h.sharing.answer(c, time.Minute); !errors.Is(err, broken) {
		t.Error(err)
	}
	c, w := sharedCall(t.Context(), h, func(c *call) error { return c.answerJSON(http.StatusOK, health{"again"}) })
	if err := h.sharing.answer(c, time.Minute); err != nil || !strings.Contains(w.Body.String(), "again") {
		t.Errorf("%v: %s", err, w.Body)
	}
	h.sharing.answers = map[string]*sharedAnswer{}
	func() {
		defer func() { _ = recover() }()
		c, _ := sharedCall(t.Context(), h, func(*call) error { panic("broken") })
		_ = h.sharing.answer(c, time.Minute)
	}()
	if len(h.sharing.answers) != 0 {
		t.Error("what panicked is kept")
	}
}

// There are bounds to what is kept.
func TestSharingIsBounded(t *testing.T) {
	h := &Handler{sharing: sharing{answers: map[string]*sharedAnswer{}}}
	for i := range mostShared {
		h.sharing.answers[strings.Repeat("x", i)] = &sharedAnswer{began: time.Now(), done: make(chan struct{})}
	}
	c, w := sharedCall(t.Context(), h, func(c *call) error { return c.answerJSON(http.StatusOK, health{"alone"}) })
	if err := h.sharing.answer(c, time.Minute); err != nil || !strings.Contains(w.Body.String(), "alone") ||
		len(h.sharing.answers) != mostShared {
		t.Errorf("%v: %s, %d", err, w.Body, len(h.sharing.answers))
	}
	for _, a := range h.sharing.answers {
		a.began = time.Now().Add(-time.Minute)
	}
	if err := h.sharing.answer(c, time.Minute); err != nil || len(h.sharing.answers) != 1 {
		t.Errorf("%v: %d", err, len(h.sharing.answers))
	}
}

// An answer that took long is given to those who take an older one for longer, until somebody asks for a new one.
func TestCostlyAnswersAreSharedForLonger(t *testing.T) {
	a := newAPI(t)
	count := func(control string) (n int) {
		t.Helper()
		g := a.do(request{method: "GET", path: "/v1/failures", role: "viewer",
			header: http.Header{"Cache-Control": {control}}})
		for _, x := range into[apiv1.Failures](t, g).Items {
			n += x.Count
		}
		return n
	}
	aged := func(good time.Duration) {
		a.h.sharing.mu.Lock()
		defer a.h.sharing.mu.Unlock()
		for _, x := range a.h.sharing.answers {
			if x.good == 0 || x.good > maxCostly {
				t.Errorf("good for %s", x.good)
			}
			x.began, x.good = x.began.Add(-30*time.Second), good
		}
	}
	for _, x := range []struct {
		control string
		good    time.Duration // of the answer that is there, which is half a minute old
		want    int
	}{{"max-age=5", time.Minute, 1}, {"max-age=5", time.Minute, 1}, {"max-age=5", time.Second, 3}, {"", time.Minute, 4},
		{"max-age=5", time.Minute, 4}} {
		a.until(a.submit(`{"kind":"fails"}`), "failed")
		aged(x.good)
		if n := count(x.control); n != x.want {
			t.Errorf("%+v: %d", x, n)
		}
	}
}
