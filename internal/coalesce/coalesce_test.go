package coalesce

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/storetest"
)

// bubble runs a test on virtual time with a coalescer over a fake store.
func bubble(t *testing.T, test func(t *testing.T, f *storetest.Creator, c *Coalescer)) {
	synctest.Test(t, func(t *testing.T) {
		f := &storetest.Creator{}
		life, end := context.WithCancel(t.Context())
		defer end()
		c := newFor(life, f)
		test(t, f, c)
		c.Close()
	})
}

type answer struct {
	engine.Created
	err error
}

// launch submits in the background and returns once the submit is queued or its call is made.
func launch(wg *sync.WaitGroup, ctx context.Context, c *Coalescer, s *Submission) *answer {
	a := &answer{}
	wg.Go(func() { a.Created, a.err = c.Submit(ctx, s) })
	synctest.Wait()
	return a
}

type ctxKey struct{}

func TestLoneSubmitIsOneCallOfItsCaller(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		began := time.Now()
		ctx := context.WithValue(t.Context(), ctxKey{}, "mine")
		created, err := c.Submit(ctx, sub("a"))
		if err != nil || created.ID.IsZero() {
			t.Fatalf("submit: %v, %v", created, err)
		}
		calls := f.Seen()
		if len(calls) != 1 || len(calls[0].IDs) != 1 || calls[0].Ctx.Value(ctxKey{}) != "mine" {
			t.Errorf("calls %+v, want one item in one call on the caller's own context", calls)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("a lone submit waited %s", waited)
		}
	})
}

func TestPartitionsRotate(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		for range 8 {
			if _, err := c.Submit(t.Context(), sub("a")); err != nil {
				t.Fatal(err)
			}
		}
		calls := f.Seen()
		for i, call := range calls {
			if want := (calls[0].Partition + uint16(i)) % 4; call.Partition != want || call.IDs[0].Partition() != want {
				t.Errorf("call %d went to partition %d with id %s, want %d", i, call.Partition, call.IDs[0], want)
			}
		}
	})
}

// Submits that come alone stay where the one before went, at most 16 in a row: a worker has a session there.
func TestLoneSubmitsStayInTheirPartition(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		const lone = 3*maxStay + 1
		for range lone {
			if _, err := c.Submit(t.Context(), sub("a")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(loneAfter)
		}
		var runs []int
		calls := f.Seen()
		for i, call := range calls {
			switch {
			case i == 0:
				runs = append(runs, 1)
			case call.Partition == calls[i-1].Partition:
				runs[len(runs)-1]++
			case call.Partition == (calls[i-1].Partition+1)%4:
				runs = append(runs, 1)
			default:
				t.Errorf("call %d went to partition %d, after %d", i, call.Partition, calls[i-1].Partition)
			}
		}
		if want := []int{maxStay, maxStay, maxStay, 1}; !slices.Equal(runs, want) {
			t.Errorf("%v submits in a row in one partition, want %v", runs, want)
		}
	})
}

// What comes sooner, or together, goes on to the next partition, and so does a batch after a pause.
func TestSubmitsInQuickSuccessionRotate(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		submit := func() {
			t.Helper()
			if _, err := c.Submit(t.Context(), sub("a")); err != nil {
				t.Fatal(err)
			}
		}
		submit()
		time.Sleep(loneAfter - time.Microsecond)
		submit() // too soon
		time.Sleep(time.Second)
		if err := c.SubmitMany(t.Context(), []*Entry{{Sub: sub("a")}, {Sub: sub("b")}}); err != nil {
			t.Fatal(err)
		}
		calls := f.Seen()
		for i, call := range calls {
			if want := (calls[0].Partition + uint16(i)) % 4; call.Partition != want {
				t.Errorf("call %d went to partition %d, want %d", i, call.Partition, want)
			}
		}
	})
}

func TestSubmitsJoinTheNextBatchInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		answers := []*answer{launch(&wg, t.Context(), c, sub("first"))}
		var want []string
		for i := range 5 {
			want = append(want, fmt.Sprint("queued-", i))
			answers = append(answers, launch(&wg, t.Context(), c, sub(want[i])))
		}
		if n := len(f.Seen()); n != 1 {
			t.Fatalf("%d calls while the first is in flight, want 1", n)
		}
		close(f.Gate)
		wg.Wait()
		calls := f.Seen()
		if len(calls) != 2 || !reflect.DeepEqual(calls[1].Payloads, want) {
			t.Fatalf("calls %+v, want a second one with %v", calls, want)
		}
		if calls[0].Partition == calls[1].Partition {
			t.Error("both batches went to one partition")
		}
		for i, a := range answers[1:] {
			if a.err != nil || a.ID != calls[1].IDs[i] || a.ID.Partition() != calls[1].Partition {
				t.Errorf("answer %d: %v, %v; want id %s", i, a.ID, a.err, calls[1].IDs[i])
			}
			if i > 0 && ids.UUID(a.ID).String() <= ids.UUID(answers[i].ID).String() {
				t.Errorf("ids are not in order of submission: %s after %s", a.ID, answers[i].ID)
			}
		}
	})
}

func TestErrorsArePerItem(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		f.Refuse = func(x engine.NewExecution) error {
			if string(x.Payload) == "bad" {
				return denied.New("fake", "too_many_routes")
			}
			return nil
		}
		var wg sync.WaitGroup
		launch(&wg, t.Context(), c, sub("first"))
		good := launch(&wg, t.Context(), c, sub("good"))
		bad := launch(&wg, t.Context(), c, sub("bad"))
		also := launch(&wg, t.Context(), c, sub("also good"))
		close(f.Gate)
		wg.Wait()
		if good.err != nil || also.err != nil {
			t.Errorf("the neighbours of a refused item failed: %v, %v", good.err, also.err)
		}
		if !errors.Is(bad.err, denied.TooManyRoutes) {
			t.Errorf("refused item: %v, want ErrTooManyRoutes", bad.err)
		}
	})
}

func TestCallerLeavesTheQueue(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		launch(&wg, t.Context(), c, sub("first"))
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := launch(&wg, ctx, c, sub("gone"))
		stays := launch(&wg, t.Context(), c, sub("stays"))
		why := errors.New("lost interest")
		cancel(why)
		synctest.Wait()
		if !errors.Is(gone.err, context.Canceled) || !errors.Is(gone.err, why) ||
			!strings.Contains(gone.err.Error(), "nothing was sent") {
			t.Errorf("caller that left: %v", gone.err)
		}
		if _, unknown := errors.AsType[*unknownError](gone.err); unknown {
			t.Error("an item that was never sent has no unknown outcome")
		}
		close(f.Gate)
		wg.Wait()
		if got := f.Seen()[1].Payloads; stays.err != nil || !reflect.DeepEqual(got, []string{"stays"}) {
			t.Errorf("batch %v, error %v; want only the item that stayed", got, stays.err)
		}
	})
}

func TestCallerLeavesABatchInFlight(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		launch(&wg, t.Context(), c, sub("first"))
		ctx, cancel := context.WithCancel(t.Context())
		gone := launch(&wg, ctx, c, sub("gone"))
		stays := launch(&wg, t.Context(), c, sub("stays"))
		f.Gate <- struct{}{} // answers the first call; the batch of two is in flight now
		synctest.Wait()
		cancel()
		synctest.Wait()
		unknown, ok := errors.AsType[*unknownError](gone.err)
		if !ok || !errors.Is(gone.err, context.Canceled) || !strings.Contains(gone.err.Error(), "may still happen") {
			t.Fatalf("caller that left: %v", gone.err)
		}
		close(f.Gate)
		wg.Wait()
		if stays.err != nil {
			t.Errorf("a caller took its batch with it: %v", stays.err)
		}
		if _, stored := f.Stored[unknown.ID]; !stored {
			t.Errorf("id %s of the error is not the one that was created", unknown.ID)
		}
	})
}

func TestLoneCallerLeaves(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		// timed: virtual time
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := c.Submit(ctx, sub("a"))
		unknown, ok := errors.AsType[*unknownError](err)
		if !ok || !errors.Is(err, context.DeadlineExceeded) || unknown.ID != f.Seen()[0].IDs[0] {
			t.Errorf("error %v, want an unknown outcome of %s", err, f.Seen()[0].IDs[0])
		}
	})
}

func TestRepeatsKeepTheIDs(t *testing.T) {
	for _, kind := range []error{flowfabric.ErrTransport, flowfabric.ErrPartitionFrozen} {
		bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
			f.Fail = func(_ context.Context, call int) error { // the fake stores first: the reply is what gets lost
				if call < 3 {
					return fmt.Errorf("%w: reply lost", kind)
				}
				return nil
			}
			f.Gate = make(chan struct{})
			var wg sync.WaitGroup
			lone := launch(&wg, t.Context(), c, sub("lone"))
			first, second := launch(&wg, t.Context(), c, sub("1")), launch(&wg, t.Context(), c, sub("2"))
			close(f.Gate)
			wg.Wait()
			if lone.err != nil || first.err != nil || second.err != nil {
				t.Fatalf("%v, %v, %v", lone.err, first.err, second.err)
			}
			calls := f.Seen()
			if len(calls) != 5 {
				t.Fatalf("%d calls, want 4 for the lone one and 1 for the batch", len(calls))
			}
			for i, call := range calls[:4] {
				if !reflect.DeepEqual(call.IDs, calls[0].IDs) {
					t.Errorf("repeat %d has ids %v, want %v", i, call.IDs, calls[0].IDs)
				}
			}
			if len(f.Stored) != 3 {
				t.Errorf("%d executions, want 3", len(f.Stored))
			}
		})
	}
}

func TestGivesUpAfterTheTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Fail = func(context.Context, int) error { return fmt.Errorf("%w: down", flowfabric.ErrTransport) }
		began := time.Now()
		_, err := c.Submit(t.Context(), sub("a"))
		if _, ok := errors.AsType[*unknownError](err); !ok || !errors.Is(err, flowfabric.ErrTransport) {
			t.Errorf("error %v, want an unknown outcome that wraps ErrTransport", err)
		}
		// timed: virtual time
		if took := time.Since(began); took < 5*time.Second || took > 15*time.Second {
			t.Errorf("gave up after %s, want at most 15s", took)
		}
	})
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) { // a batch hangs
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		launch(&wg, t.Context(), c, sub("first"))
		queued := launch(&wg, t.Context(), c, sub("queued"))
		f.Gate <- struct{}{}
		wg.Wait()
		if _, ok := errors.AsType[*unknownError](queued.err); !ok || !errors.Is(queued.err, flowfabric.ErrTransport) {
			t.Errorf("error %v, want an unknown outcome that wraps ErrTransport", queued.err)
		}
	})
}

func TestFinalErrorsAreNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Fail = func(context.Context, int) error { return denied.New("fake", "out_of_memory") }
		_, err := c.Submit(t.Context(), sub("a"))
		if _, unknown := errors.AsType[*unknownError](err); unknown || !errors.Is(err, flowfabric.ErrOutOfMemory) {
			t.Errorf("error %v, want ErrOutOfMemory with a known outcome", err)
		}
		if n := len(f.Seen()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

// A repeat that the server refused unread says nothing of the try before it, which was not answered.
func TestRefusalAfterALostAnswerLeavesTheOutcomeUnknown(t *testing.T) {
	for _, refused := range []error{flowfabric.ErrOutOfMemory, flowfabric.ErrAuth} {
		bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
			f.Fail = func(_ context.Context, call int) error {
				if call == 0 {
					return fmt.Errorf("%w: reply lost", flowfabric.ErrTransport)
				}
				return refused
			}
			_, err := c.Submit(t.Context(), sub("a"))
			unknown, ok := errors.AsType[*unknownError](err)
			if !ok || !errors.Is(err, refused) || !errors.Is(err, flowfabric.ErrTransport) || len(f.Seen()) != 2 {
				t.Fatalf("%v after %d calls, want an unknown outcome", err, len(f.Seen()))
			}
			if _, stored := f.Stored[unknown.ID]; !stored {
				t.Errorf("id %s of the error is not the one that was created", unknown.ID)
			}
		})
	}
}

func TestLongQueueUsesMoreCalls(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		inFlight := func(want int) {
			t.Helper()
			synctest.Wait()
			if f.InFlight != want {
				t.Fatalf("%d calls in flight, want %d", f.InFlight, want)
			}
		}
		more := func(n int) {
			for range n {
				wg.Go(func() { _, _ = c.Submit(t.Context(), sub("x")) })
			}
		}
		more(1)
		inFlight(1)
		more(longQueue - 1)
		inFlight(1)
		more(1)
		inFlight(2)
		more(2 * longQueue)
		inFlight(4)
		more(150)
		inFlight(4) // and no more than that
		f.Gate <- struct{}{}
		inFlight(4)
		if n := len(f.Seen()[4].IDs); n != limits.MaxBatch {
			t.Errorf("the fifth batch has %d items, want %d", n, limits.MaxBatch)
		}
		close(f.Gate)
		wg.Wait()
		if calls := f.Seen(); len(calls) != 6 || len(calls[5].IDs) != 50 || len(f.Stored) != 1+3*longQueue+150 {
			t.Errorf("%d calls, %d executions", len(calls), len(f.Stored))
		}
	})
}

func TestSlowCallHoldsNobodyBack(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		launch(&wg, t.Context(), c, sub("hangs"))
		launch(&wg, t.Context(), c, sub("waits"))
		time.Sleep(slowCall + time.Millisecond)
		launch(&wg, t.Context(), c, sub("arrives"))
		if calls := f.Seen(); len(calls) != 2 || len(calls[1].IDs) != 2 {
			t.Errorf("calls %+v, want a second one beside the slow one", calls)
		}
		close(f.Gate)
		wg.Wait()
	})
}

func TestBatchesAreBoundedInBytes(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		for _, size := range []int{1, 400 << 10, 400 << 10, 400 << 10, limits.MaxPayload, 1} {
			launch(&wg, t.Context(), c, sub(strings.Repeat("x", size)))
		}
		close(f.Gate)
		wg.Wait()
		var got []int
		for _, call := range f.Seen() {
			got = append(got, len(call.IDs))
		}
		if want := []int{1, 2, 1, 1, 1}; !reflect.DeepEqual(got, want) {
			t.Errorf("items per call %v, want %v", got, want)
		}
	})
}

func TestBatchesAreBoundedInTags(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		for range 1 + 32 + 1 { // the first goes at once, 31 others have 1,984 tags
			s := sub("x")
			s.Item.Tags = map[string]string{}
			for i := range limits.MaxTags {
				s.Item.Tags[fmt.Sprint("app.k", i)] = "v"
			}
			launch(&wg, t.Context(), c, s)
		}
		close(f.Gate)
		wg.Wait()
		var got []int
		for _, call := range f.Seen() {
			got = append(got, len(call.IDs))
		}
		if want := []int{1, 31, 2}; !reflect.DeepEqual(got, want) {
			t.Errorf("items per call %v, want %v", got, want)
		}
	})
}

func TestKeyedSubmitsMeet(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		key, neighbour, elsewhere := keyIn(2, 0), keyIn(2, 1), keyIn(3, 0)
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		first := launch(&wg, t.Context(), c, keyedSub(key, "same"))
		again := launch(&wg, t.Context(), c, keyedSub(key, "same"))
		other := launch(&wg, t.Context(), c, keyedSub(key, "different"))
		beside := launch(&wg, t.Context(), c, keyedSub(neighbour, "x"))
		far := launch(&wg, t.Context(), c, keyedSub(elsewhere, "x"))
		plain := launch(&wg, t.Context(), c, sub("x"))
		if f.InFlight != 3 {
			t.Errorf("%d calls in flight, want one for each of two partitions and the plain one", f.InFlight)
		}
		close(f.Gate)
		wg.Wait()
		synctest.Wait()
		if first.err != nil || first.ID.Partition() != 2 || first.Duplicate {
			t.Errorf("first: %+v", first)
		}
		if again.err != nil || again.ID != first.ID || !again.Duplicate {
			t.Errorf("same payload: %+v, want a duplicate of %s", again, first.ID)
		}
		if !errors.Is(other.err, denied.Idempotency) {
			t.Errorf("different payload: %v, want ErrIdempotencyConflict", other.err)
		}
		if beside.err != nil || far.err != nil || plain.err != nil {
			t.Errorf("%v, %v, %v", beside.err, far.err, plain.err)
		}
		if calls := f.Seen(); len(calls) != 4 || len(calls[3].IDs) != 3 || calls[3].Partition != 2 {
			t.Errorf("calls %+v, want the three later submits of partition 2 in one", calls)
		}
		if len(c.keyed) != 0 {
			t.Errorf("%d idle shards are kept", len(c.keyed))
		}
	})
}

func TestCloseAnswersWhatWasAccepted(t *testing.T) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		lone, queued := launch(&wg, t.Context(), c, sub("lone")), launch(&wg, t.Context(), c, sub("queued"))
		var closed atomic.Bool
		wg.Go(func() { c.Close(); closed.Store(true) })
		synctest.Wait()
		if _, err := c.Submit(t.Context(), sub("late")); !errors.Is(err, errClosed) {
			t.Errorf("submit after close: %v, want errClosed", err)
		}
		if closed.Load() {
			t.Error("close did not wait for the calls in flight")
		}
		close(f.Gate)
		wg.Wait()
		if lone.err != nil || queued.err != nil {
			t.Errorf("%v, %v", lone.err, queued.err)
		}
	})
}

func TestManySubmitters(t *testing.T) {
	f := &storetest.Creator{}
	f.Gate = nil
	life, end := context.WithCancel(t.Context())
	defer end()
	c := newFor(life, f)
	var wg sync.WaitGroup
	var ids sync.Map
	for g := range 32 {
		wg.Go(func() {
			for i := range 50 {
				s := sub(fmt.Sprint(g, "-", i))
				if g%4 == 0 {
					s = keyedSub(fmt.Sprint(g, "-", i), "x")
				}
				created, err := c.Submit(t.Context(), s)
				if err != nil {
					t.Error(err)
				}
				if _, twice := ids.LoadOrStore(created.ID, i); twice {
					t.Errorf("id %s was given twice", created.ID)
				}
			}
		})
	}
	wg.Wait()
	c.Close()
	if len(f.Stored) != 32*50 {
		t.Errorf("%d executions, want %d", len(f.Stored), 32*50)
	}
	if f.Most > MaxInFlight+4 {
		t.Errorf("%d calls in flight, want at most %d plain and one for each partition", f.Most, MaxInFlight)
	}
}

// Submits under one key reach the server in order, in calls that follow each other: of a key that debounces the last
// one counts, else the first.
func TestEqualKeysInOrder(t *testing.T) {
	for _, key := range []flowfabric.Key{{Text: "k", Debounce: time.Minute}, {Text: "k", WhileActive: true},
		{Text: "k", Window: time.Hour}} {
		t.Run(fmt.Sprintf("%+v", key), func(t *testing.T) { equalKeysInOrder(t, &key) })
	}
}

func equalKeysInOrder(t *testing.T, key *flowfabric.Key) {
	bubble(t, func(t *testing.T, f *storetest.Creator, c *Coalescer) {
		var items []*Entry
		for i := range 3 * limits.MaxBatch {
			s := sub(fmt.Sprint(i))
			s.Item.Key = key
			items = append(items, &Entry{Sub: s})
		}
		f.Gate = make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := c.SubmitMany(t.Context(), items); err != nil {
				t.Error(err)
			}
		})
		for range 3 {
			synctest.Wait()
			f.Gate <- struct{}{}
		}
		wg.Wait()
		f.Mu.Lock()
		defer f.Mu.Unlock()
		if f.Most != 1 || len(f.Calls) != 3 {
			t.Fatalf("%d calls, %d at the same time, want 3 and 1", len(f.Calls), f.Most)
		}
		for i, call := range f.Calls {
			if want := fmt.Sprint(i * limits.MaxBatch); call.Payloads[0] != want ||
				call.Partition != items[0].Sub.Item.ID.Partition() {
				t.Errorf("call %d begins with %s, want %s", i, call.Payloads[0], want)
			}
		}
		named := ids.Keyed
		if key.Debounce > 0 {
			named = ids.Debounced
		}
		if _, want := named(4, "default", "k", "k"); items[0].Sub.Item.KeyID != want {
			t.Errorf("the key is %s, want %s", items[0].Sub.Item.KeyID, want)
		}
	})
}
