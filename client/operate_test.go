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
	elsewhere, err := Submit(ctx, c, echo, "tides", flowfabric.Key{Text: "tides-1", WhileActive: true},
		flowfabric.Namespace("blue"))
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
func TestKeys(t *testing.T) {
	f := newFake()
	c := f.client(t)
	ctx := t.Context()
	first, err := Submit(ctx, c, echo, "tides", flowfabric.Key{Text: "one", WhileActive: true})
	if err != nil || first.Duplicate() {
		t.Fatal(err)
	}
	second, err := Submit(ctx, c, echo, "moons", flowfabric.Key{Text: "one", WhileActive: true, Window: time.Minute})
	if err != nil || !second.Duplicate() || second.ID() != first.ID() {
		t.Errorf("the second: %v, %v", second, err)
	}
	if x := f.Stored[first.ID()]; x.Key.Window != 0 || x.Digest != "" {
		t.Errorf("%+v", x)
	}
	all, err := SubmitMany(ctx, c, echo, []string{"a", "b", "c"},
		Keys(func(i int) flowfabric.Key {
			return flowfabric.Key{Text: []string{"x", "y", "x"}[i], WhileActive: true, Window: time.Hour}
		}))
	if err != nil || all[0].ID() != all[2].ID() || all[0].ID() == all[1].ID() || all[0].Duplicate() ||
		!all[2].Duplicate() {
		t.Errorf("of many: %v, %v", all, err)
	}
	if x := f.Stored[all[0].ID()]; x.Key.Window != time.Hour || string(x.Payload) != `"a"` {
		t.Errorf("%+v", x)
	}
	each := Keys(func(int) flowfabric.Key { return flowfabric.IdempotencyKey("k") })
	for name, opts := range map[string][]SubmitOption{
		"two keys":  {flowfabric.Key{Text: "k", WhileActive: true}, flowfabric.IdempotencyKey("k")},
		"two alike": {flowfabric.IdempotencyKey("k"), flowfabric.IdempotencyKey("k")},
		"two said": {flowfabric.IdempotencyKey("k"),
			flowfabric.StartWith(flowfabric.Start{Key: &flowfabric.Key{Text: "k"}})},
		"no text":       {flowfabric.Key{Window: time.Hour}},
		"empty":         {flowfabric.Key{Text: "", WhileActive: true}},
		"long":          {flowfabric.Key{Text: strings.Repeat("k", 257), WhileActive: true}},
		"short window":  {flowfabric.Key{Text: "k", WhileActive: true, Window: time.Second - 1}},
		"long window":   {flowfabric.Key{Text: "k", Window: 365*24*time.Hour + 1}},
		"keys for many": {each},
	} {
		if _, err := Submit(ctx, c, echo, "x", opts...); !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, opts := range map[string][]SubmitOption{
		"one key":  {flowfabric.Key{Text: "k", WhileActive: true}},
		"two":      {each, each},
		"both":     {each, flowfabric.IdempotencyKey("k")},
		"empty":    {Keys(func(int) flowfabric.Key { return flowfabric.Key{WhileActive: true} })},
		"a window": {Keys(func(int) flowfabric.Key { return flowfabric.Key{Text: "k", Window: 1} })},
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
	first, err := Submit(ctx, c, echo, "tides", flowfabric.Key{Text: "k", Debounce: 1500 * time.Microsecond,
		DebounceMax: time.Hour})
	must.No(t, err)
	if x := f.Stored[first.ID()]; x.Key.DebounceMax != time.Hour || x.Delay != flowfabric.Millis(time.Millisecond) ||
		x.Digest != "" {
		t.Errorf("%+v", x)
	}
	unique, err := Submit(ctx, c, echo, "tides", flowfabric.Key{Text: "k", WhileActive: true})
	if err != nil || unique.ID() == first.ID() {
		t.Errorf("a unique key of the same text: %v, %v", unique, err)
	}
	key := func(i int) flowfabric.Key {
		return flowfabric.Key{Text: []string{"x", "y", "x"}[i], Debounce: time.Second, DebounceMax: time.Minute}
	}
	all, err := SubmitMany(ctx, c, echo, []string{"a", "b", "c"}, Keys(key))
	if err != nil || all[0].ID() != all[2].ID() || all[0].ID() == all[1].ID() {
		t.Errorf("of many: %v, %v", all, err)
	}
	if x := f.Stored[all[1].ID()]; x.Key.DebounceMax != time.Minute || x.Delay != flowfabric.Millis(time.Second) {
		t.Errorf("%+v", x)
	}
	d := flowfabric.Key{Text: "k", Debounce: time.Second}
	with := func(change func(k *flowfabric.Key)) []SubmitOption {
		k := d
		change(&k)
		return []SubmitOption{k}
	}
	for name, x := range map[string]struct {
		opts []SubmitOption
		want string
	}{
		"a delay": {[]SubmitOption{d, flowfabric.Delay(time.Hour)}, "Key.Debounce with Delay or DelayUntil"},
		"an instant": {[]SubmitOption{d, flowfabric.DelayUntil(time.Now())},
			"Key.Debounce with Delay or DelayUntil"},
		"a window": {with(func(k *flowfabric.Key) { k.Window = time.Hour }), "Key.Debounce with Key.Window"},
		"while active": {with(func(k *flowfabric.Key) { k.WhileActive = true }),
			"Key.Debounce with Key.WhileActive"},
		"a unique key": {[]SubmitOption{d, flowfabric.Key{Text: "u", WhileActive: true}}, "one key"},
		"a key":        {[]SubmitOption{d, flowfabric.IdempotencyKey("u")}, "one key"},
		"a negative time": {with(func(k *flowfabric.Key) { k.Debounce = -1 }),
			"Key.Debounce is -1ns, want 1ms..10 years"},
		"a short time": {with(func(k *flowfabric.Key) { k.Debounce = time.Millisecond - 1 }),
			"want 1ms..10 years"},
		"a long time": {with(func(k *flowfabric.Key) { k.Debounce = 11 * 365 * 24 * time.Hour }),
			"want 1ms..10 years"},
		"no text":     {with(func(k *flowfabric.Key) { k.Text = "" }), "key has 0 bytes"},
		"a long text": {with(func(k *flowfabric.Key) { k.Text = strings.Repeat("k", 257) }), "key has 257 bytes"},
		"a short bound": {with(func(k *flowfabric.Key) { k.DebounceMax = time.Second - 1 }),
			"Key.DebounceMax is 999.999999ms"},
		"a long bound": {with(func(k *flowfabric.Key) { k.DebounceMax = 11 * 365 * 24 * time.Hour }),
			"Key.DebounceMax is"},
		"a bound alone": {with(func(k *flowfabric.Key) { k.Debounce, k.DebounceMax = 0, time.Hour }),
			"Key.DebounceMax without Key.Debounce"},
		"an early deadline": {[]SubmitOption{d, flowfabric.Deadline(time.Second)}, "deadline"},
		"keys for many":     {[]SubmitOption{Keys(key)}, "for SubmitMany"},
	} {
		_, err := Submit(ctx, c, echo, "x", x.opts...)
		if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %q", name, err, x.want)
		}
	}
	for name, opts := range map[string][]SubmitOption{
		"one key":           {d},
		"both":              {Keys(key), flowfabric.Key{Text: "k", WhileActive: true}},
		"no time":           {Keys(func(int) flowfabric.Key { return flowfabric.Key{Text: "k", Debounce: -1} })},
		"a delay":           {Keys(key), flowfabric.Delay(time.Second)},
		"an early deadline": {Keys(key), flowfabric.Deadline(time.Second)},
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
