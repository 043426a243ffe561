package maintain_test

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/maintain"
)

// fleet is what several processes share: who owns the tick of each partition and when it is due, by the rules of
// ff_tick. Each partition has something due every second.
type fleet struct {
	mu   sync.Mutex
	rows []row
}

type row struct {
	owner string
	wake  time.Time
	last  time.Time     // accepted tick
	gap   time.Duration // longest between two
	by    map[string]int
}

const (
	period = time.Second     // between two things that are due
	late   = 2 * time.Second // a tick that is later may be taken over
)

func newFleet(partitions int) *fleet {
	f := &fleet{rows: make([]row, partitions)}
	for p := range f.rows {
		f.rows[p] = row{wake: time.Now(), last: time.Now(), by: map[string]int{}}
	}
	return f
}

// process is one of them. From ill on, a slow one waits before and after each of its ticks, and a dead one has no
// answer.
type process struct {
	*fleet
	slow time.Duration
	dead bool
	ill  <-chan struct{}
}

func (p process) Partitions() uint16 { return uint16(len(p.rows)) }

func (p process) Tick(ctx context.Context, partition uint16, owner string, release bool) (engine.TickReply, error) {
	return p.tick(ctx, partition, owner, release, false)
}

func (p process) AskTick(ctx context.Context, partition uint16, owner string) (engine.TickReply, error) {
	return p.tick(ctx, partition, owner, false, true)
}

func (p process) tick(ctx context.Context, partition uint16, owner string, release,
	ask bool) (engine.TickReply, error) {
	wait := func() error {
		select {
		case <-p.ill:
		default:
			time.Sleep(time.Millisecond)
			return nil
		}
		if p.dead {
			<-ctx.Done()
			return flowfabric.ErrTransport
		}
		time.Sleep(p.slow)
		return nil
	}
	if err := wait(); err != nil {
		return engine.TickReply{}, err
	}
	p.mu.Lock()
	r, now := &p.rows[partition], time.Now()
	var reply engine.TickReply
	switch {
	case release && r.owner == owner:
		r.owner = ""
	case release, r.owner != "" && r.owner != owner && now.Sub(r.wake) <= late:
		if ask && now.Before(r.wake) { // the dead one still listens, as one that hangs does
			r.wake = now
		}
	default:
		r.owner, r.wake = owner, now.Add(period)
		r.gap, r.last = max(r.gap, now.Sub(r.last)), now
		r.by[owner]++
		reply = engine.TickReply{Owner: true, Next: period}
	}
	p.mu.Unlock()
	return reply, wait()
}

// overdue lists the partitions whose tick somebody must take over: what the replies of a server tell their callers.
func (f *fleet) overdue() (ids []uint16) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for p, r := range f.rows {
		if time.Since(r.wake) > late || r.owner == "" && time.Since(r.wake) >= 0 {
			ids = append(ids, uint16(p))
		}
	}
	return ids
}

// Any number of processes tick; then one of them becomes too slow for its share, and one dies holding it: every
// partition is ticked all the time. Those that live poll once a second and hear what is overdue, as workers do.
func TestFleet(t *testing.T) {
	for _, processes := range []int{1, 2, 3, 8} {
		t.Run(strconv.Itoa(processes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const partitions, healthy, life = 64, 20 * time.Second, 60 * time.Second
				f := newFleet(partitions)
				ill := make(chan struct{})
				ctx, cancel := context.WithTimeout(t.Context(), life)
				defer cancel()
				var all sync.WaitGroup
				for n := range processes {
					p := process{fleet: f, slow: time.Millisecond, dead: n == 2, ill: ill}
					if n == 1 {
						p.slow = 400 * time.Millisecond
					}
					l := maintain.New(maintain.Config{Engine: p, Owner: "p" + strconv.Itoa(n),
						Logger: slog.New(slog.DiscardHandler)})
					all.Go(func() {
						if err := l.Run(ctx); err != nil {
							t.Errorf("Run: %v", err)
						}
					})
					all.Go(func() {
						for began := time.Now(); ctx.Err() == nil &&
							(!p.dead || time.Since(began) < healthy); time.Sleep(time.Second) {
							for _, id := range f.overdue() {
								l.Ring(id)
							}
						}
					})
				}
				all.Go(func() {
					time.Sleep(healthy)
					close(ill)
				})
				all.Wait()
				f.verify(t, processes)
			})
		})
	}
}

func (f *fleet) verify(t *testing.T, processes int) {
	t.Helper()
	work := map[string]int{}
	for p, r := range f.rows {
		// The owner is late by 2 s, somebody hears of it within 1 s, and the call itself takes up to 1 s of a slow one.
		if most := period + late + time.Second + time.Second; r.gap > most {
			t.Errorf("partition %d was not ticked for %v, want at most %v", p, r.gap, most)
		}
		for owner, n := range r.by {
			work[owner] += n
		}
	}
	if len(work) != processes {
		t.Errorf("of %d processes %d ticked: %v", processes, len(work), work)
	}
	t.Logf("ticks: %v", work)
}
