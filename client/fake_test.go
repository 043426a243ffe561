package client

import (
	"context"
	"iter"
	"log/slog"
	"testing"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/link"
	"github.com/flowfabric/flowfabric-go/internal/storetest"
	"github.com/flowfabric/flowfabric-go/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fakeStore is an in-memory engine of four partitions. A test drives its create calls as [storetest.Creator] says,
// and events with publish.
type fakeStore struct {
	mailer
	stepReader      // nil: steps are tested on a server
	flows           // nil: flows are tested on servers
	scheduler       // nil: schedules are tested on a server
	link.GateFinder // nil: gates are tested on servers

	storetest.Creator                                                              // its mutex guards the rest
	ended             map[flowfabric.ExecutionID]engine.Snapshot                   // terminal ones
	results           map[flowfabric.ExecutionID][]byte                            // of ended ones
	subs              map[string]map[*func(string, string)]context.CancelCauseFunc // live subscriptions
	reads             int                                                          // ReadExecution calls
	subCalls          int                                                          // Subscribe calls
	readErr           func() error                                                 // of ReadExecution

	cancel func(context.Context, flowfabric.ExecutionID, engine.Cancellation) (bool, error)

	// results of single attempts, beside results
	byAttempt map[flowfabric.ExecutionID]map[uint32][]byte
	// operator calls, what each was asked
	asked   []any
	refusal error // of operator calls
}

func newFake() *fakeStore {
	return &fakeStore{
		ended:   map[flowfabric.ExecutionID]engine.Snapshot{},
		results: map[flowfabric.ExecutionID][]byte{},
		subs:    map[string]map[*func(string, string)]context.CancelCauseFunc{},
	}
}

func (f *fakeStore) client(t *testing.T) *Client {
	t.Helper()
	cfg := Config{URL: "redis://fake", Logger: slog.New(slog.DiscardHandler)}.withDefaults()
	c := newClient(cfg, f, noTails{}, nil)
	t.Cleanup(c.Close)
	return c
}

func (f *fakeStore) Partitions() uint16         { return 4 }
func (f *fakeStore) Ping(context.Context) error { return nil }

func (f *fakeStore) VersionOf(context.Context, string) string { return "" }

func (f *fakeStore) ReadExecution(_ context.Context, id flowfabric.ExecutionID) (engine.Snapshot, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.reads++
	if f.readErr != nil {
		if err := f.readErr(); err != nil {
			return engine.Snapshot{}, err
		}
	}
	if s, ok := f.ended[id]; ok {
		return s, nil
	}
	if _, ok := f.Stored[id]; !ok {
		return engine.Snapshot{}, denied.New("fake", "execution_not_found")
	}
	return snapshot(id, codes.WaitingFirst, 0), nil
}

// snapshot is what is read of an execution in this state.
func snapshot(id flowfabric.ExecutionID, code codes.Code, attempts uint32) engine.Snapshot {
	return engine.Snapshot{Code: code,
		Snapshot: flowfabric.Snapshot{ID: id,
			ExecutionSummary: flowfabric.ExecutionSummary{State: codes.Shown(code), Attempts: attempts}}}
}

func (f *fakeStore) ReadInput(_ context.Context, id flowfabric.ExecutionID) ([]byte, bool, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	x, ok := f.Stored[id]
	return x.Payload, ok && len(x.Payload) > 0, nil
}

func (f *fakeStore) ReadResult(_ context.Context, id flowfabric.ExecutionID, attempt uint32) ([]byte, bool, error) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if b, ok := f.byAttempt[id][attempt]; ok {
		return b, true, nil
	}
	if f.ended[id].Attempts != attempt {
		return nil, false, nil
	}
	b, ok := f.results[id]
	return b, ok, nil
}

func (f *fakeStore) PublishEvent(context.Context, engine.Event) (engine.PublishedNow, error) {
	return engine.PublishedNow{}, f.ask("publish")
}

func (f *fakeStore) PutTrigger(context.Context, engine.Trigger) (bool, error) {
	return false, f.ask("trigger")
}

func (f *fakeStore) RemoveTrigger(context.Context, engine.Subject, string) (bool, error) {
	return false, f.ask("trigger")
}

func (f *fakeStore) RewindExecution(context.Context, flowfabric.ExecutionID, engine.Rewind) (engine.Rewound, error) {
	return engine.Rewound{}, nil
}

func (f *fakeStore) CancelExecution(ctx context.Context, id flowfabric.ExecutionID,
	c engine.Cancellation) (bool, error) {
	return f.cancel(ctx, id, c)
}

func (f *fakeStore) StopTurn(context.Context, flowfabric.ExecutionID, flowfabric.UUID) (engine.Stop, error) {
	return engine.Stop{}, f.ask("stop")
}

func (f *fakeStore) ForkExecution(context.Context, flowfabric.ExecutionID, engine.Fork) (engine.Forked, error) {
	return engine.Forked{}, nil
}

func (f *fakeStore) Log(context.Context, flowfabric.ExecutionID, stream.LogRange) iter.Seq2[engine.LogPage, error] {
	return func(func(engine.LogPage, error) bool) {}
}

func (f *fakeStore) ask(what any) error {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	f.asked = append(f.asked, what)
	return f.refusal
}

func (f *fakeStore) Subscribe(ctx context.Context, _ uint16, channels []string, ready func(),
	fn func(channel, message string)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.Mu.Lock()
	f.subCalls++
	for _, c := range channels {
		if f.subs[c] == nil {
			f.subs[c] = map[*func(string, string)]context.CancelCauseFunc{}
		}
		f.subs[c][&fn] = cancel
	}
	f.Mu.Unlock()
	ready()
	<-ctx.Done()
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, c := range channels {
		delete(f.subs[c], &fn)
	}
	return context.Cause(ctx)
}

// end makes an execution terminal after one attempt, telling nobody.
func (f *fakeStore) end(id flowfabric.ExecutionID, code codes.Code, result string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	s := snapshot(id, code, 1)
	s.Failure = flowfabric.Failure{Category: "handler_error", Message: "boom"}
	s.CancelReason, s.CancelSource = "no need", "operator_override"
	f.ended[id] = s
	if result != "" {
		f.results[id] = []byte(result)
	}
}

// attempt stores the result of one attempt, whatever the execution's state.
func (f *fakeStore) attempt(id flowfabric.ExecutionID, index uint32, result string) {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	if f.byAttempt == nil {
		f.byAttempt = map[flowfabric.ExecutionID]map[uint32][]byte{id: {}}
	}
	f.byAttempt[id][index] = []byte(result)
}

// publish sends an event to the live subscriptions of an execution and returns how many there were.
func (f *fakeStore) publish(id flowfabric.ExecutionID, message string) int {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	subs := f.subs[engine.EventChannel(id)]
	for fn := range subs {
		(*fn)(engine.EventChannel(id), message)
	}
	return len(subs)
}

// disconnect ends all subscriptions.
func (f *fakeStore) disconnect() {
	f.Mu.Lock()
	defer f.Mu.Unlock()
	for _, subs := range f.subs {
		for _, cancel := range subs {
			cancel(flowfabric.ErrTransport)
		}
	}
}

type noTails struct{}

func (noTails) Close() {}
func (noTails) Tail(context.Context, flowfabric.ExecutionID, framelog.TailOptions) iter.Seq2[stream.TailEvent, error] {
	return func(func(stream.TailEvent, error) bool) {}
}
