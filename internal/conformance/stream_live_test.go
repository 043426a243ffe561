package conformance

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/tailpos"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/stream"
)

// TestLive runs the Go side of streams, the batching writer, paged reads and tails, on the servers they are made for.
// It has servers of its own, because it kills other people's connections.
func TestLive(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		runLive(t, Server{Name: "embedded", URL: testserver.Embedded(t), Share: 3})
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		runLive(t, Server{Name: "redis", URL: testserver.Redis(t), Features: redisFeatures})
	})
}

func runLive(t *testing.T, s Server) {
	e, raw := connect(t, s)
	for i, sc := range slices.Concat(liveScenarios, liveModeScenarios) {
		t.Run(sc.name, func(t *testing.T) {
			for _, f := range sc.needs {
				if !s.Features.has(f) {
					t.Skipf("%s has no %s", s.Name, f)
				}
			}
			sc.run(newEnv(t, &s, e, raw, uint16(i)%partitions))
		})
	}
}

// Native stands for a server that knows CLIENT KILL.
var liveScenarios = []scenario{
	{name: "pages by After", run: func(w *env) {
		const total, limit = 2500, 100
		f := w.worker("w1").one(w.create()).Fence
		w.write(f, 0, total, nil)
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: limits.MaxReadFrames})
		w.no(err)
		w.all("while open", eq(len(p.Frames), total), eq(p.Closed, false), eq(p.EOF, false))
		w.no(w.complete(f, "").Err)
		frames, pages := w.pages(f.Execution, 1, limit)
		same(w, "pages", len(pages), total/limit)
		w.numbered(frames, 1, total)
	}},
	{name: "pages of large frames", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		w.write(f, 0, 100, func(int) []byte { return make([]byte, limits.MaxFrame) })
		w.no(w.complete(f, "").Err)
		frames, pages := w.pages(f.Execution, 1, 100)
		same(w, "frames", len(frames), 100)
		if len(pages) < 2 {
			w.Fatalf("%d pages, want several", len(pages))
		}
		for i, n := range pages {
			if n > limits.MaxReadBytes {
				w.Fatalf("page %d has %d bytes, want at most %d", i, n, limits.MaxReadBytes)
			}
		}
	}},
	{name: "a close wakes the tail", run: func(w *env) {
		// Were a close not heard, each round would take until the tail's routine look two seconds later, and all of
		// them twice as long as the bound.
		const rounds, bound = 10, 10 * time.Second
		hub := w.hub(w.e)
		k := w.worker("w1")
		var took time.Duration
		ran := testwait.Running(w.T)
		for range rounds {
			f := k.one(w.create()).Fence
			tail := w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{}))
			tail.expect("1 attempt")
			w.frames(f, 1, 1)
			tail.expect("1 frame 1")
			closing := ran()
			w.no(w.complete(f, "").Err)
			tail.expect("1 attempt_end attempt_success", "1 end completed")
			took += ran() - closing
			tail.over()
		}
		if took > bound {
			w.Fatalf("%d closes were noticed after %s in all, want at most %s", rounds, took, bound)
		}
	}},
	{name: "an attempt without a frame ends its tail", run: func(w *env) {
		hub := w.hub(w.e)
		k := w.worker("w1")
		end := []struct {
			run    func(flowfabric.Fence)
			reason string
		}{
			{func(f flowfabric.Fence) { w.no(w.complete(f, "").Err) }, "attempt_success"},
			{func(f flowfabric.Fence) { w.fail(f, "x") }, "attempt_failure"},
			{func(f flowfabric.Fence) { w.cancel(f.Execution) }, "attempt_cancelled"},
			{func(flowfabric.Fence) { w.advance(ttl); w.settleTime() }, "lease_expired"},
		}
		for _, x := range end {
			f := k.one(w.create(retries(0), reclaims(1))).Fence
			only := uint32(1)
			tail := w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{Attempt: &only}))
			tail.expect("1 attempt")
			all := w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{}))
			all.expect("1 attempt")
			x.run(f)
			tail.expect("1 attempt_end " + x.reason)
			tail.over()
			all.expect("1 attempt_end " + x.reason)
			if s := w.read(f.Execution).State; s.Terminal() {
				all.expect("1 end " + string(s.Public))
				all.over()
			} else {
				same(w, "still open after", x.reason, "lease_expired")
			}
		}
		// Cancelled before any attempt: there is nothing but the end.
		id := w.create()
		tail := w.tail(hub.Tail(w.ctx, id, framelog.TailOptions{}))
		w.cancel(id)
		tail.expect("0 end " + string(w.read(id).State.Public))
		tail.over()
	}},
	{name: "tailers join in a burst", run: func(w *env) {
		total, joins := 3000/max(w.srv.Share, 1), 24/max(w.srv.Share, 1) // a batch has 100 frames at most
		other, err := w.open(engine.Config{})
		w.no(err)
		hubs := []*framelog.Hub{w.hub(w.e), w.hub(other)}
		f := w.worker("w1").one(w.create()).Fence
		var tails conc.WaitGroup
		w.Cleanup(tails.Wait)
		got := make([][]stream.Frame, joins*len(hubs))
		live := make(chan struct{}, len(got))
		follow := func(i int) {
			for event, err := range hubs[i%len(hubs)].Tail(w.ctx, f.Execution, framelog.TailOptions{}) {
				switch {
				case err != nil || event.Kind == stream.TailGap:
					w.Errorf("tailer %d: %+v, %v", i, event, err)
					return
				case event.Kind == stream.TailAttempt:
					live <- struct{}{}
				case event.Kind == stream.TailFrame:
					got[i] = append(got[i], event.Frame)
				}
			}
		}
		n, early := 0, 0
		a := &appender{Engine: w.e, before: func(call int) {
			for range len(hubs) { // they are on their way while this batch is appended
				if i := n; i < len(got) {
					n++
					tails.Go(func() { follow(i) })
				}
			}
			if call == 5 || call == 10 { // frames are stored by now, and more are to come: half of them join here
				for early < n/2 {
					select {
					case <-live:
						early++
					case <-w.ctx.Done():
						return
					}
				}
			}
		}}
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f})
		for i := range total {
			w.no(wr.Append(w.ctx, numberedFrame(i+1)))
		}
		w.no(wr.Close(w.ctx))
		w.no(w.complete(f, "").Err)
		tails.Wait()
		same(w, "tailers", n, len(got))
		if early == 0 {
			w.Fatal("nobody joined in the burst")
		}
		for _, frames := range got {
			w.numbered(frames, 1, total)
		}
	}},
	{name: "a stalled tailer holds up nobody and loses nothing", run: func(w *env) {
		total := 2000 / max(w.srv.Share, 1)
		hub := w.hub(w.e)
		f := w.worker("w1").one(w.create()).Fence
		next, stop := iter.Pull2(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{}))
		defer stop()
		first, err, ok := next() // joined, and from now on it does not read
		w.all("first", eq(first.Kind, stream.TailAttempt), eq[error](err, nil), eq(ok, true))
		others := make([]*tailed, 5)
		for i := range others {
			others[i] = w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{}))
			others[i].expect("1 attempt")
		}
		w.write(f, 0, total, nil)
		w.no(w.complete(f, "").Err)
		for _, tail := range others {
			tail.expectFrames(1, 1, total)
			tail.expect("1 attempt_end attempt_success", "1 end completed")
			tail.over()
		}
		var late []stream.Frame
		for {
			event, err, ok := next()
			if w.no(err); !ok {
				break
			}
			if event.Kind == stream.TailFrame {
				late = append(late, event.Frame)
			}
		}
		w.numbered(late, 1, total)
	}},
	{name: "the writer batches in order", run: func(w *env) {
		const total = 2000
		f := w.worker("w1").one(w.create()).Fence
		a := &appender{Engine: w.e}
		sent := make([][]byte, total)
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f})
		for i := range sent {
			sent[i] = sized(i + 1)
			w.no(wr.Append(w.ctx, stream.Frame{Type: "token", Encoding: stream.Bytes, Payload: sent[i]}))
		}
		w.no(wr.Close(w.ctx))
		w.check()
		w.all("acknowledged, dropped", eq(wr.LastAcknowledged(), uint64(total)), eq(wr.Dropped(), 0))
		if a.calls > total/10 {
			w.Fatalf("%d calls for %d frames", a.calls, total)
		}
		w.no(w.complete(f, "").Err)
		frames, _ := w.pages(f.Execution, 1, 500)
		w.stored(frames, sent)
	}},
	{name: "the writer survives killed connections", needs: []string{"Native"}, run: func(w *env) {
		const total = 2000
		f := w.worker("w1").one(w.create()).Fence
		tail := w.tail(w.hub(w.e).Tail(w.ctx, f.Execution, framelog.TailOptions{}))
		tail.expect("1 attempt")
		var killer conc.WaitGroup
		turn, killed := 0, int64(0)
		kicks := make(chan struct{}, 1)
		killer.Go(func() {
			for range kicks {
				what := []string{"normal", "pubsub"}[turn%2]
				turn++
				n, err := w.do("CLIENT", "KILL", "TYPE", what).AsInt64()
				if err != nil {
					w.Error(err)
				}
				killed += n
			}
		})
		// Before every other call the killer is told to strike: it meets the call before, during or after its work.
		a := &appender{Engine: w.e, before: func(call int) {
			if call%2 == 0 {
				select {
				case kicks <- struct{}{}:
				default:
				}
			}
		}}
		sent := make([][]byte, total)
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f, Context: w.ctx,
			Logger: slog.New(slog.DiscardHandler)})
		for i := range sent {
			sent[i] = sized(i + 1)
			if err := wr.Append(w.ctx, stream.Frame{Encoding: stream.Bytes, Payload: sent[i]}); err != nil {
				w.Error(err)
				break
			}
		}
		err := wr.Close(w.ctx)
		close(kicks)
		killer.Wait()
		w.no(err)
		if killed < 3 {
			w.Fatalf("only %d connections were killed", killed)
		}
		w.check()
		w.no(w.complete(f, "").Err)
		frames, _ := w.pages(f.Execution, 1, 500)
		w.stored(frames, sent)
		tail.expectFrames(1, 1, total)
		tail.expect("1 attempt_end attempt_success", "1 end completed")
		tail.over()
	}},
	{name: "a lost reply doubles nothing", run: func(w *env) {
		const total = 500
		f := w.worker("w1").one(w.create()).Fence
		a := &appender{Engine: w.e, lose: func(call int) bool { return call%3 != 0 }}
		sent := make([][]byte, total)
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f, Logger: slog.New(slog.DiscardHandler)})
		for i := range sent {
			sent[i] = []byte(strconv.Itoa(i + 1))
			w.no(wr.Append(w.ctx, stream.Frame{Payload: sent[i]}))
		}
		w.no(wr.Close(w.ctx))
		if a.lost == 0 {
			w.Fatal("no reply was lost")
		}
		w.check()
		w.no(w.complete(f, "").Err)
		frames, _ := w.pages(f.Execution, 1, 500)
		w.stored(frames, sent)
	}},
	{name: "a tail subscribes again and misses nothing", needs: []string{"Native"}, run: func(w *env) {
		// Were what nobody heard read only at the routine look, the rounds would take twice as long as the bound.
		const rounds, each, bound = 6, 50, 6 * time.Second
		var took time.Duration
		ran := testwait.Running(w.T)
		hub := w.hub(w.e)
		f := w.worker("w1").one(w.create()).Fence
		tails := make([]*tailed, 4)
		for i := range tails {
			tails[i] = w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{}))
			tails[i].expect("1 attempt")
		}
		for round := range rounds {
			await(w.T, "there is a subscription to kill", func() bool {
				n, err := w.do("CLIENT", "KILL", "TYPE", "pubsub").AsInt64()
				return err == nil && n > 0
			})
			killed := ran()
			w.frames(f, uint64(round*each+1), each) // nobody listens to most of these
			for _, tail := range tails {
				tail.expectFrames(1, round*each+1, each)
			}
			took += ran() - killed
		}
		if took > bound {
			w.Fatalf("%d lost subscriptions were made good after %s in all, want at most %s", rounds, took, bound)
		}
		w.no(w.complete(f, "").Err)
		for _, tail := range tails {
			tail.expect("1 attempt_end attempt_success", "1 end completed")
			tail.over()
		}
	}},
	{name: "a lease stolen in mid-batch", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		reached, goOn := make(chan struct{}), make(chan struct{})
		a := &appender{Engine: w.e, before: func(call int) {
			if call == 2 {
				close(reached)
				select {
				case <-goOn:
				case <-w.ctx.Done():
				}
			}
		}}
		task, cancel := context.WithCancelCause(w.ctx)
		defer cancel(nil)
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f, Cancel: cancel})
		put := func(from, n int) {
			for i := range n {
				w.no(wr.Append(w.ctx, numberedFrame(from+i)))
			}
		}
		put(1, 50)
		w.no(wr.Flush(w.ctx))
		put(51, 150) // over one batch
		select {
		case <-reached:
		case <-w.ctx.Done():
			w.Fatal("the second batch never left")
		}
		w.advance(ttl)
		w.settleTime()
		next := w.worker("w2").one(f.Execution)
		close(goOn)
		select {
		case <-task.Done():
		case <-w.ctx.Done():
			w.Fatal("the task was never cancelled")
		}
		w.is(context.Cause(task), flowfabric.ErrLeaseLost)
		w.is(context.Cause(task), denied.Unflushed)
		w.is(wr.Append(w.ctx, numberedFrame(0)), flowfabric.ErrLeaseLost)
		err := wr.Close(w.ctx)
		w.is(err, flowfabric.ErrLeaseLost)
		w.is(err, denied.Unflushed)
		w.all("acknowledged, dropped, calls", eq(wr.LastAcknowledged(), 50), eq(wr.Dropped(), 150), eq(a.calls, 2))
		w.is(w.complete(f, "").Err, denied.StaleLease)

		w.all("new attempt", eq(next.Fence.Attempt, 2), eq(next.LastSequence, 0))
		w.write(next.Fence, next.LastSequence, 10, nil)
		old, pages := w.pages(f.Execution, 1, 1000)
		same(w, "pages of the old", len(pages), 1)
		w.numbered(old, 1, 50)
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 1})
		w.no(err)
		w.all("old stream", eq(p.Closed, true), eq(p.ClosedReason, "lease_expired"))
		p, err = framelog.Read(w.ctx, w.e, f.Execution, 2, framelog.ReadOptions{Limit: 100})
		w.no(err)
		w.numbered(p.Frames, 1, 10)
		w.all("new stream", eq(p.Closed, false), eq(p.EOF, false))
	}},
	{name: "what was appended before the end is readable at the end", run: func(w *env) {
		c := w.client()
		end := map[string]func(flowfabric.Fence){
			"complete": func(f flowfabric.Fence) { w.no(w.complete(f, `"done"`).Err) },
			"fail":     func(f flowfabric.Fence) { w.fail(f, "x") },
		}
		for how, settle := range end {
			f := w.worker("w1").one(w.create(retries(0))).Fence
			var waiter conc.WaitGroup
			w.Cleanup(waiter.Wait)
			var result string
			var failed error
			var frames []stream.Frame
			var readErr error
			eof := false
			waiter.Go(func() {
				result, failed = client.Attach(c, liveDefinition, f.Execution).Result(w.ctx)
				var p framelog.Page
				p, readErr = framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 1000})
				frames, eof = p.Frames, p.EOF
			})
			w.quiet = true // the waiter's subscription comes when it likes
			wr := framelog.NewWriter(framelog.WriterConfig{Appender: w.e, Fence: f})
			for i := range 100 {
				if err := wr.Append(w.ctx, numberedFrame(i+1)); err != nil {
					w.Error(err)
				}
			}
			if err := wr.Flush(w.ctx); err != nil {
				w.Error(err)
			}
			settle(f)
			waiter.Wait()
			w.quiet = false
			w.check()
			w.no(wr.Close(w.ctx))
			w.no(readErr)
			same(w, "eof", eof, true)
			w.numbered(frames, 1, 100)
			if how == "complete" {
				w.no(failed)
				same(w, "result", result, "done")
			} else {
				w.is(failed, flowfabric.ErrFailed)
			}
		}
	}},
	{name: "a trim gap is reported with its number", run: func(w *env) {
		hub := w.hub(w.e)
		f := w.worker("w1").one(w.create(func(x *engine.NewExecution) { x.Policy.StreamFrames = 3 })).Fence
		w.frames(f, 1, 2)
		p, err := framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 1})
		w.no(err)
		seen, frame := p.Next, p.Frames[0]
		w.all("before", eq(len(p.Frames), 1), eq(p.Gap, false))
		for first := uint64(3); first < 303; first += 100 {
			w.frames(f, first, 100)
		}
		m, err := w.e.ReadAttemptStream(w.ctx, f.Execution, 1)
		w.no(err)
		if m.Count != 302 || m.Trimmed < 100 {
			w.Fatalf("%d of %d frames were trimmed", m.Trimmed, m.Count)
		}
		p, err = framelog.Read(w.ctx, w.e, f.Execution, 1, framelog.ReadOptions{Limit: 1000, After: seen})
		w.no(err)
		w.all("read behind the trim point", eq(p.Gap, true), eq(p.Trimmed, m.Trimmed-1))
		w.numbered(p.Frames, int(m.Trimmed)+1, int(m.Count-m.Trimmed))
		w.no(w.complete(f, "").Err)
		for from, missing := range map[stream.Position]uint64{"": m.Trimmed, position(frame): m.Trimmed - 1} {
			tail := w.tail(hub.Tail(w.ctx, f.Execution, framelog.TailOptions{From: from}))
			if from == "" {
				tail.expect("1 attempt")
			}
			tail.expect("1 gap " + strconv.FormatUint(missing, 10))
			tail.expectFrames(1, int(m.Trimmed)+1, int(m.Count-m.Trimmed))
			tail.expect("1 attempt_end attempt_success", "1 end completed")
			tail.over()
		}
	}},
	{name: "a tail follows the attempts", run: func(w *env) {
		c := w.client()
		id := w.create(retries(1))
		live := w.tail(c.Execution(id).Tail(w.ctx))
		var waiter conc.WaitGroup
		w.Cleanup(waiter.Wait) // by then its context has ended
		result := make(chan string, 1)
		waiter.Go(func() {
			raw, err := c.Execution(id).Result(w.ctx)
			if err != nil {
				w.Error(err)
			}
			result <- string(raw)
		})
		k := w.worker("w1")
		first := k.one(id)
		w.write(first.Fence, 0, 3, nil)
		live.expect("1 attempt")
		live.expectFrames(1, 1, 3)
		same(w, "retry", w.fail(first.Fence, "x").Retry, true)
		live.expect("1 attempt_end attempt_failure", "2 retry retry")
		w.advance(2 * time.Second)
		w.settleTime()
		second := k.one(id)
		w.write(second.Fence, 0, 2, nil)
		live.expect("2 attempt")
		live.expectFrames(2, 1, 2)
		w.advance(ttl)
		w.settleTime()
		live.expect("2 attempt_end lease_expired", "3 retry reclaim")
		third := w.worker("w2").one(id)
		same(w, "third", third.Fence.Attempt, 3)
		w.write(third.Fence, 0, 1, nil)
		live.expect("3 attempt")
		live.expectFrames(3, 1, 1)
		w.no(w.complete(third.Fence, "done").Err)
		live.expect("3 attempt_end attempt_success", "3 end completed")
		live.over()
		same(w, "result", <-result, "done")

		late := w.tail(c.Execution(id).Tail(w.ctx)) // the whole story again, from what is stored
		late.expect("1 attempt")
		late.expectFrames(1, 1, 3)
		late.expect("1 attempt_end attempt_failure", "2 attempt")
		late.expectFrames(2, 1, 2)
		late.expect("2 attempt_end lease_expired", "3 attempt", "3 frame 1", "3 attempt_end attempt_success",
			"3 end completed")
		late.over()
		only := w.tail(c.Execution(id).Tail(w.ctx, client.OnlyAttempt(2)))
		only.expect("2 attempt", "2 frame 1", "2 frame 2", "2 attempt_end lease_expired")
		only.over()
	}},
	{name: "the events of a tail say when and why, and behind each of them a tail goes on", run: func(w *env) {
		hub := w.hub(w.e)
		id := w.create(retries(2))
		collect := func(o framelog.TailOptions) (all []stream.TailEvent) {
			w.Helper()
			for e, err := range hub.Tail(w.ctx, id, o) {
				w.no(err)
				all = append(all, e)
			}
			return all
		}
		last := func(kind stream.TailKind) stream.TailEvent {
			w.Helper()
			all := collect(framelog.TailOptions{Stored: true})
			e := all[len(all)-1]
			same(w, "the last event", e.Kind, kind)
			same(w, "told again", len(collect(framelog.TailOptions{Stored: true, From: e.Position})), 0)
			return e
		}
		of := func(kind stream.TailKind, attempt uint32) stream.TailEvent {
			w.Helper()
			for _, e := range collect(framelog.TailOptions{Stored: true}) {
				if e.Kind == kind && e.Attempt == attempt {
					return e
				}
			}
			w.Fatalf("no %s of attempt %d", kind, attempt)
			return stream.TailEvent{}
		}
		k := w.worker("w1")
		f := k.one(id).Fence
		began := of(stream.TailAttempt, 1)
		w.all("the first attempt", eq(began.Type, flowfabric.AttemptInitial), eq(began.At.UnixMilli(), w.at(id, "st")),
			eqList(began.Reused))
		w.frames(f, 1, 2)
		_, err := w.e.RecordStep(w.ctx, f, "s", []byte("v"), 0)
		w.no(err)
		w.frames(f, 3, 1)
		w.fail(f, "io")
		failed := w.now()
		ended := of(stream.TailAttemptEnd, 1)
		w.all("its end", eq(ended.Reason, "attempt_failure"), eq(ended.Category, "io"), eq(ended.Message, "because"),
			eq(ended.Recorded, 2), eq(failed-ended.At.UnixMilli() < 5000, true))
		retry := last(stream.TailRetry)
		w.all("the retry", eq(retry.Attempt, 2), eq(retry.Type, flowfabric.AttemptRetry),
			eq(retry.At.UnixMilli(), w.at(id, "du")), eq(retry.Category, "io"), eq(retry.Message, "because"))
		w.advance(2 * time.Second)
		w.settleTime()
		f = k.one(id).Fence
		began = of(stream.TailAttempt, 2)
		w.all("the second attempt", eq(began.Type, flowfabric.AttemptRetry), eq(began.At.UnixMilli(), w.at(id, "la")),
			eqList(began.Reused, stream.Covered{Attempt: 1, Recorded: 2}))
		w.frames(f, 1, 1)
		w.seed()
		q, _ := w.suspend(f)
		waits := last(stream.TailSuspended)
		w.all("the suspension", eq(waits.Attempt, 2), eq(waits.Suspension.ID, q.ID),
			eq(len(waits.Suspension.Waitpoints), 1), eq(waits.At, waits.Suspension.CreatedAt))
		w.resume(id)
		f = k.one(id).Fence
		w.frames(f, 2, 1)
		w.advance(ttl)
		w.settleTime()
		ended = of(stream.TailAttemptEnd, 2)
		w.all("the lease ran out", eq(ended.Reason, "lease_expired"), eq(ended.Category, "lease_expired"))
		retry = last(stream.TailRetry)
		w.all("the reclaim", eq(retry.Attempt, 3), eq(retry.Type, flowfabric.AttemptReclaim),
			eq(retry.At.IsZero(), true), eq(retry.Category, "lease_expired"))
		f = w.worker("w2").one(id).Fence
		w.frames(f, 1, 2)
		w.no(w.complete(f, "done").Err)
		end := of(stream.TailEnd, 3)
		w.all("the end", eq(end.State, flowfabric.Completed),
			eq(end.At.UnixMilli(), w.at(id, "en")), eq(end.Category, ""), eq(end.Message, ""), eq(end.By, ""))
		all := collect(framelog.TailOptions{})
		var types []flowfabric.AttemptType
		for _, e := range all {
			if e.Kind == stream.TailAttempt && !e.At.IsZero() {
				types = append(types, e.Type)
			}
		}
		sameList(w, "what the attempts were", types, flowfabric.AttemptInitial, flowfabric.AttemptRetry,
			flowfabric.AttemptReclaim)
		for i, e := range all {
			rest := collect(framelog.TailOptions{From: e.Position})
			same(w, "behind "+spell(e, nil), len(rest), len(all)-i-1)
			for j, r := range rest {
				sameDeep(w, "behind "+spell(e, nil), r, all[i+1+j])
			}
		}
		var tr stream.Transcript
		for _, e := range all {
			tr.Add(e)
		}
		same(w, "what stays", len(tr.Frames()), 4) // two of the first attempt, none of the second, two of the third
	}},
	{name: "the end in a tail says why: category and message of a failure, who cancelled and for what",
		run: func(w *env) {
			hub := w.hub(w.e)
			end := func(id flowfabric.ExecutionID) (last stream.TailEvent) {
				w.Helper()
				for e, err := range hub.Tail(w.ctx, id, framelog.TailOptions{}) {
					w.no(err)
					last = e
				}
				w.all("the last event", eq(last.Kind, stream.TailEnd), eq(last.At.UnixMilli(), w.at(id, "en")))
				return last
			}
			k := w.worker("w1")
			failed := w.create()
			_, err := w.e.FailExecution(w.ctx, k.one(failed).Fence,
				engine.Failure{Category: "io", Reason: "no ink", Permanent: true})
			w.no(err)
			e := end(failed)
			w.all("failed", eq(e.State, flowfabric.Failed), eq(e.Category, "io"), eq(e.Message, "no ink"), eq(e.By, ""))
			runs := w.create()
			k.one(runs)
			for _, id := range []flowfabric.ExecutionID{w.create(), runs} {
				_, err = w.e.CancelExecution(trail.As(w.ctx, "anna", "not needed"), id,
					engine.Cancellation{Source: engine.CancelOperator})
				w.no(err)
				e = end(id)
				w.all("cancelled", eq(e.State, flowfabric.Cancelled), eq(e.Category, ""), eq(e.Message, "not needed"),
					eq(e.By, "anna"), eq(e.Source, "operator_override"))
			}
			late := w.create(deadline(time.Second))
			w.advance(2 * time.Second)
			w.settleTime()
			e = end(late)
			w.all("expired", eq(e.State, flowfabric.Expired), eq(e.Category, "execution_deadline"), eq(e.Attempt, 0))
			slow := w.create(timeout(time.Second))
			k.one(slow)
			w.advance(2 * time.Second)
			w.settleTime()
			e = end(slow)
			w.all("timed out", eq(e.State, flowfabric.Expired), eq(e.Category, "attempt_timeout"))
		}},
}

var liveDefinition = handler.Define[string, string]("k")

// client opens a client on the server under test. It refuses a library with the test clock, so that one goes by the
// name of the real one while the client connects.
func (w *env) client() *client.Client {
	w.Helper()
	text := library.Library(library.Variant{Sharded: w.srv.Features.ShardedPubSub, TestClock: true})
	w.load(text)
	defer w.load(strings.ReplaceAll(text, library.Hash(), library.Hash()+"t"))
	c, err := client.Connect(w.ctx, client.Config{URL: w.srv.URL, Logger: slog.New(slog.DiscardHandler)})
	w.no(err)
	w.Cleanup(c.Close)
	return c
}

// load puts a library on every primary.
func (w *env) load(text string) {
	w.Helper()
	if w.srv.Node == nil {
		w.set("FUNCTION", "LOAD", "REPLACE", text)
		return
	}
	var loaded []string
	for p := range uint16(partitions) {
		if node := w.srv.Node(p); !slices.Contains(loaded, node) {
			loaded = append(loaded, node)
			w.no(plain(w.T, "redis://"+node).Do(w.ctx,
				w.raw.B().Arbitrary("FUNCTION", "LOAD", "REPLACE", text).Build()).Error())
		}
	}
}

func (w *env) hub(e *engine.Engine) *framelog.Hub {
	h := framelog.NewHub(e)
	w.Cleanup(h.Close)
	return h
}

// appender is the engine with a hand in the way of appends. A writer has one call in flight, so that it needs no lock;
// read it after Close or Flush.
type appender struct {
	*engine.Engine
	before      func(call int)
	lose        func(call int) bool // the reply, once the frames are stored
	calls, lost int
}

func (a *appender) AppendFrames(ctx context.Context, f flowfabric.Fence, first uint64,
	frames []stream.Frame) (engine.Appended, error) {
	a.calls++
	if a.before != nil {
		a.before(a.calls)
	}
	out, err := a.Engine.AppendFrames(ctx, f, first, frames)
	if err == nil && a.lose != nil && a.lose(a.calls) {
		a.lost++
		return engine.Appended{}, fmt.Errorf("the reply was lost: %w", flowfabric.ErrTransport)
	}
	return out, err
}

func numberedFrame(n int) stream.Frame {
	return stream.Frame{Type: "token", Payload: []byte(strconv.Itoa(n))}
}

// sized is a payload that tells its number, of a size that is mostly small and now and then near the limit.
func sized(n int) []byte {
	size := rand.IntN(200)
	switch rand.IntN(50) {
	case 0:
		size = rand.IntN(limits.MaxFrame - 20)
	case 1, 2, 3:
		size = rand.IntN(4 << 10)
	}
	return append([]byte(strconv.Itoa(n)+" "), make([]byte, size)...)
}

// write puts n frames out through a writer that goes on after sequence last, and checks the partition once.
func (w *env) write(f flowfabric.Fence, last uint64, n int, payload func(i int) []byte) {
	w.Helper()
	wr := framelog.NewWriter(framelog.WriterConfig{Appender: w.e, Fence: f, LastSequence: last})
	for i := range n {
		x := numberedFrame(int(last) + i + 1)
		if payload != nil {
			x.Encoding, x.Payload = stream.Bytes, payload(i)
		}
		w.no(wr.Append(w.ctx, x))
	}
	w.no(wr.Close(w.ctx))
	same(w, "acknowledged", wr.LastAcknowledged(), last+uint64(n))
	w.check()
}

// pages reads a closed stream to its end and returns its frames and the bytes of each page. Only the last is EOF.
func (w *env) pages(id flowfabric.ExecutionID, attempt uint32, limit int) (frames []stream.Frame, bytes []int) {
	w.Helper()
	var after framelog.Place
	for {
		p, err := framelog.Read(w.ctx, w.e, id, attempt, framelog.ReadOptions{After: after, Limit: limit})
		w.no(err)
		if len(p.Frames) == 0 || len(p.Frames) > limit || !p.Closed || p.Gap {
			w.Fatalf("page %d: %d frames, closed %t, gap %t", len(bytes), len(p.Frames), p.Closed, p.Gap)
		}
		n := 0
		for _, f := range p.Frames {
			n += len(f.Payload)
		}
		frames, bytes, after = append(frames, p.Frames...), append(bytes, n), p.Next
		if p.EOF {
			break
		}
	}
	m, err := w.e.ReadAttemptStream(w.ctx, id, attempt)
	w.no(err)
	same(w, "frames read before EOF", uint64(len(frames)), m.Count)
	return frames, bytes
}

// numbered fails unless frames are those from sequence first on, each once, in order and with its number as payload.
func (w *env) numbered(frames []stream.Frame, first, n int) {
	w.Helper()
	same(w, "frames", len(frames), n)
	for i, f := range frames {
		if want := strconv.Itoa(first + i); string(f.Payload) != want || strconv.FormatUint(f.Sequence, 10) != want {
			w.Fatalf("frame %d has sequence %d and payload %.20q, want %s", i, f.Sequence, f.Payload, want)
		}
		if i > 0 && f.ID.Compare(frames[i-1].ID) <= 0 {
			w.Fatalf("id %s follows %s", f.ID, frames[i-1].ID)
		}
	}
}

// stored fails unless frames have exactly the payloads that were sent, and sequences 1, 2, 3 ….
func (w *env) stored(frames []stream.Frame, sent [][]byte) {
	w.Helper()
	same(w, "frames", len(frames), len(sent))
	for i, f := range frames {
		if f.Sequence != uint64(i+1) || !slices.Equal(f.Payload, sent[i]) {
			w.Fatalf("frame %d has sequence %d and %d bytes %.20q, want %d bytes %.20q", i, f.Sequence, len(f.Payload),
				f.Payload, len(sent[i]), sent[i])
		}
	}
}

// tailed is a tail run by a goroutine of its own, with its events as words.
type tailed struct {
	w      *env
	mu     sync.Mutex
	events []string
	more   chan struct{} // capacity 1
	ended  bool
	at     int
}

// tail starts a tail; it ends with the scenario.
func (w *env) tail(events iter.Seq2[stream.TailEvent, error]) *tailed {
	t := &tailed{w: w, more: make(chan struct{}, 1)}
	var owner conc.WaitGroup
	w.Cleanup(owner.Wait) // by then the context of the test has ended
	owner.Go(func() {
		for event, err := range events {
			t.add(spell(event, err), false)
		}
		t.add("", true)
	})
	return t
}

// spell is an event in words: attempt, kind, and what the kind tells.
func spell(e stream.TailEvent, err error) string {
	if err != nil {
		return err.Error()
	}
	var detail any = ""
	switch e.Kind {
	case stream.TailFrame:
		detail = e.Frame.Sequence
	case stream.TailGap:
		detail = e.Trimmed
	case stream.TailAttemptEnd:
		detail = e.Reason
	case stream.TailRetry:
		detail = e.Type
	case stream.TailSuspended:
		detail = e.Suspension.Name
	case stream.TailEnd:
		detail = e.State
	}
	return strings.TrimSuffix(fmt.Sprintf("%d %s %v", e.Attempt, e.Kind, detail), " ")
}

func (t *tailed) add(event string, ended bool) {
	t.mu.Lock()
	if t.ended = ended; !ended {
		t.events = append(t.events, event)
	}
	t.mu.Unlock()
	select {
	case t.more <- struct{}{}:
	default:
	}
}

var errNoMore = errors.New("the tail has ended")

// next waits for one event; a tail that hangs fails by the scenario's context.
func (t *tailed) next() (string, error) {
	for {
		t.mu.Lock()
		if t.at < len(t.events) {
			defer t.mu.Unlock()
			t.at++
			return t.events[t.at-1], nil
		}
		ended := t.ended
		t.mu.Unlock()
		if ended {
			return "", errNoMore
		}
		select {
		case <-t.more:
		case <-t.w.ctx.Done():
			return "", t.w.ctx.Err()
		}
	}
}

// expect fails unless the next events are these.
func (t *tailed) expect(want ...string) {
	t.w.Helper()
	for _, text := range want {
		got, err := t.next()
		t.w.no(err)
		same(t.w, "event", got, text)
	}
}

// expectFrames fails unless the next n events are the frames from sequence first on.
func (t *tailed) expectFrames(attempt, first, n int) {
	t.w.Helper()
	for i := range n {
		t.expect(fmt.Sprintf("%d frame %d", attempt, first+i))
	}
}

// over fails unless there are no more events.
func (t *tailed) over() {
	t.w.Helper()
	if got, err := t.next(); !errors.Is(err, errNoMore) {
		t.w.Fatalf("after the end: %q, %v", got, err)
	}
}

// position is behind a frame of the first attempt.
func position(f stream.Frame) stream.Position {
	return stream.Position(tailpos.Text(tailpos.Parts{Attempt: 1, Stage: tailpos.Begun, Ms: f.ID.Ms, Seq: f.ID.Seq,
		Sequence: f.Sequence, Durables: f.Durables}))
}
