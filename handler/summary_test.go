package handler_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/mergepatch"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
)

var _ framelog.SummaryReader = (*engine.Engine)(nil)

// What a patch may be, and what becomes of it.
func TestTaskSummary(t *testing.T) {
	ctx := context.Background()
	frames := &tape{}
	task := newTask(tasks.Config{Frames: frames})
	type stage struct {
		Name string `json:"name"`
		Rows *int   `json:"rows"`
	}
	for want, patch := range map[string]any{
		`{"name":"a<b","rows":null}` + "\n":         stage{Name: "a<b"},
		`{"ms":1713100800150123}` + "\n":            map[string]any{"ms": int64(1713100800150123)},
		`{"n":12345678901234567890}` + "\n":         map[string]any{"n": json.Number("12345678901234567890")},
		` { "raw" : [ ] } `:                         json.RawMessage(` { "raw" : [ ] } `),
		`{"bytes":1}`:                               []byte(`{"bytes":1}`),
		`{"gone":"` + mergepatch.Null + `"}` + "\n": map[string]string{"gone": mergepatch.Null},
	} {
		frames.frames = nil
		if err := task.Summary(ctx, patch); err != nil {
			t.Errorf("%s: %v", want, err)
			continue
		}
		f := frames.frames[0]
		if f.Mode != stream.ModeSummary || f.Type != "summary" || f.Encoding != stream.JSON ||
			string(f.Payload) != want {
			t.Errorf("%+v, payload %q, want %q", f, f.Payload, want)
		}
	}
	for name, patch := range map[string]any{"a channel": make(chan int), "NaN": math.NaN()} {
		if err := task.Summary(ctx, patch); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Alone, in a unit test of a handler, a task still says what a worker would refuse.
func TestTaskSummaryAlone(t *testing.T) {
	task := newTask(tasks.Config{})
	if err := task.Summary(context.Background(), map[string]int{"a": 1}); err != nil {
		t.Error(err)
	}
	for _, patch := range []any{[]int{1}, "text", nil, json.RawMessage(`{"a":1e400}`), make(chan int)} {
		if err := task.Summary(context.Background(), patch); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%v: %v", patch, err)
		}
	}
}

func TestTaskLive(t *testing.T) {
	frames := &tape{}
	task := newTask(tasks.Config{Frames: frames})
	must.No(t, task.Live(context.Background(), "token", "x", 5*time.Second))
	if f := frames.frames[0]; f.Mode != stream.ModeBestEffort || f.TTL != 5*time.Second || f.Type != "token" ||
		string(f.Payload) != "x" {
		t.Errorf("%+v", f)
	}
}
