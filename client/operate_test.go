package client

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// The event of the end before a replay may come after the replay has returned: it must not answer who waits for the
// new end, neither while the replay waits nor while it runs.
func TestResultIsNotAnsweredByTheEndBeforeAReplay(t *testing.T) {
	for _, code := range []codes.Code{codes.WaitingReplay, codes.Active} {
		waiting(t, func(t *testing.T, f *fakeStore, _ *Client, e *Execution[string]) {
			attempts := map[codes.Code]uint32{codes.WaitingReplay: 1, codes.Active: 2}[code]
			f.ended[e.ID()] = snapshot(e.ID(), code, attempts)
			f.attempt(e.ID(), 1, `"old"`)
			var wg sync.WaitGroup
			w := result(&wg, t.Context(), e)
			f.publish(e.ID(), "T1 1")
			synctest.Wait()
			if w.done {
				t.Fatalf("%s: answered %q, %v", code, w.value, w.err)
			}
			f.attempt(e.ID(), 2, `"new"`)
			f.publish(e.ID(), "T1 2")
			wg.Wait()
			if w.value != "new" || w.err != nil || w.took != 0 {
				t.Errorf("%s: %+v", code, w)
			}
		})
	}
}

// A result that is gone when it is read is an empty one only if the execution is still there.
func TestResultPurgedBetweenTwoReads(t *testing.T) {
	waiting(t, func(t *testing.T, f *fakeStore, c *Client, e *Execution[string]) {
		f.end(e.ID(), codes.Completed, "")
		f.readErr = func() error {
			if f.reads == 2 {
				return denied.New("fake", "result_purged", "T1")
			}
			return nil
		}
		if b, err := c.Execution(e.ID()).Result(t.Context()); !errors.Is(err, flowfabric.ErrResultPurged) {
			t.Errorf("%q, %v", b, err)
		}
	})
}

// A key leads to its execution once that was submitted, in its namespace.
func TestAttachKey(t *testing.T) {
	f := newFake()
	c := f.client(t)
	ctx := t.Context()
	if _, err := AttachKey(ctx, c, echo, "tides-1"); !errors.Is(err, flowfabric.ErrNotFound) ||
		!strings.Contains(err.Error(), `"tides-1"`) {
		t.Errorf("before the submit: %v", err)
	}
	submitted, err := Submit(ctx, c, echo, "tides", flowfabric.IdempotencyKey("tides-1"))
	if err != nil || submitted.Duplicate() {
		t.Fatal(submitted, err)
	}
	x, err := AttachKey(ctx, c, echo, "tides-1")
	if err != nil || submitted.ID() != x.ID() {
		t.Fatalf("submitted %s, attached %v: %v", submitted.ID(), x, err)
	}
	elsewhere, err := Submit(ctx, c, echo, "tides", flowfabric.Unique("tides-1"), flowfabric.Namespace("blue"))
	if err != nil || elsewhere.ID() == x.ID() || elsewhere.Duplicate() {
		t.Errorf("in another namespace: %s, %v", elsewhere.ID(), err)
	}
	if there, err := AttachKey(ctx, c, echo, "tides-1", flowfabric.Namespace("blue")); err != nil ||
		there.ID() != elsewhere.ID() {
		t.Errorf("attached in another namespace: %v", err)
	}
	if raw, err := c.Execution(x.ID()).Input(ctx); string(raw) != `"tides"` || err != nil {
		t.Errorf("input %q, %v", raw, err)
	}
	attach := func(key string, opts ...AttachOption) error {
		_, err := AttachKey(ctx, c, echo, key, opts...)
		return err
	}
	_, undefined := AttachKey[string, string](ctx, c, nil, "k")
	for name, err := range map[string]error{"no key": attach(""), "a long key": attach(strings.Repeat("k", 257)),
		"a namespace": attach("k", flowfabric.Namespace("{}")), "no definition": undefined} {
		if !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A unique key looks at no input, and an execution has one key.
func TestUniqueKeys(t *testing.T) {
	f := newFake()
	c := f.client(t)
	ctx := t.Context()
	first, err := Submit(ctx, c, echo, "tides", flowfabric.Unique("one"))
	if err != nil || first.Duplicate() {
		t.Fatal(err)
	}
	second, err := Submit(ctx, c, echo, "moons", flowfabric.Unique("one"), flowfabric.KeyWindow(time.Minute))
	if err != nil || !second.Duplicate() || second.ID() != first.ID() {
		t.Errorf("the second: %v, %v", second, err)
	}
	if x := f.Stored[first.ID()]; x.Key.For != 0 || x.Digest != "" {
		t.Errorf("%+v", x)
	}
	all, err := SubmitMany(ctx, c, echo, []string{"a", "b", "c"},
		UniqueKeys(func(i int) string { return []string{"x", "y", "x"}[i] }),
		flowfabric.KeyWindow(time.Hour))
	if err != nil || all[0].ID() != all[2].ID() || all[0].ID() == all[1].ID() || all[0].Duplicate() ||
		!all[2].Duplicate() {
		t.Errorf("of many: %v, %v", all, err)
	}
	if x := f.Stored[all[0].ID()]; x.Key.For != time.Hour || string(x.Payload) != `"a"` {
		t.Errorf("%+v", x)
	}
	key := func(int) string { return "k" }
	for name, opts := range map[string][]SubmitOption{
		"two keys":      {flowfabric.Unique("k"), flowfabric.IdempotencyKey("k")},
		"no key":        {flowfabric.KeyWindow(time.Hour)},
		"empty":         {flowfabric.Unique("")},
		"long":          {flowfabric.Unique(strings.Repeat("k", 257))},
		"short window":  {flowfabric.Unique("k"), flowfabric.KeyWindow(time.Second - 1)},
		"long window":   {flowfabric.IdempotencyKey("k"), flowfabric.KeyWindow(365*24*time.Hour + 1)},
		"keys for many": {UniqueKeys(key)},
	} {
		if _, err := Submit(ctx, c, echo, "x", opts...); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, opts := range map[string][]SubmitOption{
		"one key":    {flowfabric.Unique("k")},
		"two kinds":  {UniqueKeys(key), IdempotencyKeys(key)},
		"both kinds": {UniqueKeys(key), flowfabric.IdempotencyKey("k")},
		"empty":      {UniqueKeys(func(int) string { return "" })},
	} {
		if _, err := SubmitMany(ctx, c, echo, []string{"x", "y"}, opts...); !errors.Is(err,
			flowfabric.ErrInvalidInput) {
			t.Errorf("many, %s: %v", name, err)
		}
	}
	if len(f.Stored) != 3 {
		t.Errorf("%d stored", len(f.Stored))
	}
}

// A debounced submission is delayed by its own time, and what contradicts it is refused by name.
func TestDebounce(t *testing.T) {
	f := newFake()
	c := f.client(t)
	ctx := t.Context()
	first, err := Submit(ctx, c, echo, "tides", flowfabric.Debounce("k", 1500*time.Microsecond),
		flowfabric.DebounceMax(time.Hour))
	must.No(t, err)
	if x := f.Stored[first.ID()]; !x.Key.Debounce || x.Key.Most != time.Hour ||
		x.Delay != flowfabric.Millis(time.Millisecond) ||
		x.Digest != "" {
		t.Errorf("%+v", x)
	}
	unique, err := Submit(ctx, c, echo, "tides", flowfabric.Unique("k"))
	if err != nil || unique.ID() == first.ID() {
		t.Errorf("a unique key of the same text: %v, %v", unique, err)
	}
	key := func(i int) string { return []string{"x", "y", "x"}[i] }
	all, err := SubmitMany(ctx, c, echo, []string{"a", "b", "c"}, DebounceKeys(key, time.Second),
		flowfabric.DebounceMax(time.Minute))
	if err != nil || all[0].ID() != all[2].ID() || all[0].ID() == all[1].ID() {
		t.Errorf("of many: %v, %v", all, err)
	}
	if x := f.Stored[all[1].ID()]; !x.Key.Debounce || x.Key.Most != time.Minute ||
		x.Delay != flowfabric.Millis(time.Second) {
		t.Errorf("%+v", x)
	}
	d := flowfabric.Debounce("k", time.Second)
	for name, x := range map[string]struct {
		opts []SubmitOption
		want string
	}{
		"a delay": {[]SubmitOption{d, flowfabric.Delay(time.Hour)}, "Debounce with Delay or DelayUntil"},
		"an instant": {[]SubmitOption{d, flowfabric.DelayUntil(time.Now())},
			"Debounce with Delay or DelayUntil"},
		"a window":     {[]SubmitOption{d, flowfabric.KeyWindow(time.Hour)}, "Debounce with KeyWindow"},
		"a unique key": {[]SubmitOption{d, flowfabric.Unique("u")}, "one key"},
		"a key":        {[]SubmitOption{d, flowfabric.IdempotencyKey("u")}, "one key"},
		"no time":      {[]SubmitOption{flowfabric.Debounce("k", 0)}, "Debounce is 0s, want 1ms..10 years"},
		"a long time":  {[]SubmitOption{flowfabric.Debounce("k", 11*365*24*time.Hour)}, "want 1ms..10 years"},
		"no key":       {[]SubmitOption{flowfabric.Debounce("", time.Second)}, "debounce key has 0 bytes"},
		"a long key": {[]SubmitOption{flowfabric.Debounce(strings.Repeat("k", 257), time.Second)},
			"debounce key has 257 bytes"},
		"a short bound": {[]SubmitOption{d, flowfabric.DebounceMax(time.Second - 1)},
			"DebounceMax is 999.999999ms"},
		"a long bound":      {[]SubmitOption{d, flowfabric.DebounceMax(11 * 365 * 24 * time.Hour)}, "DebounceMax is"},
		"a bound alone":     {[]SubmitOption{flowfabric.DebounceMax(time.Hour)}, "DebounceMax without Debounce"},
		"an early deadline": {[]SubmitOption{d, flowfabric.Deadline(time.Second)}, "deadline"},
		"keys for many":     {[]SubmitOption{DebounceKeys(key, time.Second)}, "for SubmitMany"},
	} {
		_, err := Submit(ctx, c, echo, "x", x.opts...)
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	for name, opts := range map[string][]SubmitOption{
		"one key":    {d},
		"two kinds":  {DebounceKeys(key, time.Second), UniqueKeys(key)},
		"both kinds": {DebounceKeys(key, time.Second), flowfabric.Unique("k")},
		"no time":    {DebounceKeys(key, 0)},
		"a delay":    {DebounceKeys(key, time.Second), flowfabric.Delay(time.Second)},
	} {
		if _, err := SubmitMany(ctx, c, echo, []string{"x", "y"}, opts...); !errors.Is(err,
			flowfabric.ErrInvalidInput) {
			t.Errorf("many, %s: %v", name, err)
		}
	}
	if len(f.Stored) != 4 {
		t.Errorf("%d stored", len(f.Stored))
	}
}
