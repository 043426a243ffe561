package admin

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/wire"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore is an engine of four partitions that notes what it was asked.
type fakeStore struct {
	flows // flows, schedules, feeds and workers are tested on servers
	scheduler
	admitter
	feeds
	registry
	mu      sync.Mutex
	asked   []any // what each call was asked
	refusal error // of every call
	reissue []error
	rotated []suspend.KeyRotated // reply of RotateTokenKey
}

func newFake() *fakeStore { return &fakeStore{} }

func (f *fakeStore) ask(what any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, what)
	return f.refusal
}

// asked is who asks and why, by the note that a call takes along.
func asked(ctx context.Context) (by, why string) {
	n, _ := trail.Parse(strings.TrimPrefix(trail.Of(ctx), "\x1f"))
	return n.By, n.Why
}

// admin is one over the fake, or over a store that has more than it.
func (f *fakeStore) admin(t *testing.T, over ...store) *Admin {
	t.Helper()
	var s store = f
	for _, o := range over {
		s = o
	}
	return &Admin{store: s, conn: &link.Connection{Namespace: "default", SubmitTimeout: time.Hour,
		Logger: slog.New(slog.DiscardHandler),
		Life:   t.Context(), Closed: func() error { return nil }, Gates: link.NewGates(s, time.Hour)}}
}

func (f *fakeStore) Partitions() uint16 { return 4 }

func (f *fakeStore) TrailSources() int { return 4 }

func (f *fakeStore) ReadTrail(context.Context, int, engine.Position, int) ([]engine.Change, bool, error) {
	return nil, false, f.refusal
}

func (f *fakeStore) FindGate(context.Context, flowfabric.Gate) error { return f.refusal }

func (f *fakeStore) SetShare(context.Context, string, string, int) []engine.InPartition[struct{}] {
	return nil
}

func (f *fakeStore) HoldExecution(ctx context.Context, _ flowfabric.ExecutionID) (bool, error) {
	by, reason := asked(ctx)
	return false, f.ask("hold " + by + " " + reason)
}

func (f *fakeStore) UnholdExecution(ctx context.Context, _ flowfabric.ExecutionID) (bool, error) {
	by, _ := asked(ctx)
	return false, f.ask("unhold " + by)
}

func (f *fakeStore) ReadSuspension(context.Context, flowfabric.ExecutionID) (suspend.Record, error) {
	return suspend.Record{Waitpoints: []suspend.Waitpoint{{Key: "late"}, {ID: flowfabric.UUID(known), Key: "early"}}},
		f.ask("suspension")
}

// known is the waitpoint of the fake whose token can be made anew.
var known = uuid.MustParse("11111111-2222-4333-8444-555555555555")

type replayOf struct {
	engine.Replay
	by, why string
}

type repriority struct {
	to int
	by string
}

type revoked struct{ session, by, reason string }

type retag struct {
	set    map[string]string
	remove []string
}

func (f *fakeStore) ReplayExecution(ctx context.Context, _ flowfabric.ExecutionID, q engine.Replay) (bool, error) {
	by, why := asked(ctx)
	return false, f.ask(replayOf{q, by, why})
}

func (f *fakeStore) ChangePriority(ctx context.Context, _ flowfabric.ExecutionID, priority int) (int, int, error) {
	by, _ := asked(ctx)
	return 0, 0, f.ask(repriority{priority, by})
}

func (f *fakeStore) SetDelay(_ context.Context, _ flowfabric.ExecutionID, q engine.DelayChange) (bool, error) {
	return false, f.ask(q)
}

func (f *fakeStore) RevokeLease(ctx context.Context, _ flowfabric.ExecutionID, session string) (bool, error) {
	by, reason := asked(ctx)
	return false, f.ask(revoked{session, by, reason})
}

func (f *fakeStore) SetTags(_ context.Context, _ flowfabric.ExecutionID, set map[string]string, remove []string) error {
	return f.ask(retag{set, remove})
}

func (f *fakeStore) ReadHistory(context.Context, flowfabric.ExecutionID) ([]flowfabric.Event, error) {
	return []flowfabric.Event{{Kind: timeline.EventCreated}}, f.ask("history")
}

func (f *fakeStore) PurgeExecution(_ context.Context, _ flowfabric.ExecutionID, keep time.Duration) (bool, error) {
	return false, f.ask(keep)
}

// The fake store has no lanes, queues, holders or lists: those are tested on servers.

func (f *fakeStore) SetLane(_ context.Context, q wire.SetLane) []engine.InPartition[wire.SetLaneReply] {
	err := f.ask(q)
	return []engine.InPartition[wire.SetLaneReply]{{Err: err}}
}

func (f *fakeStore) Lanes(context.Context) []engine.InPartition[[]engine.Lane] { return nil }

func (f *fakeStore) Queues(context.Context, uint16, string, int) ([]engine.Queue, error) {
	return nil, f.refusal
}

func (f *fakeStore) PartitionSessions(context.Context, uint16) ([]flowfabric.WorkerSession, error) {
	return nil, f.refusal
}

func (f *fakeStore) ListExecutions(context.Context, uint16, engine.ListQuery) (engine.ListPage, error) {
	return engine.ListPage{}, f.refusal
}

func (f *fakeStore) DescribePartition(_ context.Context, p uint16) (flowfabric.Partition, error) {
	return flowfabric.Partition{Partition: p}, f.refusal
}

func (f *fakeStore) Explain(context.Context, flowfabric.ExecutionID) (engine.Facts, error) {
	return engine.Facts{}, f.ask("why")
}

func (f *fakeStore) Workers(context.Context) []engine.InPartition[[]flowfabric.Worker] { return nil }

func (f *fakeStore) FreezePartition(ctx context.Context, p uint16) error {
	by, reason := asked(ctx)
	return f.ask(fmt.Sprint("freeze ", p, " ", reason, " ", by))
}

func (f *fakeStore) ThawPartition(_ context.Context, p uint16) error {
	return f.ask(fmt.Sprint("thaw ", p))
}
