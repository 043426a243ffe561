package handler_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/codes"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// An error of a wait that got lost on its way says what became of it.
func TestALostWaitIsExplained(t *testing.T) {
	out := runOn(t, engine.Claim{}, tokenkeys.Development(),
		func(ctx context.Context, task *handler.Task) (string, error) {
			_, err := handler.Await[bool](ctx, task, "go")
			return "", fmt.Errorf("oops: %v", err)
		})
	if out.Kind != codes.OutcomeFail || !strings.Contains(out.Failure.Reason, "wait go had asked to suspend") {
		t.Errorf("%s: %s", out.Kind, out.Failure.Reason)
	}
}

// An answer that nobody asked for is told when the next wait begins, not only at the end.
func TestARenamedWaitIsTold(t *testing.T) {
	var log bytes.Buffer
	task := newTask(tasks.Config{Claim: &engine.Claim{Input: []byte(`"x"`),
		Resume: &suspend.Result{Name: "old", Cause: "signal"}},
		Keyring: tokenkeys.Development(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	out := handler.Bind(handler.Define[string, bool]("k"),
		func(ctx context.Context, t *handler.Task, _ string) (bool, error) {
			return handler.Await[bool](ctx, t, "new")
		}).Run(t.Context(), task)
	if out.Kind != codes.OutcomeSuspend || !strings.Contains(log.String(), "wait=old") {
		t.Errorf("%s, log %q", out.Kind, log.String())
	}
}
