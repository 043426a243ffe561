package runtime

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func TestDroppedSaysWhy(t *testing.T) {
	refused := func(code string, slots ...string) error {
		return endedAs(fmt.Errorf("settle: %w", denied.New("ff_complete_execution", code, slots...)))
	}
	for _, x := range []struct {
		cause error
		level slog.Level
		says  string
	}{
		{flowfabric.ErrCancelled, slog.LevelInfo, "execution cancelled"},
		{flowfabric.ErrDeadline, slog.LevelInfo, "execution expired"},
		{flowfabric.ErrAttemptTimeout, slog.LevelInfo, "attempt timed out"},
		{flowfabric.ErrLeaseLost, slog.LevelWarn, "lease lost"},
		{flowfabric.ErrOverBudget, slog.LevelWarn, "lease lost"},
		{refused("execution_not_active", "T3", "1", "0", ""), slog.LevelInfo, "execution cancelled"},
		{refused("stream_closed", "T4"), slog.LevelInfo, "execution expired"},
		{refused("execution_not_active", "T1", "1", "0", ""), slog.LevelWarn, "no longer this worker's"},
		{refused("stale_lease"), slog.LevelWarn, "no longer this worker's"},
		{endedAs(flowfabric.ErrNotFound), slog.LevelWarn, "no longer this worker's"},
	} {
		if level, what := dropped(x.cause); level != x.level || !strings.Contains(what, x.says) {
			t.Errorf("%v: %s %q, want %s %q", x.cause, level, what, x.level, x.says)
		}
	}
}
