package conformance

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
)

// liveModeScenarios run the writer, tails and the client on frames of all modes.
var liveModeScenarios = []scenario{
	{name: "a lost reply doubles nothing, in no mode", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		all := w.tail(w.hub(w.e).Tail(w.ctx, f.Execution, framelog.TailOptions{}))
		lasting := w.tail(w.client().Execution(f.Execution).Tail(w.ctx, client.WithoutBestEffort()))
		all.expect("1 attempt")
		lasting.expect("1 attempt")
		a := &appender{Engine: w.e, lose: func(call int) bool { return call%3 != 0 }}
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f, Logger: slog.New(slog.DiscardHandler)})
		var document []byte
		for i := range 300 {
			patch := fmt.Sprintf(`{"n":%d,"k%d":null,"k%d":{"at":%d}}`, i, i%7, i%5, i)
			var err error
			document, err = stream.MergeSummary(document, []byte(patch))
			w.no(err)
			w.no(wr.Append(w.ctx, numberedFrame(i)))
			w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(patch)}))
			w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Minute, Payload: []byte("tick")}))
		}
		w.no(wr.Close(w.ctx))
		if a.lost == 0 {
			w.Fatal("no reply was lost")
		}
		w.check()
		m := w.meta(f)
		w.all("counts", eq(m.Count, 300), eq(m.Summary, 300), eq(m.Live, 300), eq(m.LastSequence, 900))
		w.document(f, 300, string(document))
		w.no(w.complete(f, "").Err)
		all.expectFrames(1, 1, 900)
		for i := range 300 {
			lasting.expectFrames(1, 3*i+1, 2)
		}
		for _, tail := range []*tailed{all, lasting} {
			tail.expect("1 attempt_end attempt_success", "1 end completed")
			tail.over()
		}
	}},
	{name: "a summary of a stolen lease is the new holder's", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		wr := w.writer(f, 0)
		w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"by":"first"}`)}))
		w.no(wr.Flush(w.ctx))
		w.advance(ttl)
		w.settleTime()
		next := w.worker("w2").one(f.Execution)
		w.no(wr.Append(w.ctx, stream.Frame{Mode: stream.ModeSummary, Payload: []byte(`{"by":"the dead"}`)}))
		w.is(wr.Close(w.ctx), flowfabric.ErrLeaseLost)
		w.document(f, 1, `{"by":"first"}`)
		w.document(next.Fence, 0, "")
		s, err := w.client().Execution(f.Execution).Summary(w.ctx)
		w.no(err)
		w.all("the newest attempt's", eq(s.Attempt, 2), eq(s.Version, 0))
		s, err = w.client().Execution(f.Execution).SummaryOf(w.ctx, 1)
		w.no(err)
		w.all("the old one's", eq(s.Attempt, 1), eq(s.Version, 1), eq(string(s.Document), `{"by":"first"}`))
	}},
	{name: "a handler's task writes all modes", run: func(w *env) {
		c := w.worker("w1").one(w.create())
		wr := w.writer(c.Fence, 0)
		task := newTask(tasks.Config{Claim: &c, Frames: wr, Reader: w.e})
		w.no(task.Frame(w.ctx, "log", "kept"))
		w.no(task.Summary(w.ctx, map[string]any{"ms": int64(1713100800150123), "of": []int{}}))
		w.no(task.Live(w.ctx, "token", "a", 5*time.Second))
		w.no(task.Summary(w.ctx, struct {
			Of *int `json:"of"`
		}{}))
		w.is(task.Summary(w.ctx, []int{1}), flowfabric.ErrInvalidInput)
		w.is(task.Live(w.ctx, "token", "a", time.Hour), flowfabric.ErrInvalidInput)
		var own []string
		for f, err := range task.Stream(w.ctx) {
			w.no(err)
			own = append(own, string(f.Payload))
		}
		sameList(w, "own stream", own, "kept")
		w.no(wr.Close(w.ctx))
		w.document(c.Fence, 2, `{"ms":1713100800150123}`)
		w.check()
	}},
	{name: "five hundred tails and a thousand renewals", needs: []string{"Native"}, run: func(w *env) {
		const tails, renewals, most = 500, 1000, 32
		hub := w.hub(w.e)
		k := w.worker("w1")
		ids := w.createN(tails)
		var claims []engine.Claim
		for range tails / 100 {
			claims = append(claims, k.claim(100)...)
		}
		followed := make([]*tailed, tails)
		for i, id := range ids {
			followed[i] = w.tail(hub.Tail(w.ctx, id, framelog.TailOptions{}))
		}
		for _, tail := range followed {
			tail.expect("1 attempt")
		}
		list, err := w.do("CLIENT", "LIST").ToString()
		w.no(err)
		if n := strings.Count(list, "\n"); n > most { // this suite's own clients are among them
			w.Fatalf("%d connections for %d tails", n, tails)
		}
		for range renewals {
			_, err := w.e.RenewSession(w.ctx, w.p, k.session, ttl, 0)
			w.no(err)
		}
		w.quiet = true
		for _, c := range claims { // and every tail still hears
			w.frames(c.Fence, 1, 1)
		}
		w.quiet = false
		for _, tail := range followed {
			tail.expect("1 frame 1")
		}
	}},
	{name: "a full queue sheds best-effort frames and keeps the others", run: func(w *env) {
		f := w.worker("w1").one(w.create()).Fence
		reached, goOn := make(chan struct{}), make(chan struct{})
		a := &appender{Engine: w.e, before: func(call int) {
			if call == 1 {
				close(reached)
				select {
				case <-goOn:
				case <-w.ctx.Done():
				}
			}
		}}
		wr := framelog.NewWriter(framelog.WriterConfig{Appender: a, Fence: f})
		w.no(wr.Append(w.ctx, numberedFrame(1)))
		select {
		case <-reached:
		case <-w.ctx.Done():
			w.Fatal("the first batch never left")
		}
		for i := range 1500 {
			w.no(wr.Append(w.ctx,
				stream.Frame{Mode: stream.ModeBestEffort, TTL: time.Minute, Payload: []byte(strconv.Itoa(i))}))
		}
		close(goOn)
		w.no(wr.Append(w.ctx, numberedFrame(2)))
		w.no(wr.Close(w.ctx))
		w.check()
		m := w.meta(f)
		w.all("stored and shed", eq(m.Count, 2), eq(m.Live+wr.Shed(), 1500), eq(wr.Shed() >= 1500-1023, true),
			eq(wr.Dropped(), 0))
		frames, err := w.e.ReadLog(w.ctx,
			engine.LogRange{Execution: f.Execution, Attempt: 1, Mode: stream.ModeBestEffort, Limit: 10000})
		w.no(err)
		same(w, "the newest", string(frames[len(frames)-1].Payload), "1499")
		if !slices.IsSortedFunc(frames, func(a, b stream.Frame) int { return a.ID.Compare(b.ID) }) {
			w.Fatal("the order is lost")
		}
	}},
}

// newTask is a task as a worker makes it.
func newTask(cfg tasks.Config) *handler.Task {
	task, _ := handler.NewTask(cfg)
	return task
}
