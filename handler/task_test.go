package handler_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/keeper"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
)

// What a worker puts into a task.
var (
	_ tasks.FrameWriter  = (*framelog.Writer)(nil)
	_ tasks.FrameReader  = (*engine.Engine)(nil)
	_ tasks.StepRecorder = (*engine.Engine)(nil)

	_ tasks.ProgressRecorder = (*engine.Engine)(nil)
	_ tasks.Lease            = (*keeper.Held)(nil)
)

func TestTaskAccessors(t *testing.T) {
	id := mint.Join(3, uuid.MustParse("01970000-0000-7000-8000-000000000001"))
	claim := engine.Claim{
		Fence: flowfabric.Fence{Execution: id, Session: "w~1", Claim: 2, Epoch: 9, Attempt: 4},
		Type:  flowfabric.AttemptRetry, Retries: 2, CreatedAt: time.UnixMilli(1000), Input: []byte("in"),
		Tags: map[string]string{"team.region": "eu"},
	}
	logger, _ := quiet()
	task := newTask(tasks.Config{Claim: &claim, Logger: logger, Lease: fixedLease{},
		Route: engine.Route{Namespace: "ns", Lane: "gpu", Kind: "greet"}})
	if task.ID() != id || task.Attempt() != 4 || task.AttemptType() != flowfabric.AttemptRetry ||
		task.Fence() != claim.Fence || task.Namespace() != "ns" || task.Lane() != "gpu" || task.Kind() != "greet" ||
		task.Retries() != 2 || !task.CreatedAt().Equal(claim.CreatedAt) || string(task.Input()) != "in" ||
		!maps.Equal(task.Tags(), claim.Tags) || task.Logger() != logger {
		t.Error("an accessor does not tell what was claimed")
	}
	task.Tags()["team.region"] = "us"
	if claim.Tags["team.region"] != "eu" {
		t.Error("a caller changed the claim through its copy")
	}
	if task.LeaseHealthy() {
		t.Error("three failed renewals do not show")
	}
}

func TestTaskAlone(t *testing.T) {
	task := newTask(tasks.Config{})
	must.No(t, errors.Join(task.Frame(context.Background(), "log", "x"), task.Flush(context.Background())))
	if err := task.Frame(context.Background(), "flowfabric.child", ""); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("a frame that announces a child: %v", err)
	}
	for range task.Stream(context.Background()) {
		t.Fatal("a task without a store has a stream")
	}
	if !task.LeaseHealthy() || task.Logger() == nil {
		t.Fatal("a task without a lease is not healthy")
	}
}

// tape stores frames on Flush and reads them two at a time.
type tape struct {
	frames   []stream.Frame
	stored   int
	trimmed  uint64 // no longer retained
	flushErr error
	readErr  error
}

func (s *tape) Append(_ context.Context, f stream.Frame) error {
	f.Sequence = uint64(len(s.frames) + 1)
	f.ID = stream.Cursor{Ms: f.Sequence}
	s.frames = append(s.frames, f)
	return nil
}

func (s *tape) Flush(context.Context) error {
	if s.flushErr == nil {
		s.stored = len(s.frames)
	}
	return s.flushErr
}

func (s *tape) LastAcknowledged() uint64 { return uint64(s.stored) }

func (s *tape) ReadFrames(_ context.Context, _ flowfabric.ExecutionID, _ uint32, after stream.Cursor,
	_ int) ([]stream.Frame, error) {
	page := s.frames[max(after.Ms, s.trimmed):s.stored]
	if len(page) == 0 && s.readErr != nil {
		return nil, s.readErr
	}
	return page[:min(2, len(page))], nil
}

func TestOwnStream(t *testing.T) {
	ctx := context.Background()
	frames := &tape{}
	task := newTask(tasks.Config{Frames: frames, Reader: frames})
	read := func(each func(stream.Frame)) (text string, err error) {
		for f, err := range task.Stream(ctx) {
			if err != nil {
				return text, err
			}
			text += string(f.Payload)
			each(f)
		}
		return text, nil
	}
	nothing := func(stream.Frame) {}
	if got, err := read(nothing); got != "" || err != nil {
		t.Fatalf("empty: %q, %v", got, err)
	}
	for _, word := range []string{"a", "b", "c", "d", "e"} {
		must.No(t, task.FrameBytes(ctx, stream.Frame{Type: "token", Payload: []byte(word)}))
	}
	// A loop that appends must not follow itself for ever.
	got, err := read(func(stream.Frame) { _ = task.Frame(ctx, "echo", "!"); _ = task.Flush(ctx) })
	if got != "abcde" || err != nil {
		t.Fatalf("got %q, %v", got, err)
	}
	for range task.Stream(ctx) {
		break // must not yield again
	}
	frames.flushErr = io.ErrClosedPipe
	if _, err := read(nothing); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("got %v", err)
	}
	frames.flushErr, frames.readErr = nil, io.ErrUnexpectedEOF
	frames.frames, frames.trimmed = frames.frames[:5], 1
	if got, err := read(nothing); got != "bcde" || err != nil {
		t.Fatalf("the last frame ends the loop without another read: %q, %v", got, err)
	}
	frames.trimmed = 5
	if _, err := read(nothing); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
}

// newTask is a task as a worker makes it.
func newTask(cfg tasks.Config) *handler.Task {
	task, _ := handler.NewTask(cfg)
	return task
}
