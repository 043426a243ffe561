package runtime

import (
	"log/slog"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// A kind whose logs are off gets the logger of its job as it is, and nothing is made for it; nor is there anything to
// do at the end of a handler that logged nothing.
func TestLogsThatAreOffCostNothing(t *testing.T) {
	for what, kind := range map[string]*served{"off": {}, "no handler": nil, "on, and silent": {logs: true}} {
		j := newJob(&jobs{log: slog.New(slog.DiscardHandler), kinds: map[string]*served{"k": kind}}, nil,
			engine.Route{Kind: "k"})
		if n := testing.AllocsPerRun(100, func() {
			log := j.taskLogger()
			if kind == nil || !kind.logs {
				log.Info("x")
			}
			j.lines.flush()
			j.lines.close()
		}); n != 0 {
			t.Errorf("%s: %g allocations", what, n)
		}
		if keeps := j.taskLogger() != j.logger(); keeps != (kind != nil && kind.logs) || j.lines.writer != nil {
			t.Errorf("%s: another logger: %t", what, keeps)
		}
	}
}
