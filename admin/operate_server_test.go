package admin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/stream"
)

// tailed is what a tail of all attempts says, for example "0:wet end".
func tailed(ctx context.Context, t *testing.T, x *client.Execution[verdict]) string {
	t.Helper()
	var said []string
	for event, err := range x.Tail(ctx) {
		must.No(t, err)
		switch event.Kind {
		case stream.TailFrame:
			said = append(said, string('0'+rune(event.Attempt))+":"+string(event.Frame.Payload))
		case stream.TailEnd:
			said = append(said, "end")
		}
	}
	return strings.Join(said, " ")
}

func TestReplayOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		if err := admin.New(c).Replay(ctx, x.ID(), admin.Replay{}); !errors.Is(err, denied.NotTerminal) ||
			!strings.HasSuffix(err.Error(), "it is waiting; cancel it first") {
			t.Errorf("replay of one that waits: %v", err)
		}
		finish(ctx, t, e, x.ID(), "wet")
		if v, err := x.Result(ctx); err != nil || v.Text != "wet" {
			t.Fatalf("%+v, %v", v, err)
		}
		if err := admin.New(c).Replay(ctx, x.ID(), admin.Replay{}); !errors.Is(err, denied.ReplayNotAllowed) {
			t.Errorf("replay of a success: %v", err)
		}
		request := mint.UUID()
		for range 2 { // the second is the same request
			must.No(t, admin.New(c).Replay(ctx, x.ID(), admin.Replay{Force: true, Request: request},
				flowfabric.Reason("tide tables changed")))
		}
		if s, err := x.Get(ctx); err != nil || s.Replays != 1 || s.State.Public != flowfabric.Waiting {
			t.Fatalf("%+v, %v", s, err)
		}
		// timed: nobody completes it, so that only its context ends the wait
		short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		if v, err := x.Result(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("result of a replay that waits: %+v, %v", v, err)
		}
		if held := finish(ctx, t, e, x.ID(), "dry"); held.Type != flowfabric.AttemptReplay || held.Fence.Attempt != 2 {
			t.Errorf("claimed %+v", held)
		}
		if v, err := x.Result(ctx); err != nil || v.Text != "dry" {
			t.Errorf("%+v, %v", v, err)
		}
		if got := tailed(ctx, t, x); got != "1:wet 2:dry end" {
			t.Errorf("tail %q", got)
		}
		events, err := admin.New(c).History(ctx, x.ID())
		must.No(t, err)
		var lines []string
		for _, event := range events {
			lines = append(lines, event.String())
		}
		all := strings.Join(lines, "\n")
		for _, want := range []string{"Z created, by billing", "Z replayed",
			", by billing from go ", ": tide tables changed", "was completed since",
			"Z ended: attempt 2 on tester, completed"} {
			if !strings.Contains(all, want) {
				t.Errorf("the history lacks %q:\n%s", want, all)
			}
		}
	})
}

func TestChangePriorityAndTagsOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides", flowfabric.Tags(map[string]string{"team.name": "sea", "team.old": "1"}))
		must.No(t, admin.New(c).SetPriority(ctx, x.ID(), limits.MaxPriority, flowfabric.By("anna")))
		must.No(t, admin.New(c).SetTags(ctx, x.ID(), map[string]string{"team.name": "moon", "team.new": "2"},
			[]string{"team.old", "team.none"}))
		s, err := x.Get(ctx)
		if err != nil || s.Priority != limits.MaxPriority || len(s.Tags) != 2 || s.Tags["team.name"] != "moon" ||
			s.Tags["team.new"] != "2" {
			t.Errorf("%+v, %v", s, err)
		}
		if err := admin.New(c).SetTags(ctx, x.ID(), map[string]string{"Team": "x"}, nil); !errors.Is(err,
			denied.TagKey) {
			t.Errorf("a bad key: %v", err)
		}
		held := finish(ctx, t, e, x.ID(), "wet")
		if held.Priority != limits.MaxPriority || held.Tags["team.name"] != "moon" {
			t.Errorf("claimed %+v", held)
		}
		if err := admin.New(c).SetPriority(ctx, x.ID(), 1); !errors.Is(err, flowfabric.ErrTerminal) ||
			!strings.Contains(err.Error(), "it is completed") {
			t.Errorf("after the end: %v", err)
		}
		if err := admin.New(c).SetTags(ctx, x.ID(), nil, []string{"team.new"}); err != nil {
			t.Errorf("tags after the end: %v", err)
		}
		nobody := mint.ID(1)
		for _, err := range []error{admin.New(c).SetPriority(ctx, nobody, 1), admin.New(c).SetTags(ctx, nobody, nil,
			nil), admin.New(c).Replay(ctx, nobody, admin.Replay{}), admin.New(c).Revoke(ctx, nobody, ""),
			admin.New(c).Purge(ctx, nobody, 0),
			func() error { _, err := admin.New(c).History(ctx, nobody); return err }()} {
			if !errors.Is(err, flowfabric.ErrNotFound) {
				t.Errorf("%v, want ErrNotFound", err)
			}
		}
	})
}

func TestRevokeOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		x := submit(ctx, t, c, "tides")
		if err := admin.New(c).Revoke(ctx, x.ID(), "", flowfabric.Reason("stuck")); !errors.Is(err, denied.NotActive) ||
			!strings.HasSuffix(err.Error(), "nobody runs it, it is waiting") {
			t.Errorf("revoke of one that waits: %v", err)
		}
		held := claim(ctx, t, e, x.ID())
		must.No(t, e.UpdateProgress(ctx, held.Fence, 40, "page 4"))
		if s, err := x.Get(ctx); err != nil || s.Progress.Percent == nil || *s.Progress.Percent != 40 ||
			s.Progress.Message != "page 4" {
			t.Errorf("%+v, %v", s.Progress, err)
		}
		if err := admin.New(c).Revoke(ctx, x.ID(), "somebody~1", flowfabric.Reason("stuck")); !errors.Is(err,
			denied.StaleLease) {
			t.Errorf("revoke of another's: %v", err)
		}
		for range 2 { // twice is no error
			must.No(t, admin.New(c).Revoke(ctx, x.ID(), held.Fence.Session, flowfabric.Reason("stuck")))
		}
		if err := e.UpdateProgress(ctx, held.Fence, 1, ""); !errors.Is(err, denied.LeaseRevoked) {
			t.Errorf("the holder's write: %v", err)
		}
		if s, err := x.Get(ctx); err != nil || s.State.Public != flowfabric.Active || s.State.BlockingReason == "" {
			t.Errorf("%+v, %v", s, err)
		}
		must.No(t, x.Cancel(ctx))
		if err := admin.New(c).Revoke(ctx, x.ID(), "", flowfabric.Reason("stuck")); !errors.Is(err,
			flowfabric.ErrTerminal) {
			t.Errorf("revoke of what has ended: %v", err)
		}
	})
}

// A purged execution keeps its id for a while; its key is free.
func TestPurgeOnAServer(t *testing.T) {
	onServers(t, func(ctx context.Context, t *testing.T, c *client.Client, e *engine.Engine) {
		key := flowfabric.IdempotencyKey("tides-1")
		x := submit(ctx, t, c, "tides", key)
		if err := admin.New(c).Purge(ctx, x.ID(), 0); !errors.Is(err, denied.NotTerminal) {
			t.Errorf("purge of one that waits: %v", err)
		}
		finish(ctx, t, e, x.ID(), "wet")
		for range 2 { // twice is no error
			must.No(t, admin.New(c).Purge(ctx, x.ID(), 0))
		}
		if _, err := x.Get(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("get: %v", err)
		}
		if _, err := x.Result(ctx); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("result: %v", err)
		}
		if _, err := admin.New(c).History(ctx, x.ID()); !errors.Is(err, flowfabric.ErrResultPurged) {
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
		for verb, err := range map[string]error{"replay": admin.New(c).Replay(ctx, x.ID(), admin.Replay{Force: true}),
			"cancel": x.Cancel(ctx), "revoke": admin.New(c).Revoke(ctx, x.ID(), ""),
			"change priority": admin.New(c).SetPriority(ctx, x.ID(), 1),
			"set tags":        admin.New(c).SetTags(ctx, x.ID(), nil, []string{"team.name"})} {
			if !errors.Is(err, flowfabric.ErrNotFound) {
				t.Errorf("%s: %v", verb, err)
			}
		}
		again := submit(ctx, t, c, "moons", key) // the key is free
		if again.Duplicate() || again.ID() == x.ID() {
			t.Errorf("submitted %s, duplicate %t, want a new one", again.ID(), again.Duplicate())
		}
		if _, err := client.Submit(ctx, c, write, draft{Topic: "tides"}, key); !errors.Is(err, denied.Idempotency) {
			t.Errorf("another payload under the key: %v", err)
		} else if !strings.HasSuffix(err.Error(), `key "tides-1" names an execution with another payload`) {
			t.Errorf("the key is not named: %v", err)
		}
		keys := client.Keys(func(int) flowfabric.Key { return flowfabric.IdempotencyKey("tides-1") })
		if _, err := client.SubmitMany(ctx, c, write, []draft{{Topic: "tides"}, {Topic: "moons"}},
			keys); !errors.Is(err, denied.Idempotency) {
			t.Errorf("many: %v", err)
		}
	})
}
