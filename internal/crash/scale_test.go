//go:build unix

package crash_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// slack is what a recovery may take beyond ttl + tick + 1 s, besides the time in which the machine stood: the run
// logs the figures.
const slack = 15 * time.Second

// Eight workers are killed with SIGKILL, and stopped past their lease, at random and all the time, and so is the
// producer that keeps submitting. Every acknowledged submit ends as its job wants and exactly once, every key has
// one execution, no stale write is ever accepted, no crash consumes a retry, and no index drifts.
func TestFire(t *testing.T) {
	jobs := number(t, "FLOWFABRIC_CRASH_EXECUTIONS", 8_000, 1_000_000)
	kills := number(t, "FLOWFABRIC_CRASH_KILLS", 40, 10_000)
	url := testserver.Redis(t, testserver.Args("--client-output-buffer-limit", "pubsub", "0", "0", "0"))
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	began, ran := time.Now(), testwait.Running(t)
	f := muster(t, ctx, url, 16, time.Minute)
	watched := f.watch(min(jobs, 20_000))

	undead, bury := f.haunted()
	faults := kills + kills/10
	for n := range faults {
		f.allow(jobs * (n + 1) / (faults + 1))
		f.abreast(max(800, jobs/faults*2))
		f.wake(false)
		if n%11 == 5 {
			f.pause()
			continue
		}
		bury(f.strike())
	}
	f.wake(true)
	f.allow(jobs)
	f.submitted()
	t.Logf("%d jobs submitted under %d faults in %v", jobs, len(f.faults), time.Since(began).Round(time.Millisecond))
	existing := f.settled(jobs)
	t.Logf("all ended after %v", time.Since(began).Round(time.Millisecond))
	undead()
	f.stand()
	f.expire()

	fates := f.fates(jobs)
	if fates.acks != jobs || existing != jobs {
		t.Errorf("%d submits acknowledged, %d executions, want %d of each", fates.acks, existing, jobs)
	}
	r := f.ended(fates.acked, false)
	readLedger(t, f.journals()).check(t)
	f.sound(jobs, false)
	watched(t)

	const bound = ttl + time.Second + time.Second
	late, stood := 0, time.Since(began)-ran()
	for _, took := range r.claimed {
		if took > bound {
			late++
		}
		if took > bound+slack+stood {
			t.Errorf("something was claimed again only %v after its worker was hit", took)
		}
	}
	if len(r.claimed) == 0 {
		t.Error("no fault hit a worker that held something: nothing was proved")
	}
	t.Logf("requeued after a fault: %s", quantiles(r.requeued))
	t.Logf("claimed again: %s; %d later than ttl + tick + 1 s = %v", quantiles(r.claimed), late, bound)
	t.Logf("%d leases ran out without a fault; %d attempts took over a step; whole test %v", r.unprovoked, r.reused,
		time.Since(began).Round(time.Millisecond))
}

// watch records who ends. The returned check wants that each of the first n jobs did so once.
func (f *fleet) watch(n int) (check func(t *testing.T)) {
	f.t.Helper()
	if err := crash.RecordEnds(f.ctx, f.engine); err != nil {
		f.t.Fatal(err)
	}
	return func(t *testing.T) {
		t.Helper()
		ends, err := crash.Ends(f.ctx, f.engine)
		must.No(t, err)
		bad := 0
		for i := range n {
			id, err := crash.Job{Index: i}.Execution(f.ctx, f.engine)
			if got := ends[id]; (err != nil || got != 1) && bad < 10 {
				bad++
				t.Errorf("job %d: it ended %d times, want once (%v)", i, got, err)
			}
		}
	}
}

// haunted sets zombies on the store. bury gives them the worker that was killed, end stops them.
func (f *fleet) haunted() (end func(), bury func(*process)) {
	f.t.Helper()
	z := &zombies{t: f.t, engine: f.engine, refused: map[string]int{}}
	ctx, cancel := context.WithCancel(f.ctx)
	var owner sync.WaitGroup
	owner.Go(func() { z.rise(ctx) })
	end = func() {
		cancel()
		owner.Wait()
		f.t.Logf("stale writes refused: %v; %d executions were attacked while another worker held them", z.refused,
			z.active)
		if z.active == 0 {
			f.t.Error("no execution was attacked while another worker held it: nothing was proved")
		}
	}
	f.t.Cleanup(func() { cancel(); owner.Wait() })
	return end, func(p *process) {
		z.bury(f.journal(p.name))
	}
}
