package doctor

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// TestMain keeps the log quiet and finds goroutines that a connection leaves behind.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	// see internal/cluster
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

func open(t testing.TB, cfg engine.Config) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), cfg)
	must.No(t, err)
	t.Cleanup(e.Close)
	return e
}

// do runs a raw command on a store.
func do(t testing.TB, e *engine.Engine, args ...string) engine.Response {
	t.Helper()
	resp := engine.Probed(t.Context(), e, func(p *engine.Probe) engine.Response {
		return p.Ask(t.Context(), args[0], args[1:]...)
	})
	must.No(t, resp.Error())
	return resp
}

// oneLine judges an error as a newcomer meets it: one line, with the hint, of a class.
func oneLine(t *testing.T, what string, err, sentinel error, hint string) {
	t.Helper()
	if !errors.Is(err, sentinel) {
		t.Errorf("%s: %v, want %v", what, err, sentinel)
		return
	}
	if text := err.Error(); !strings.Contains(text, hint) || strings.ContainsAny(text, "\r\n") {
		t.Errorf("%s: %q does not say %q in one line", what, text, hint)
	}
}
