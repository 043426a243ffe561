package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/race"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
)

var (
	teller = handler.Define[string, string]("teller", handler.RetryPolicy(flowfabric.RetryPolicy{MaxRetries: 3,
		Fixed: true, Initial: time.Millisecond, Max: time.Second}))
	forgetful = handler.Define[string, string]("forgetful", handler.StreamFrames(64))
)

// say appends frames inside a step, and after half of them asks whether to go on.
func say(ctx context.Context, task *handler.Task, step string, n int, half func(ctx context.Context) error) error {
	_, err := handler.Step(ctx, task, step, func(ctx context.Context) (bool, error) {
		for i := range n {
			if err := task.Frame(ctx, "token", fmt.Sprintf("%s-%d ", step, i)); err != nil {
				return false, err
			}
			if i == n/2 && half != nil {
				if err := errors.Join(task.Flush(ctx), half(ctx)); err != nil {
					return false, err
				}
			}
		}
		return true, task.Flush(ctx)
	})
	return err
}

// tellers are the kinds of a family whose output is shown in that of its parent. caught is closed by a child whose
// worker is to be killed. heard is to be closed when a reader has got a frame that will be trimmed.
func tellers(caught, heard chan struct{}) []handler.Binding {
	var once sync.Once
	tell := func(ctx context.Context, task *handler.Task, in string) (string, error) {
		if err := say(ctx, task, "one", 6, nil); err != nil {
			return "", err
		}
		switch in {
		case "short":
			select {
			case <-heard:
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
			if err := say(ctx, task, "more", 300, nil); err != nil {
				return "", err
			}
		case "nest":
			set := flow.Children("below")
			flow.Child(set, "deep", teller, "retry", flow.Streamed())
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
		case "ask":
			if _, err := handler.Await[string](ctx, task, "go on"); err != nil {
				return "", err
			}
		}
		err := say(ctx, task, "two", 6, func(ctx context.Context) error {
			switch {
			case task.Attempt() > 1:
			case in == "retry":
				return errors.New("not yet")
			case in == "killed":
				once.Do(func() { close(caught) })
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		})
		return in, err
	}
	return []handler.Binding{handler.Bind(teller, tell), handler.Bind(forgetful, tell),
		handler.Bind(parent, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			if err := say(ctx, task, "begin", 5, nil); err != nil {
				return "", err
			}
			set := flow.Children("first", flow.First())
			later := flow.Children("later")
			for _, name := range []string{"nest", "retry", "ask", "killed", "plain one"} {
				c := flow.Child(set, name, teller, name, flow.Streamed())
				flow.Other(later, name, teller, c.ID(task))
			}
			short := flow.Child(set, "short", forgetful, "short", flow.Streamed())
			flow.Other(later, "short", forgetful, short.ID(task))
			flow.Child(set, "hidden", teller, "plain")
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			if err := say(ctx, task, "middle", 20, nil); err != nil {
				return "", err
			}
			flow.Child(later, "late", teller, "plain", flow.Streamed())
			if err := task.WaitChildren(ctx, later); err != nil {
				return "", err
			}
			return "", say(ctx, task, "end", 5, nil)
		})}
}

// passage is an event without what only some readers are told.
func passage(e stream.TailEvent) string {
	path, at := "", e.At.UnixMilli()
	if e.Child != nil {
		path = strings.Join(e.Child.Path, "/") + " " + e.Child.ID.String()
	}
	if e.Kind == stream.TailFrame {
		at = int64(e.Frame.ID.Ms)
	}
	return fmt.Sprintf("%s %s%d #%d R%d %d %s%s %s", path, e.Kind, e.Attempt, e.Frame.Sequence, e.Resumed.Run, at,
		e.Reason, e.State, e.Frame.Payload)
}

// lasting tells whether every reader is told an event.
func lasting(e stream.TailEvent) bool {
	return e.Kind != stream.TailGap && e.Kind != stream.TailSuspended && e.Kind != stream.TailRetry
}

// reading collects the events of a tail.
func (w *env) reading(h *framelog.Hub, id flowfabric.ExecutionID, o framelog.TailOptions,
	most int, each ...func(stream.TailEvent)) (all []stream.TailEvent) {
	for e, err := range h.Tail(w.ctx, id, o) {
		if err != nil {
			w.Error(err)
			break
		}
		for _, fn := range each {
			fn(e)
		}
		if all = append(all, e); len(all) == most {
			break
		}
	}
	return all
}

// passages are the lasting events that are among others.
func passages(all []stream.TailEvent, among map[string]bool) (out []string) {
	for _, e := range all {
		if text := passage(e); lasting(e) && (among == nil || among[text]) {
			out = append(out, text)
		}
	}
	return out
}

func differ(t *testing.T, what string, got, want []string) bool {
	t.Helper()
	if slices.Equal(got, want) {
		return false
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	t.Errorf("%s: %d events, want %d; from %d on\n%s\nwant\n%s", what, len(got), len(want), at,
		strings.Join(got[at:min(at+6, len(got))], "\n"), strings.Join(want[at:min(at+6, len(want))], "\n"))
	return true
}

// All readers of a family's output are told the same in the same order: who is there from the beginning, who comes and
// goes, and who comes afterwards. Behind each event, whoever read it, lies exactly the rest. Meanwhile children ask,
// fail and lose their worker, one has a child of its own, and frames of one are trimmed.
func TestAFamilyInOneStream(t *testing.T) {
	servers(t, func(w *env) {
		caught, heard := make(chan struct{}), make(chan struct{})
		cfg := signing()
		cfg.Instance = "doomed"
		w.start(cfg, tellers(caught, heard)...)
		id := w.submitKind("parent", "")
		hub := framelog.NewHub(w.engine)
		w.Cleanup(hub.Close)
		var live []stream.TailEvent
		var guests [2][]stream.TailEvent
		var readers conc.WaitGroup
		readers.Go(func() {
			live = w.reading(hub, id, framelog.TailOptions{}, 0, func(e stream.TailEvent) {
				if e.Child != nil && e.Child.Path[0] == "short" && string(e.Frame.Payload) == "one-5 " {
					close(heard)
				}
			})
		})
		for i := range guests {
			readers.Go(func() { // each time in another process
				var at stream.Position
				for over := false; !over; {
					other := framelog.NewHub(w.engine)
					some := w.reading(other, id, framelog.TailOptions{From: at}, 1+rand.IntN(20))
					other.Close()
					guests[i] = append(guests[i], some...)
					if len(some) == 0 {
						return
					}
					last := some[len(some)-1]
					at, over = last.Position, last.Kind == stream.TailEnd && last.Child == nil
				}
			})
		}
		<-caught
		cfg.Instance = "heir"
		w.start(cfg, tellers(caught, heard)...)
		killed := id.Child("first", "killed")
		if _, err := w.engine.MarkSessionDead(trail.As(w.ctx, "", "killed"), id.Partition(),
			w.snapshot(killed).Session); err != nil {
			t.Fatal(err)
		}
		ask := id.Child("first", "ask")
		w.eventually("it asks", func() bool { return w.suspension(ask).Name == "go on" })
		w.signalled(ask, "go on", `"x"`, waitwords.EffectSatisfied)
		if s := w.reach(id, codes.Completed, codes.Failed); s.Code != codes.Completed {
			t.Fatalf("%+v", s.Failure)
		}
		readers.Wait()

		full := w.reading(hub, id, framelog.TailOptions{}, 0)
		told := passages(full, nil)
		known := map[string]bool{}
		for _, text := range told {
			known[text] = true
		}
		checkFamily(t, id, full)
		turns := 0
		for i := 1; i < len(full); i++ {
			if full[i].Child != full[i-1].Child {
				turns++
			}
		}
		differ(t, "live", passages(live, known), told)
		for _, guest := range guests {
			differ(t, "with interruptions", passages(guest, known), told)
		}
		looked, every := map[stream.Position]bool{}, 1
		if race.Enabled || strings.HasSuffix(w.Name(), "embedded") { // which takes ten times as long
			every = 7
		}
		for name, all := range map[string][]stream.TailEvent{"stored": full, "live": live} {
			behind := 0
			for i, e := range all {
				if lasting(e) && known[passage(e)] {
					behind++
				}
				if looked[e.Position] || i%every != 0 {
					continue
				}
				looked[e.Position] = true
				rest := w.reading(hub, id, framelog.TailOptions{From: e.Position, Stored: true}, 0)
				if differ(t, fmt.Sprintf("behind %s event %d, %s, at %s", name, i, passage(e), e.Position),
					passages(rest, nil), told[behind:]) {
					break
				}
			}
		}
		t.Logf("%d events, %d to a reader who was there, %d positions; the source changed %d times", len(full),
			len(live), len(looked), turns)
		first := uint32(1)
		end := slices.IndexFunc(full, func(e stream.TailEvent) bool {
			return e.Child == nil && e.Kind == stream.TailAttemptEnd
		})
		differ(t, "the first attempt", passages(w.reading(hub, id, framelog.TailOptions{Attempt: &first}, 0), nil),
			passages(full[:end+1], nil))
		own := w.reading(hub, id, framelog.TailOptions{WithoutChildren: true}, 0)
		for _, e := range own {
			if e.Child != nil || len(e.Position) > 140 || e.Frame.Type != "" && e.Frame.Type != "token" {
				t.Errorf("among its own: %+v", e)
			}
		}
	})
}

// More children than a tail follows at once are shown all the same, one after another. When all that are followed wait
// for room for a child of their own, they go on without.
func TestAFamilyTooLargeForOneStream(t *testing.T) {
	w := newEnv(t)
	const children = limits.MaxTailed + 3
	tell := handler.Bind(teller, func(ctx context.Context, task *handler.Task, in string) (string, error) {
		if err := say(ctx, task, "one", 2, nil); err != nil || in == "below" {
			return "", err
		}
		set := flow.Children("below")
		flow.Child(set, "deep", teller, "below", flow.Streamed())
		if err := task.WaitChildren(ctx, set); err != nil {
			return "", err
		}
		return "", say(ctx, task, "two", 2, nil)
	})
	w.start(runtime.Config{}, tell, handler.Bind(parent,
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			set := flow.Children("many")
			for i := range children {
				flow.Child(set, fmt.Sprint(i), teller, "x", flow.Streamed())
			}
			if err := task.WaitChildren(ctx, set); err != nil {
				return "", err
			}
			return "", say(ctx, task, "end", 2, nil)
		}))
	id := w.submitKind("parent", "")
	hub := framelog.NewHub(w.engine)
	t.Cleanup(hub.Close)
	live := w.reading(hub, id, framelog.TailOptions{}, 0)
	full := w.reading(hub, id, framelog.TailOptions{}, 0)
	told := passages(full, nil)
	differ(t, "live", passages(live, nil), told)
	var all stream.Transcript
	direct, longest := 0, 0
	for i, e := range full {
		all.Add(e)
		longest = max(longest, len(e.Position))
		if i%17 == 0 {
			rest := w.reading(hub, id, framelog.TailOptions{From: e.Position, Stored: true}, 0)
			if differ(t, fmt.Sprintf("behind event %d", i), passages(rest, nil), told[i+1:]) {
				break
			}
		}
	}
	for child, said := range all.Children() {
		if text := said.Text(); len(child.Path) == 1 {
			if direct++; text != "one-0 one-1 two-0 two-1 " {
				t.Errorf("%s said %q", child.Path, text)
			}
		}
	}
	if direct != children || all.Text() != "end-0 end-1 " {
		t.Errorf("%d children of %d, then %q", direct, children, all.Text())
	}
	t.Logf("%d children and their children in %d events; the longest position has %d bytes", children, len(full),
		longest)
}

// Of a child that was purged a gap is told, where it began or where a reader was, and all else as before.
func TestAPurgedChildInAStream(t *testing.T) {
	w := newEnv(t)
	w.start(runtime.Config{}, handler.Bind(teller,
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			return "", say(ctx, task, "one", 3, nil)
		}), handler.Bind(parent, func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		set := flow.Children("two")
		flow.Child(set, "kept", teller, "", flow.Streamed())
		flow.Child(set, "gone", teller, "", flow.Streamed())
		return "", task.WaitChildren(ctx, set)
	}))
	id := w.submitKind("parent", "")
	w.reach(id, codes.Completed)
	hub := framelog.NewHub(w.engine)
	t.Cleanup(hub.Close)
	full := w.reading(hub, id, framelog.TailOptions{}, 0)
	if _, err := w.engine.PurgeExecution(trail.As(w.ctx, "op", ""), id.Child("two", "gone"), 0); err != nil {
		t.Fatal(err)
	}
	gone := func(e stream.TailEvent) bool { return e.Child != nil && e.Child.Path[0] == "gone" }
	var rest []string
	for i := len(full); i > 0; i-- {
		e, from := full[i-1], stream.Position("")
		if i > 1 {
			from = full[i-2].Position
		}
		if !gone(e) {
			rest = append([]string{passage(e)}, rest...)
		}
		var told []string
		gaps := 0
		for _, e := range w.reading(hub, id, framelog.TailOptions{From: from, Stored: true}, 0) {
			if !gone(e) {
				told = append(told, passage(e))
			} else if gaps++; e.Kind != stream.TailGap || e.Reason != "purged" {
				t.Errorf("of what was purged: %+v", e)
			}
		}
		want := 0
		if slices.ContainsFunc(full[i-1:], gone) {
			want = 1
		}
		if differ(t, fmt.Sprint("from event ", i), told, rest); gaps != want {
			t.Errorf("from event %d: %d gaps, want %d", i, gaps, want)
		}
	}
}

// A worker may die between an announcement and its record. The next attempt announces the child again, and its events
// are told once.
func TestAChildAnnouncedTwice(t *testing.T) {
	w := newEnv(t)
	heard, hear := context.WithCancel(w.ctx)
	announce := func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		set := flow.Children("two")
		child := flow.Child(set, "it", teller, "")
		// As the step that announces children does. A second run of an attempt repeats the call, which changes nothing.
		if _, err := w.engine.AppendFrames(ctx, task.Fence(), 1, []stream.Frame{{Sequence: 1, Type: limits.FrameOfChild,
			Correlation: child.ID(task).String(), Source: "it"}, {Sequence: 2, Payload: []byte("hello")}}); err != nil {
			return "", err
		}
		if task.Attempt() == 1 {
			select { // a reader gets what comes behind, though there is no child
			case <-heard.Done():
			case <-ctx.Done():
			}
			return "", errors.New("it dies")
		}
		return "", task.WaitChildren(ctx, set)
	}
	w.start(runtime.Config{}, handler.Bind(greet, announce), handler.Bind(teller,
		func(ctx context.Context, task *handler.Task, _ string) (string, error) {
			return "", say(ctx, task, "one", 3, nil)
		}))
	id := w.submit("", retries(1))
	hub := framelog.NewHub(w.engine)
	t.Cleanup(hub.Close)
	live := passages(w.reading(hub, id, framelog.TailOptions{}, 0, func(e stream.TailEvent) {
		if string(e.Frame.Payload) == "hello" {
			hear()
		}
	}), nil)
	full := w.reading(hub, id, framelog.TailOptions{}, 0)
	told := passages(full, nil)
	differ(t, "live", live, told)
	frames := 0
	for i, e := range full {
		if e.Kind == stream.TailFrame {
			frames++
		}
		rest := passages(w.reading(hub, id, framelog.TailOptions{From: e.Position, Stored: true}, 0), nil)
		differ(t, "behind "+string(e.Position), rest, told[i+1:])
	}
	if frames != 2+3 {
		t.Errorf("%d frames:\n%s", frames, strings.Join(told, "\n"))
	}
}

// A tail ends with its execution, though children go on that it leaves; also behind every position, and for who wants
// none of the children.
func TestChildrenThatAreLeft(t *testing.T) {
	w := newEnv(t)
	free, let := context.WithCancel(w.ctx)
	tell := func(ctx context.Context, task *handler.Task, in string) (string, error) {
		if err := say(ctx, task, "one", 3, nil); err != nil || in == "short" {
			return "", err
		}
		select {
		case <-free.Done():
		case <-ctx.Done():
		}
		return "", say(ctx, task, "two", 3, nil)
	}
	leave := func(ctx context.Context, task *handler.Task, _ string) (string, error) {
		set := flow.Children("first", flow.First(), flow.Leave())
		for _, name := range []string{"short", "long"} {
			flow.Child(set, name, teller, name, flow.Streamed())
		}
		if err := task.WaitChildren(ctx, set); err != nil {
			return "", err
		}
		if err := say(ctx, task, "last", 2, nil); err != nil {
			return "", err
		}
		return "", handler.Permanent(errors.New("no more"))
	}
	w.start(runtime.Config{}, handler.Bind(teller, tell), handler.Bind(parent, leave))
	id := w.submitKind("parent", "")
	hub := framelog.NewHub(w.engine)
	t.Cleanup(hub.Close)
	w.reach(id, codes.Failed)
	long := id.Child("first", "long")
	w.eventually("the other one talks", func() bool {
		meta, err := w.engine.ReadAttemptStream(w.ctx, long, 1)
		return err == nil && meta.Count == 3
	})
	full := w.reading(hub, id, framelog.TailOptions{}, 0)
	told := passages(full, nil)
	if last := full[len(full)-1]; last.Kind != stream.TailEnd || last.Child != nil || last.State != flowfabric.Failed {
		t.Errorf("the last event is %s", passage(last))
	}
	let()
	w.reach(long, codes.Completed)
	for i, e := range full {
		rest := w.reading(hub, id, framelog.TailOptions{From: e.Position}, 0)
		differ(t, fmt.Sprint("behind event ", i), passages(rest, nil), told[i+1:])
		var own []string
		for _, e := range full[i+1:] {
			if e.Child == nil {
				own = append(own, passage(e))
			}
		}
		rest = w.reading(hub, id, framelog.TailOptions{From: e.Position, WithoutChildren: true}, 0)
		differ(t, fmt.Sprint("its own behind event ", i), passages(rest, nil), own)
	}
	for _, e := range w.reading(hub, id, framelog.TailOptions{FromNow: true}, 0) {
		if e.Kind == stream.TailFrame || e.Child != nil {
			t.Errorf("from now: %s", passage(e))
		}
	}
	all := w.reading(hub, long, framelog.TailOptions{}, 0)
	if frames := strings.Count(strings.Join(passages(all, nil), "\n"), " frame"); frames != 6 {
		t.Errorf("%d frames of the child in a tail of its own", frames)
	}
}

// Children of children are shown as deep as the limit says, and those below are not.
func TestAFamilyTooDeepForOneStream(t *testing.T) {
	w := newEnv(t)
	deep := handler.Define[int, string]("deep")
	w.start(runtime.Config{}, handler.Bind(deep, func(ctx context.Context, task *handler.Task, n int) (string, error) {
		set := flow.Children("below")
		if n > 0 {
			flow.Child(set, fmt.Sprint("n", n), deep, n-1, flow.Streamed())
		}
		if err := task.WaitChildren(ctx, set); err != nil {
			return "", err
		}
		return "", say(ctx, task, "one", 1, nil)
	}))
	id := w.submitKind("deep", limits.MaxTailedDepth+2)
	hub := framelog.NewHub(w.engine)
	t.Cleanup(hub.Close)
	paths := map[string]bool{}
	for _, e := range w.reading(hub, id, framelog.TailOptions{}, 0) {
		if e.Child != nil && e.Kind == stream.TailFrame {
			paths[strings.Join(e.Child.Path, "/")] = true
		}
	}
	if len(paths) != limits.MaxTailedDepth || !paths["n6/n5/n4/n3"] {
		t.Errorf("%v", paths)
	}
}

// checkFamily reads the transcripts of a whole reading.
func checkFamily(t *testing.T, id flowfabric.ExecutionID, full []stream.TailEvent) {
	t.Helper()
	var all stream.Transcript
	asked := false
	for _, e := range full {
		all.Add(e)
		asked = asked || e.Kind == stream.TailSuspended
	}
	text := func(parts ...any) (text string) {
		for i := 0; i < len(parts); i += 2 {
			for n := range parts[i+1].(int) {
				text += fmt.Sprintf("%s-%d ", parts[i], n)
			}
		}
		return text
	}
	if got, want := all.Text(), text("begin", 5, "middle", 20, "end", 5); got != want {
		t.Errorf("the parent said %q, want %q", got, want)
	}
	var names []string
	below := id.Child("first", "nest").Child("below", "deep")
	for child, said := range all.Children() {
		name := strings.Join(child.Path, "/")
		names = append(names, name)
		got := said.Text()
		if (child.ID == below) != (name == "nest/deep") {
			t.Errorf("%s is %s", name, child.ID)
		}
		if want := text("one", 6, "two", 6); name != "short" && got != want {
			t.Errorf("%s said %q, want %q", name, got, want)
		}
		if name == "short" && (said.Lost() == 0 || !strings.HasSuffix(got, text("two", 6))) {
			t.Errorf("%s lost %d and said %q", name, said.Lost(), got)
		}
	}
	slices.Sort(names)
	if got := strings.Join(names, ", "); got != "ask, killed, late, nest, nest/deep, plain one, retry, short" {
		t.Errorf("children are %s", got)
	}
	if asked {
		t.Error("it asks when all is over")
	}
	if last := full[len(full)-1].Position; len(last) > 140 {
		t.Errorf("the last position is %s", last)
	}
}
