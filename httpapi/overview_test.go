package httpapi

import (
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

func TestWhoAmI(t *testing.T) {
	a := newAPI(t)
	me := into[self](t, a.as("producer", "GET", "/v1/me", "", 200))
	if me.Name != "the-producer" || me.Role != Producer || me.Namespaces != nil ||
		!slices.Contains(me.Operations, "submit") || slices.Contains(me.Operations, "purge") {
		t.Errorf("%+v", me)
	}
	if me := into[self](t, a.as("blue", "GET", "/v1/me", "", 200)); !slices.Equal(me.Namespaces, []string{"blue"}) ||
		!slices.Contains(me.Operations, "purge") {
		t.Errorf("%+v", me)
	}
}

// The overview has what was submitted, for those who may see it, and a token of another namespace learns no sums.
func TestOverview(t *testing.T) {
	a := newAPI(t)
	a.submit(`{"kind":"nobody","lane":"side"}`)
	a.submit(`{"kind":"nobody","lane":"side","delay_ms":3600000}`)
	a.submit(`{"kind":"nobody","lane":"side","namespace":"blue"}`)
	testwait.Until(t, "the worker that was just started is registered", func() bool {
		workers, err := admin.New(a.client).Workers(t.Context())
		must.No(t, err)
		return len(workers) > 0
	})
	o := into[overview](t, a.as("viewer", "GET", "/v1/overview", "", 200))
	if o.Now.Waiting != 2 || o.Now.Delayed != 1 || o.Now.Stored != 3 || o.Now.OldestAt.IsZero() || o.Now.Workers != 1 ||
		o.Now.Slots != 32 || o.Now.Partitions != 4 || len(o.Queues) != 2 || len(o.History) != 1 {
		t.Errorf("%+v", o)
	}
	b := into[overview](t, a.as("blue", "GET", "/v1/overview", "", 200))
	if b.Now.Waiting != 1 || b.Now.Stored != 1 || b.Now.Delayed != 0 || b.Now.Workers != 0 || len(b.Queues) != 1 ||
		b.Queues[0].Namespace != "blue" || len(b.History) != 0 {
		t.Errorf("%+v", b)
	}
}

// Two who follow are told of the same looks at the store, and of what is new within some seconds.
func TestOverviewIsFollowed(t *testing.T) {
	a := newAPI(t)
	a.as("viewer", "GET", "/v1/overview", "", 200) // from now on there is something to tell
	var submit sync.Once
	var looks [2][]time.Time
	var following conc.WaitGroup
	for i := range looks {
		following.Go(func() {
			a.follow("/v1/overview/events", nil, func(e sse) bool {
				var o watchedOverview
				if err := json.Unmarshal([]byte(e.text), &o); err != nil {
					t.Error(err)
				}
				looks[i] = append(looks[i], o.Now.At)
				submit.Do(func() { a.submit(`{"kind":"nobody","lane":"side"}`); a.submit(`{"kind":"echo","input":1}`) })
				return o.Now.Waiting == 1 && o.Now.CompletedRate > 0 && o.Now.CreatedRate > 0
			})
		})
	}
	following.Wait()
	one, two := looks[0], looks[1]
	if len(one) == 0 || len(two) == 0 || !one[len(one)-1].Equal(two[len(two)-1]) {
		t.Errorf("%s and %s", one, two)
	}
	testwait.Progress(t, "nobody watches", func() (bool, any) {
		a.h.sampler.mu.Lock()
		defer a.h.sampler.mu.Unlock()
		return a.h.sampler.watchers == 0, a.h.sampler.watchers
	})
}

// Rates are over about ten seconds, and a store that was emptied has none below zero.
func TestRates(t *testing.T) {
	s := newSampler(nil)
	defer s.close()
	began := time.Now()
	at := func(seconds, completed int) *admin.Overview {
		l := &admin.Overview{At: began.Add(time.Duration(seconds) * time.Second),
			Totals: flowfabric.Totals{Completed: completed}}
		s.rate(l)
		return l
	}
	for _, x := range []struct {
		seconds, completed int
		want               float64
	}{{0, 1000, 0}, {2, 1020, 10}, {4, 1040, 10}, {10, 1100, 10}, {12, 1100, 8}, {20, 1100, 0}, {30, 1100, 0},
		{40, 5, 0}} {
		if l := at(x.seconds, x.completed); l.CompletedRate != x.want {
			t.Errorf("after %d s: %v, want %v", x.seconds, l.CompletedRate, x.want)
		}
	}
}
