package framelog_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	execution = mint.Join(ids.Keyed(64, "default", "stream-test", "one"))
	fence     = flowfabric.Fence{Execution: execution, Session: "i~0", Claim: 1, Epoch: 7, Attempt: 1}
	errLost   = fmt.Errorf("reply lost: %w", flowfabric.ErrTransport)
)

// server is the part of an engine that this package uses, in memory and for one execution: appends with the rules
// of the real one, range reads with the byte cap, published messages in the wire's form.
type server struct {
	mu       sync.Mutex
	attempts []*attempt
	code     codes.Code
	holder   flowfabric.Fence
	clock    uint64
	subs     map[*subscription]struct{}

	// Knobs, set before use or under mu.
	onAppend func(call int) (before, after error) // errors instead of, and after, the append
	onRead   func() error                         // of ReadLog and ReadAttemptStream
	muffle   func(channel, text string) string    // alters a message; "" loses it
	deny     error                                // of Subscribe

	batches                           []int // frames of every append that was accepted or a repeat
	appends, reads, states, subscribe int
	documents, runReads, looks        int
	endedAt                           int64 // ms, when it was settled last
	suspended                         suspend.Record
}

type attempt struct {
	frames    []stream.Frame // retained
	count     uint64         // of all modes
	durable   uint64
	version   uint64
	live      uint64
	summary   stream.Summary
	bytes     uint64
	lastID    stream.Cursor
	closed    bool
	reason    string
	trimmed   uint64
	trimmedID stream.Cursor

	runs     []stream.Resumption
	run      uint32 // of the last frame, 0 before the first
	epoch    uint64 // of run
	recorded engine.FramePlace
}

type subscription struct {
	fn   func(channel, message string)
	drop chan error
}

func newServer() *server {
	return &server{code: codes.Active, attempts: []*attempt{{}}, holder: fence, clock: 1000,
		subs: map[*subscription]struct{}{}}
}

func (s *server) AppendFrames(ctx context.Context, f flowfabric.Fence, first uint64,
	frames []stream.Frame) (engine.Appended, error) {
	if ctx.Err() != nil {
		return engine.Appended{}, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.appends++
	var before, after error
	if s.onAppend != nil {
		before, after = s.onAppend(s.appends)
	}
	if before != nil {
		return engine.Appended{}, before
	}
	out, err := s.append(f, first, frames)
	if after != nil {
		return engine.Appended{}, after
	}
	return out, err
}

func (s *server) append(f flowfabric.Fence, first uint64, frames []stream.Frame) (engine.Appended, error) {
	if state, _ := codes.Project(s.code); state.Terminal() {
		return engine.Appended{}, denied.New("ff_append_frames", "stream_closed", string(s.code))
	}
	if f != s.holder {
		return engine.Appended{}, denied.New("ff_append_frames", "stale_owner_cannot_append", "superseded")
	}
	bytes := 0
	for _, x := range frames {
		bytes += len(x.Payload)
	}
	if len(frames) > limits.MaxAppendFrames || bytes > limits.MaxAppendBytes {
		return engine.Appended{}, denied.New("ff_append_frames", "payload_too_large", "batch")
	}
	a := s.attempts[f.Attempt-1]
	if first > a.count+1 {
		return engine.Appended{}, denied.New("ff_append_frames", "frame_sequence_gap", fmt.Sprint(a.count))
	}
	s.batches = append(s.batches, len(frames))
	skip, durables := min(int(a.count+1-first), len(frames)), a.durable
	fresh := make([]stream.Frame, 0, len(frames))
	for i, x := range frames[skip:] {
		if x.Sequence != first+uint64(skip+i) {
			return engine.Appended{}, denied.New("ff_append_frames", "invalid_input", "sequence")
		}
		s.clock += uint64(i % 2)
		x.ID = stream.Cursor{Ms: s.clock, Seq: x.Sequence}
		a.lastID = x.ID
		switch x.Mode {
		case stream.ModeDurable:
			a.durable++
		case stream.ModeSummary:
			if x.SummaryVersion != a.version+1 {
				return engine.Appended{},
					denied.New("ff_append_frames", "summary_version_conflict", fmt.Sprint(a.version))
			}
			a.version++
			if x.Document != nil {
				a.summary = stream.Summary{Document: x.Document, Version: a.version}
			}
		case stream.ModeBestEffort:
			a.live++
		}
		x.Durables, x.Document = a.durable, nil
		fresh = append(fresh, x)
		a.count++
		a.bytes += uint64(len(x.Payload))
	}
	a.frames = append(a.frames, fresh...)
	if len(fresh) > 0 {
		var entry string
		if a.epoch != f.Epoch {
			a.epoch, a.run = f.Epoch, a.run+1
			if a.run > 1 {
				r := stream.Resumption{Run: a.run, Epoch: f.Epoch, Reason: "released", First: fresh[0].ID,
					Recorded: a.recorded.Sequence, Durables: durables}
				a.runs = append(a.runs, r)
				entry = fmt.Sprintf("%d %s %d %s %d", r.Epoch, r.Reason, r.Recorded, a.recorded.ID, durables)
			}
		}
		s.publish(engine.FrameChannel(execution), encode(f.Attempt, a.run, entry, fresh))
	}
	return engine.Appended{LastID: a.lastID, Count: a.count, LastSequence: a.count, Duplicate: len(fresh) == 0}, nil
}

// encode writes what lua/stream/ff_append_frames.lua publishes.
func encode(attempt, run uint32, entry string, frames []stream.Frame) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d %d:%s", attempt, len(frames), run, len(entry), entry)
	for _, f := range frames {
		for _, part := range []string{f.ID.String(), f.Type, f.Encoding, f.Correlation, "", modeWord(f)} {
			fmt.Fprintf(&b, "%d:%s", len(part), part)
		}
		fmt.Fprintf(&b, "1:%d:%s", len(f.Payload), f.Payload)
	}
	return b.String()
}

func modeWord(f stream.Frame) string {
	switch f.Mode {
	case stream.ModeSummary:
		return fmt.Sprintf("s%d,%d", f.SummaryVersion, f.Durables)
	case stream.ModeBestEffort:
		return fmt.Sprintf("l%d,%d", f.TTL.Milliseconds(), f.Durables)
	}
	if f.Durables == f.Sequence {
		return ""
	}
	return fmt.Sprintf("d,%d", f.Durables)
}

func (s *server) publish(channel, text string) {
	if s.muffle != nil {
		if text = s.muffle(channel, text); text == "" {
			return
		}
	}
	for sub := range s.subs {
		sub.fn(channel, text)
	}
}

// frames appends n frames of the current holder, numbered payloads, and returns the attempt's count.
func (s *server) frames(t testing.TB, n int) uint64 {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[s.holder.Attempt-1]
	for n > 0 {
		batch := make([]stream.Frame, min(n, 50))
		for i := range batch {
			batch[i] = stream.Frame{Sequence: a.count + uint64(i) + 1, Type: "token",
				Payload: fmt.Appendf(nil, "%d", a.count+uint64(i)+1)}
		}
		if _, err := s.append(s.holder, a.count+1, batch); err != nil {
			t.Fatal(err)
		}
		n -= len(batch)
	}
	return a.count
}

// live appends a best-effort frame of the current holder.
func (s *server) live(t testing.TB) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.attempts[s.holder.Attempt-1].count + 1
	if _, err := s.append(s.holder, next, []stream.Frame{{Sequence: next, Type: "tick", Mode: stream.ModeBestEffort,
		TTL: limits.MaxLiveTTL}}); err != nil {
		t.Fatal(err)
	}
}

// settle ends the current attempt; code is what the execution becomes.
func (s *server) settle(code codes.Code, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code = code
	s.clock++
	s.endedAt = int64(s.clock)
	if n := len(s.attempts); n > 0 && !s.attempts[n-1].closed {
		s.attempts[n-1].closed, s.attempts[n-1].reason = true, reason
	}
	s.publish(engine.EventChannel(execution), fmt.Sprintf("%s %d", code, len(s.attempts)))
}

// claim starts the next attempt; nothing is published, as on the real server.
func (s *server) claim() flowfabric.Fence {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempts = append(s.attempts, &attempt{})
	s.code = codes.Active
	s.holder.Attempt, s.holder.Epoch = uint32(len(s.attempts)), s.holder.Epoch+1
	return s.holder
}

// record notes that a step of the holder was recorded.
func (s *server) record() {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[s.holder.Attempt-1]
	a.recorded = engine.FramePlace{Sequence: a.count, ID: a.lastID}
}

// goOn claims the current attempt again.
func (s *server) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.holder.Epoch++
	s.code, s.suspended.State = codes.Active, flowfabric.Active
	s.suspended.ClosedAt = time.UnixMilli(int64(s.clock))
}

// suspend makes the holder wait.
func (s *server) suspend(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.code, s.suspended = "S1", suspend.Record{ID: mint.UUID(), Name: name, State: flowfabric.Suspended}
	s.publish(engine.EventChannel(execution), fmt.Sprintf("S1 %d", len(s.attempts)))
}

// OpenFrames has nothing to open.
func (*server) OpenFrames([]stream.Frame) {}

func (s *server) ReadSuspension(ctx context.Context, _ flowfabric.ExecutionID) (suspend.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	return s.suspended, s.readable(ctx)
}

// trim keeps the newest frames of an attempt.
func (s *server) trim(attempt, keep int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[attempt]
	cut := max(len(a.frames)-keep, 0)
	if cut > 0 {
		a.trimmedID = a.frames[cut-1].ID
	}
	a.frames, a.trimmed = a.frames[cut:], a.trimmed+uint64(cut)
}

// expire loses the frames of a mode.
func (s *server) expire(attempt int, mode stream.FrameMode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.attempts[attempt]
	a.frames = slices.DeleteFunc(a.frames, func(f stream.Frame) bool { return f.Mode == mode })
}

func (s *server) ReadSummary(_ context.Context, _ flowfabric.ExecutionID, index uint32) (stream.Summary, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.documents++
	return s.attempts[index-1].summary, nil
}

func (s *server) ReadLog(ctx context.Context, q engine.LogRange) ([]stream.Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	if q.Execution != execution || int(q.Attempt) > len(s.attempts) {
		return nil, nil
	}
	var out []stream.Frame
	bytes := 0
	for _, f := range s.attempts[q.Attempt-1].frames {
		if f.Mode != q.Mode || f.ID.Compare(q.After) <= 0 || q.To != nil && f.ID.Compare(*q.To) > 0 {
			continue
		}
		if bytes += len(f.Payload); len(out) == q.Limit || len(out) > 0 && bytes > limits.MaxReadBytes {
			break
		}
		out = append(out, f)
	}
	return out, nil
}

func (s *server) readable(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if s.onRead != nil {
		return s.onRead()
	}
	return nil
}

func (s *server) ReadAttemptStream(ctx context.Context, id flowfabric.ExecutionID,
	index uint32) (engine.StreamMeta, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.states++
	if err := s.readable(ctx); err != nil {
		return engine.StreamMeta{}, err
	}
	if id != execution {
		return engine.StreamMeta{}, denied.New("ff_read_attempt_stream", "execution_not_found")
	}
	m := engine.StreamMeta{Attempts: uint32(len(s.attempts)), Kept: 1, Code: s.code, Epoch: s.holder.Epoch}
	if state, _ := codes.Project(s.code); state.Terminal() {
		m.End = engine.StreamEnd{At: time.UnixMilli(s.endedAt), Category: "c", Message: "m"}
	}
	if s.code == codes.RetryBackoff {
		m.Due, m.Category, m.Message = time.UnixMilli(77_000), "io", "no ink"
	}
	if int(index) > len(s.attempts) {
		state, _ := codes.Project(s.code)
		m.Closed = state.Terminal()
		return m, nil
	}
	a := s.attempts[index-1]
	m.Exists, m.Count, m.Bytes, m.LastSequence, m.LastID, m.Trimmed, m.TrimmedID = a.count > 0, a.durable, a.bytes,
		a.count, a.lastID, a.trimmed, a.trimmedID
	m.Summary, m.Live, m.Runs, m.Recorded = a.version, a.live, a.run, a.recorded
	m.Closed, m.ClosedReason = a.closed, a.reason
	return m, nil
}

func (s *server) ReadRuns(ctx context.Context, id flowfabric.ExecutionID, index uint32, after stream.Cursor,
	limit int) ([]stream.Resumption, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runReads++
	if err := s.readable(ctx); err != nil {
		return nil, err
	}
	var out []stream.Resumption
	for _, r := range s.attempts[index-1].runs {
		if r.First.Compare(after) > 0 && len(out) < limit {
			out = append(out, r)
		}
	}
	return out, nil
}

func (s *server) Subscribe(ctx context.Context, partition uint16, channels []string, ready func(),
	fn func(channel, message string)) error {
	sub := &subscription{fn: fn, drop: make(chan error, 1)}
	s.mu.Lock()
	s.subscribe++
	if s.deny != nil {
		defer s.mu.Unlock()
		return s.deny
	}
	if partition != execution.Partition() || len(channels) != 2 {
		defer s.mu.Unlock()
		return flowfabric.ErrInvalidInput
	}
	s.subs[sub] = struct{}{}
	s.mu.Unlock()
	ready()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, sub)
	}()
	select {
	case err := <-sub.drop:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// disconnect ends all subscriptions; further ones fail with deny until reconnect.
func (s *server) disconnect(deny error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = deny
	for sub := range s.subs {
		delete(s.subs, sub)
		sub.drop <- errLost
	}
}

func (s *server) reconnect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deny = nil
}

func (s *server) count(field *int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *field
}

func (s *server) listeners() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subs)
}

func (s *server) stored(attempt int) []stream.Frame {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]stream.Frame(nil), s.attempts[attempt].frames...)
}

func contiguous(t testing.TB, frames []stream.Frame, from, to uint64) {
	t.Helper()
	if uint64(len(frames)) != to-from+1 {
		t.Fatalf("%d frames, want %d..%d", len(frames), from, to)
	}
	for i, f := range frames {
		if f.Sequence != from+uint64(i) {
			t.Fatalf("frame %d has sequence %d, want %d", i, f.Sequence, from+uint64(i))
		}
	}
}
