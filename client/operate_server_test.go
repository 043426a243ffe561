package client_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/stream"
)

// onServers runs a test on the embedded server and on Redis.
func onServers(t *testing.T, test func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine)) {
	for name, start := range map[string]func(*testing.T) string{
		"embedded": func(t *testing.T) string { return testserver.Embedded(t) },
		"redis":    func(t *testing.T) string { return testserver.Redis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			url, quiet := start(t), slog.New(slog.DiscardHandler)
			c, err := client.Connect(ctx, client.Config{URL: url, Partitions: 2, Creator: "billing", Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			e, err := engine.Open(ctx, engine.Config{URL: url, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			test(ctx, t, c, e)
		})
	}
}

func submit(ctx context.Context, t *testing.T, c *client.Client, topic string, opts ...client.SubmitOption) *client.Execution[verdict] {
	t.Helper()
	x, err := client.Submit(ctx, c, write, draft{topic}, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// finish claims an execution, appends a frame and completes it with text, as a worker would.
func finish(ctx context.Context, t *testing.T, e *engine.Engine, id flowfabric.ExecutionID, text string) engine.Claim {
	t.Helper()
	held := claim(ctx, t, e, id)
	if _, err := e.AppendFrames(ctx, held.Fence, 1, []stream.Frame{{Type: "token", Payload: []byte(text)}}); err != nil {
		t.Fatal(err)
	}
	settled, _, err := e.CompleteExecutions(ctx, id.Partition(), []engine.Completion{{Fence: held.Fence, Result: []byte(`{"Text":"` + text + `"}`)}}, nil)
	if err != nil || settled[0].Err != nil {
		t.Fatalf("%v, %+v", err, settled)
	}
	return held
}

// tailed is what a tail of all attempts says, for example "0:wet end".
func tailed(ctx context.Context, t *testing.T, x *client.Execution[verdict]) string {
	t.Helper()
	var said []string
	for event, err := range x.Tail(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		switch event.Kind {
		case stream.TailFrame:
			said = append(said, string('0'+rune(event.Attempt))+":"+string(event.Frame.Payload))
		case stream.TailEnd:
			said = append(said, "end")
		}
	}
	return strings.Join(said, " ")
}

func TestReplayOnAServer(t *testing.T) { // spec 10 D22, D24
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		if err := x.Replay(ctx); !errors.Is(err, flowfabric.ErrNotTerminal) || !strings.HasSuffix(err.Error(), "it is waiting; cancel it first") {
			t.Errorf("replay of one that waits: %v", err)
		}
		finish(ctx, t, e, x.ID(), "wet")
		if v, err := x.Result(ctx); err != nil || v.Text != "wet" {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := x.Replay(ctx); !errors.Is(err, flowfabric.ErrReplayNotAllowed) {
			t.Errorf("replay of a success: %v", err)
		}
		request := client.ReplayRequest(uuid.New())
		for range 2 { // the second is the same request
			if err := x.Replay(ctx, client.Force(), client.Reason("tide tables changed"), request); err != nil {
				t.Fatal(err)
			}
		}
		if s, err := x.Get(ctx); err != nil || s.Replays != 1 || s.State.Code != flowfabric.CodeWaitingReplay {
			t.Fatalf("%+v, %v", s, err)
		}
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if v, err := x.Result(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result of a replay that waits: %+v, %v", v, err)
		}
		if held := finish(ctx, t, e, x.ID(), "dry"); held.Type != flowfabric.AttemptReplay || held.Fence.Attempt != 1 {
			t.Errorf("claimed %+v", held)
		}
		if v, err := x.Result(ctx); err != nil || v.Text != "dry" {
			t.Errorf("%+v, %v", v, err)
		}
		if got := tailed(ctx, t, x); got != "0:wet 1:dry end" {
			t.Errorf("tail %q", got)
		}
		events, err := x.History(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, event := range events {
			lines = append(lines, event.String())
		}
		all := strings.Join(lines, "\n")
		for _, want := range []string{"Z created, by billing", "Z replayed",
			", by billing: tide tables changed", "was completed since", "Z ended: attempt 1 on tester, completed"} {
			if !strings.Contains(all, want) {
				t.Errorf("the history lacks %q:\n%s", want, all)
			}
		}
	})
}

func TestChangePriorityAndTagsOnAServer(t *testing.T) { // spec 10 D42
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides", client.Tags(map[string]string{"team.name": "sea", "team.old": "1"}))
		if err := x.ChangePriority(ctx, flowfabric.MaxPriority, client.By("anna")); err != nil {
			t.Fatal(err)
		}
		if err := x.SetTags(ctx, map[string]string{"team.name": "moon", "team.new": "2"}, "team.old", "team.none"); err != nil {
			t.Fatal(err)
		}
		s, err := x.Get(ctx)
		if err != nil || s.Priority != flowfabric.MaxPriority || len(s.Tags) != 2 || s.Tags["team.name"] != "moon" || s.Tags["team.new"] != "2" {
			t.Errorf("%+v, %v", s, err)
		}
		if err := x.SetTags(ctx, map[string]string{"Team": "x"}); !errors.Is(err, flowfabric.ErrInvalidTagKey) {
			t.Errorf("a bad key: %v", err)
		}
		held := finish(ctx, t, e, x.ID(), "wet")
		if held.Priority != flowfabric.MaxPriority || held.Tags["team.name"] != "moon" {
			t.Errorf("claimed %+v", held)
		}
		if err := x.ChangePriority(ctx, 1); !errors.Is(err, flowfabric.ErrTerminal) || !strings.Contains(err.Error(), "it is completed") {
			t.Errorf("after the end: %v", err)
		}
		if err := x.SetTags(ctx, nil, "team.new"); err != nil {
			t.Errorf("tags after the end: %v", err)
		}
		nobody := flowfabric.NewExecutionID(1)
		for _, err := range []error{c.ChangePriority(ctx, nobody, 1), c.SetTags(ctx, nobody, nil), c.Replay(ctx, nobody), c.Revoke(ctx, nobody, ""),
			c.Purge(ctx, nobody), func() error { _, err := c.History(ctx, nobody); return err }()} {
			if !errors.Is(err, flowfabric.ErrNotFound) {
				t.Errorf("%v, want ErrNotFound", err)
			}
		}
	})
}

func TestRevokeOnAServer(t *testing.T) { // spec 10 §4.16, D35
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		if err := x.Revoke(ctx, "stuck"); !errors.Is(err, flowfabric.ErrNotActive) || !strings.HasSuffix(err.Error(), "nobody runs it, it is waiting") {
			t.Errorf("revoke of one that waits: %v", err)
		}
		held := claim(ctx, t, e, x.ID())
		if err := e.UpdateProgress(ctx, held.Fence, 40, "page 4"); err != nil {
			t.Fatal(err)
		}
		if s, err := x.Get(ctx); err != nil || s.Progress.Percent != 40 || s.Progress.Message != "page 4" {
			t.Errorf("%+v, %v", s.Progress, err)
		}
		if err := x.Revoke(ctx, "stuck", client.HeldBy("somebody~1")); !errors.Is(err, flowfabric.ErrStaleLease) {
			t.Errorf("revoke of another's: %v", err)
		}
		for range 2 { // twice is no error
			if err := x.Revoke(ctx, "stuck", client.HeldBy(held.Fence.Session)); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.UpdateProgress(ctx, held.Fence, 1, ""); !errors.Is(err, flowfabric.ErrLeaseRevoked) {
			t.Errorf("the holder's write: %v", err)
		}
		if s, err := x.Get(ctx); err != nil || s.State.Code != flowfabric.CodeRevoked {
			t.Errorf("%+v, %v", s, err)
		}
		if err := x.Cancel(ctx, ""); err != nil {
			t.Fatal(err)
		}
		if err := x.Revoke(ctx, "stuck"); !errors.Is(err, flowfabric.ErrTerminal) {
			t.Errorf("revoke of what has ended: %v", err)
		}
	})
}

// A purged execution keeps its id and its idempotency key for a while (design §9).
func TestPurgeOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		key := client.IdempotencyKey("tides-1")
		x := submit(ctx, t, c, "tides", key)
		if err := x.Purge(ctx); !errors.Is(err, flowfabric.ErrNotTerminal) {
			t.Errorf("purge of one that waits: %v", err)
		}
		finish(ctx, t, e, x.ID(), "wet")
		for range 2 { // twice is no error
			if err := x.Purge(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := x.Get(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("get: %v", err)
		}
		if _, err := x.Result(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("result: %v", err)
		}
		if _, err := x.History(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("history: %v", err)
		}
		for _, err := range x.Tail(ctx) {
			if !errors.Is(err, flowfabric.ErrResultPurged) {
				t.Errorf("tail: %v", err)
			}
		}
		if _, err := x.Get(ctx); !strings.HasSuffix(err.Error(), "it was purged; it was completed") {
			t.Errorf("get: %v", err)
		}
		for verb, err := range map[string]error{"replay": x.Replay(ctx, client.Force()), "cancel": x.Cancel(ctx, ""), "revoke": x.Revoke(ctx, ""),
			"change priority": x.ChangePriority(ctx, 1), "set tags": x.SetTags(ctx, nil, "team.name")} {
			if !errors.Is(err, flowfabric.ErrNotFound) {
				t.Errorf("%s: %v", verb, err)
			}
		}
		again := submit(ctx, t, c, "tides", key)
		if !again.Duplicate() || again.ID() != x.ID() {
			t.Errorf("submitted %s, duplicate %t, want a duplicate of %s", again.ID(), again.Duplicate(), x.ID())
		}
		if _, err := again.Result(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("result of the duplicate: %v", err)
		}
		if _, err := client.Submit(ctx, c, write, draft{"moons"}, key); !errors.Is(err, flowfabric.ErrIdempotencyConflict) {
			t.Errorf("another payload under the key: %v", err)
		} else if !strings.HasSuffix(err.Error(), `key "tides-1" names an execution with another payload`) {
			t.Errorf("the key is not named: %v", err)
		}
		keys := client.IdempotencyKeys(func(int) string { return "tides-1" })
		if _, err := client.SubmitMany(ctx, c, write, []draft{{"tides"}, {"moons"}}, keys); !errors.Is(err, flowfabric.ErrIdempotencyConflict) {
			t.Errorf("many: %v", err)
		}
	})
}
