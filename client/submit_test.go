package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestConfigIsCheckedBeforeAnyIO(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		want []string
	}{
		{Config{}, []string{"FLOWFABRIC_URL", "embedded:./data"}},
		{Config{URL: "redis://nowhere.invalid", Namespace: "a{b"}, []string{"Namespace"}},
		{Config{URL: "redis://nowhere.invalid", Creator: strings.Repeat("x", 65)}, []string{"Creator has 65 bytes"}},
		{Config{URL: "redis://nowhere.invalid", SubmitTimeout: -1}, []string{"SubmitTimeout"}},
		{Config{URL: "http://x"}, []string{"scheme"}},
	} {
		x.cfg.Logger = slog.New(slog.DiscardHandler)
		_, err := Connect(t.Context(), x.cfg)
		for _, want := range x.want {
			if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want ErrConfig naming %s", x.cfg, err, want)
			}
		}
	}
}

func TestSubmitFillsInAndOverrides(t *testing.T) {
	f := newFake()
	c := f.client(t)
	def := handler.Define[string, string]("work", flowfabric.Lane("slow"), flowfabric.Priority(3),
		flowfabric.Capabilities("gpu"), flowfabric.Deadline(time.Hour), flowfabric.Retries(0),
		flowfabric.Tags(map[string]string{"team.name": "all", "team.region": "eu"}))
	at := time.Now().Add(time.Minute)
	plain, err := Submit(t.Context(), c, def, "in")
	must.No(t, err)
	changed, err := Submit(t.Context(), c, def, "in", flowfabric.Lane("fast"), flowfabric.Priority(9000),
		flowfabric.Capabilities("b", "a", "b"), flowfabric.DeadlineAt(at.Add(time.Minute)),
		flowfabric.DelayUntil(at), flowfabric.Tags(map[string]string{"team.name": "x"}), flowfabric.Namespace("blue"),
		flowfabric.Creator("me"), flowfabric.Retries(7), flowfabric.Timeout(time.Minute))
	must.No(t, err)
	got := f.Stored[plain.ID()]
	if got.Lane != "slow" || got.Priority != 3 || fmt.Sprint(got.Capabilities) != "[gpu]" ||
		got.Deadline != flowfabric.Millis(time.Hour) ||
		got.Policy.Retry.MaxRetries != 0 || got.Policy.AttemptTimeout != 0 || got.Namespace != "default" ||
		got.Kind != "work" || string(got.Payload) != `"in"` || got.Digest != "" || len(got.Tags) != 2 ||
		got.Tags["team.name"] != "all" {
		t.Errorf("from the definition: %+v", got)
	}
	x := f.Stored[changed.ID()]
	if x.Lane != "fast" || x.Priority != 9000 || fmt.Sprint(x.Capabilities) != "[a b]" || x.Deadline != 0 ||
		!x.DelayUntil.Equal(at) || x.Policy.Retry.MaxRetries != 7 ||
		x.Policy.AttemptTimeout != flowfabric.Millis(time.Minute) ||
		x.Namespace != "blue" || x.Creator != "me" || x.Tags["team.name"] != "x" || len(x.Tags) != 1 ||
		x.Digest != got.Digest {
		t.Errorf("from the options: %+v", x)
	}
}

// foreign has the marker of an option and is none.
type foreign struct{}

func (foreign) SubmitOption() {}

func TestSubmitRefusesBeforeAnyIO(t *testing.T) {
	f := newFake()
	c := f.client(t)
	raw := handler.Define[[]byte, []byte]("raw")
	ctx, many := t.Context(), map[string]string{}
	for i := range 65 {
		many[fmt.Sprintf("tag.n%d", i)] = ""
	}
	for name, x := range map[string]struct {
		opt  SubmitOption
		want error
	}{
		"Priority is 9001": {flowfabric.Priority(9001), flowfabric.ErrInvalidInput},
		"priority -1":      {flowfabric.Priority(-1), flowfabric.ErrInvalidInput},
		"empty lane":       {flowfabric.Lane(""), flowfabric.ErrInvalidInput},
		"lane of 65":       {flowfabric.Lane(strings.Repeat("l", 65)), flowfabric.ErrInvalidInput},
		"namespace brace":  {flowfabric.Namespace("{x}"), flowfabric.ErrInvalidInput},
		"creator of 65":    {flowfabric.Creator(strings.Repeat("c", 65)), flowfabric.ErrInvalidInput},
		"empty key":        {flowfabric.IdempotencyKey(""), flowfabric.ErrInvalidInput},
		"key of 257":       {flowfabric.IdempotencyKey(strings.Repeat("k", 257)), flowfabric.ErrInvalidInput},
		"nil":              {nil, flowfabric.ErrInvalidInput},
		"not an option":    {foreign{}, flowfabric.ErrInvalidInput},
		"keys": {Keys(func(int) flowfabric.Key { return flowfabric.IdempotencyKey("k") }),
			flowfabric.ErrInvalidInput},
		"65 tags": {flowfabric.Tags(many), flowfabric.ErrInvalidInput},
		"tag key": {flowfabric.Tags(map[string]string{"plain": ""}), flowfabric.ErrInvalidInput},
		"tag value of 257": {flowfabric.Tags(map[string]string{"a.b": strings.Repeat("v", 257)}),
			flowfabric.ErrInvalidInput},
		"capability comma":    {flowfabric.Capabilities("a,b"), denied.Capabilities},
		"delay -1":            {flowfabric.Delay(-1), flowfabric.ErrInvalidInput},
		"delay over 10 years": {flowfabric.Delay(limits.MaxDelay + 1), flowfabric.ErrInvalidInput},
		"delay in the year 1": {flowfabric.DelayUntil(time.Time{}.Add(1)), flowfabric.ErrInvalidInput},
		"retries -1":          {flowfabric.Retries(-1), denied.Policy},
		"retries 1001":        {flowfabric.Retries(1001), denied.Policy},
		"timeout -1":          {flowfabric.Timeout(-1), denied.Policy},
		"timeout 11 years":    {flowfabric.Timeout(11 * 365 * 24 * time.Hour), denied.Policy},
		"deadline 1ns":        {flowfabric.Deadline(1), flowfabric.ErrInvalidInput},
		"deadline -1":         {flowfabric.Deadline(-1), flowfabric.ErrInvalidInput},
		"deadline 11 years":   {flowfabric.DeadlineAt(time.Now().AddDate(11, 0, 0)), flowfabric.ErrInvalidInput},
	} {
		if _, err := Submit(ctx, c, raw, nil, x.opt); !errors.Is(err, x.want) {
			t.Errorf("%s: %v, want %v", name, err, x.want)
		}
	}
	if _, err := Submit(ctx, c, raw, nil, flowfabric.Delay(time.Hour), flowfabric.Deadline(time.Hour)); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("delay past deadline: %v", err)
	}
	if _, err := Submit(ctx, c, raw, make([]byte, limits.MaxPayload+1)); !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) ||
		!strings.Contains(err.Error(), "raw") || !strings.Contains(err.Error(), "1048577") ||
		!strings.Contains(err.Error(), "1048576") {
		t.Errorf("payload of 1 MiB + 1: %v, want kind, size and limit", err)
	}
	if _, err := Submit(ctx, c, handler.Define[int, int]("a{b"), 1); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("bad definition: %v", err)
	}
	if _, err := Submit(ctx, c, handler.Define[func(), int]("f"), func() {}); err == nil {
		t.Error("an input that cannot be encoded was accepted")
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := Submit(dead, c, raw, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("dead context: %v", err)
	}
	if n := len(f.Seen()); n != 0 {
		t.Errorf("%d calls were made", n)
	}
	for name, opt := range map[string]SubmitOption{
		"priority 9000": flowfabric.Priority(9000), "key of 256": flowfabric.IdempotencyKey(strings.Repeat("k", 256)),
		"delay of 10 years": flowfabric.Delay(limits.MaxDelay), "tag value of 256": flowfabric.Tags(
			map[string]string{"a.b": strings.Repeat("v", 256)}), "deadline 1ms": flowfabric.Deadline(time.Millisecond),
	} {
		if _, err := Submit(ctx, c, raw, make([]byte, limits.MaxPayload), opt); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubmitManySplits(t *testing.T) {
	f := newFake()
	c := f.client(t)
	inputs := make([]int, 950)
	for i := range inputs {
		inputs[i] = i
	}
	def := handler.Define[int, int]("n")
	got, err := SubmitMany(t.Context(), c, def, inputs)
	if err != nil || len(got) != 950 {
		t.Fatalf("%d handles, %v", len(got), err)
	}
	for i, e := range got {
		if x := f.Stored[e.ID()]; string(x.Payload) != fmt.Sprint(i) {
			t.Fatalf("handle %d is of input %s", i, x.Payload)
		}
	}
	used := map[uint16]int{}
	for _, call := range f.Seen() {
		used[call.Partition]++
	}
	if n := len(f.Seen()); n != 10 || len(used) != 4 || f.Most > coalesce.MaxInFlight {
		t.Errorf("%d calls over partitions %v, %d at once", n, used, f.Most)
	}
	if none, err := SubmitMany(t.Context(), c, def, nil); len(none) != 0 || err != nil {
		t.Errorf("no inputs: %v, %v", none, err)
	}
}

func TestSubmitManyErrorsNameTheIndex(t *testing.T) {
	f := newFake()
	c := f.client(t)
	f.Refuse = func(x engine.NewExecution) error {
		if string(x.Payload) == "3" {
			return denied.New("fake", "too_many_routes")
		}
		return nil
	}
	got, err := SubmitMany(t.Context(), c, handler.Define[int, int]("n"), []int{1, 2, 3, 4})
	item, ok := errors.AsType[*ItemError](err)
	if !ok || item.Index != 2 || !errors.Is(err, denied.TooManyRoutes) || got[2] != nil || got[3] == nil {
		t.Errorf("%v, %v", got, err)
	}
	raw := handler.Define[[]byte, int]("raw")
	before := len(f.Seen())
	_, err = SubmitMany(t.Context(), c, raw, [][]byte{nil, make([]byte, limits.MaxPayload+1)})
	if item, ok = errors.AsType[*ItemError](err); !ok || item.Index != 1 || !errors.Is(err,
		flowfabric.ErrPayloadTooLarge) {
		t.Errorf("%v", err)
	}
	if _, err = SubmitMany(t.Context(), c, raw, [][]byte{nil}, flowfabric.IdempotencyKey("x")); !errors.Is(err,
		flowfabric.ErrInvalidInput) {
		t.Errorf("one key for all: %v", err)
	}
	if len(f.Seen()) != before {
		t.Error("an invalid input did not keep the whole from being sent")
	}
}

func TestSubmitManyWithKeys(t *testing.T) {
	f := newFake()
	c := f.client(t)
	def := handler.Define[int, int]("n")
	inputs := make([]int, 300)
	key := Keys(func(i int) flowfabric.Key { return flowfabric.IdempotencyKey(fmt.Sprint("key-", i)) })
	first, err := SubmitMany(t.Context(), c, def, inputs, key)
	must.No(t, err)
	again, err := SubmitMany(t.Context(), c, def, inputs, key)
	must.No(t, err)
	for i := range inputs {
		if first[i].Duplicate() || !again[i].Duplicate() || first[i].ID() != again[i].ID() {
			t.Fatalf("input %d: %s, then %s", i, first[i].ID(), again[i].ID())
		}
	}
	if n := len(f.Seen()); n > 16 {
		t.Errorf("%d calls for 600 inputs of 4 partitions", n)
	}
}

func TestSubmitManyStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		c := f.client(t)
		ctx, cancel := context.WithCancel(t.Context())
		f.Gate = make(chan struct{})
		f.Fail = func(context.Context, int) error { cancel(); return nil } // the first answer ends the context
		var got []*Execution[int]
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { got, err = SubmitMany(ctx, c, handler.Define[int, int]("n"), make([]int, 1000)) })
		synctest.Wait()
		f.Gate <- struct{}{}
		wg.Wait()
		created, unknown, kept := 0, 0, 0
		for _, e := range got {
			if e != nil {
				created++
			}
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("%v", err)
		}
		for _, err := range joined.Unwrap() {
			if _, ok := errors.AsType[*UnknownOutcomeError](err); ok {
				unknown++
			} else if errors.Is(err, context.Canceled) {
				kept++
			}
		}
		if created != 100 || unknown != 300 || kept != 600 {
			t.Errorf("%d created, %d unknown, %d not sent; want one, three and six calls", created, unknown, kept)
		}
		c.Close()
	})
}
