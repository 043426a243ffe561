package source

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// crowd answers polls as a store with so many workers, whose only partition has an overdue tick or not.
type crowd struct {
	still
	workers int
	overdue bool
}

func (c *crowd) Poll(context.Context, []uint16) ([]engine.PollState, int, error) {
	return []engine.PollState{{TickOverdue: c.overdue}}, c.workers, nil
}

func testPoller(e Engine, window time.Duration) *poller {
	return NewListener(ListenerConfig{Engine: e, Name: "me", Sources: func() []*Source { return nil }, Window: window,
		Alert: true}).polls
}

// Who got no answer asks again soon, however many others there are.
func TestPollsThatFailAreNotSeldom(t *testing.T) {
	p := testPoller(&crowd{still: 1, workers: 1000}, 15*time.Second)
	if _, _, err := p.once(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pause := p.pause(time.Now()); pause < 5*time.Second {
		t.Errorf("%v between two polls of a thousand workers", pause)
	}
	p.failed = true
	if pause := p.pause(time.Now()); pause > 2*time.Second {
		t.Errorf("%v after a poll that failed", pause)
	}
}

// A tick that stays overdue is no news: it does not keep the poll busy.
func TestAlertEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &crowd{still: 1}
		p := testPoller(s, time.Minute)
		alerts := 0
		for i := range 600 { // flaps: overdue in every second poll, one a second
			s.overdue = i%2 == 0
			before := p.until
			if _, _, err := p.once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if p.until != before {
				alerts++
			}
			time.Sleep(time.Second)
		}
		if alerts != 60 {
			t.Errorf("%d alerts in ten minutes of a tick that comes and goes, want one in ten seconds", alerts)
		}
		s.overdue = true
		quietAfter := time.Now().Add(alertPause)
		for range 60 {
			_, _, _ = p.once(t.Context())
			if p.alert(time.Now()) && time.Now().After(quietAfter) {
				t.Fatal("a tick that stays overdue keeps the alert up")
			}
			time.Sleep(time.Second)
		}
	})
}
