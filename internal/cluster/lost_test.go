//go:build unix

package cluster_test

import (
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/rueidis"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// producers submit all the time and note what was acknowledged.
type producers struct {
	w     *env
	quit  chan struct{}
	owner conc.WaitGroup

	mu    sync.Mutex
	acked []submitted
}

// submitted is one acknowledged submit.
type submitted struct {
	id   flowfabric.ExecutionID
	safe bool // a replica has it, the primary says
}

// producing is how many producers submit at once.
const producing = 8

// newProducers starts them. safely makes each wait until a replica has its submit.
func (w *env) newProducers(safely bool) *producers {
	p := &producers{w: w, quit: make(chan struct{})}
	for range producing {
		p.owner.Go(func() { p.submit(safely) })
	}
	w.Cleanup(func() { p.end() })
	return p
}

func (p *producers) submit(safely bool) {
	for index := 0; ; index++ {
		select {
		case <-p.quit:
			return
		default:
		}
		e, err := client.Submit(p.w.ctx, p.w.client, streaming, job{index})
		if unknown := new(client.UnknownOutcomeError); errors.As(err, &unknown) {
			continue
		}
		if err != nil {
			p.w.Errorf("submit %d: %v", index, err)
			return
		}
		s := submitted{id: e.ID(), safe: safely && p.replicated(e.ID())}
		p.mu.Lock()
		p.acked = append(p.acked, s)
		p.mu.Unlock()
	}
}

// replicated writes a key of its own into the slot of an execution and asks whether a replica has it. Replication
// keeps the order of writes, so then the replica has the execution, too.
func (p *producers) replicated(id flowfabric.ExecutionID) bool {
	var replicas int64
	err := p.w.raw.Dedicated(func(c rueidis.DedicatedClient) error {
		tag := "barrier:{fp:" + strconv.Itoa(int(id.Partition())) + "}"
		if err := c.Do(p.w.ctx, c.B().Set().Key(tag).Value("1").Build()).Error(); err != nil {
			return err
		}
		var err error
		replicas, err = c.Do(p.w.ctx, c.B().Wait().Numreplicas(1).Timeout(1000).Build()).ToInt64()
		return err
	})
	return err == nil && replicas > 0
}

// more waits until so many more submits to the given partitions were acknowledged.
func (p *producers) more(n int, of []uint16) {
	p.w.Helper()
	want := p.count(of) + n
	p.w.until("more submits are acknowledged", func() bool { return p.count(of) >= want })
}

func (p *producers) count(of []uint16) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.acked {
		if contains(of, s.id) {
			n++
		}
	}
	return n
}

func contains(of []uint16, id flowfabric.ExecutionID) bool {
	for _, p := range of {
		if p == id.Partition() {
			return true
		}
	}
	return false
}

func (p *producers) end() []submitted {
	p.mu.Lock()
	select {
	case <-p.quit:
	default:
		close(p.quit)
	}
	p.mu.Unlock()
	p.owner.Wait()
	return p.acked
}

// lost counts what was acknowledged and is not there any more, and names it.
func (p *producers) lost() (acked, lost, safeLost int, gone map[flowfabric.ExecutionID]bool) {
	p.w.Helper()
	gone = map[flowfabric.ExecutionID]bool{}
	all := p.end()
	for _, s := range all {
		_, err := p.w.read(s.id)
		switch {
		case errors.Is(err, flowfabric.ErrNotFound):
			lost++
			gone[s.id] = true
			if s.safe {
				safeLost++
			}
		case err != nil:
			p.w.Errorf("%s: %v", s.id, err)
		}
	}
	return len(all), lost, safeLost, gone
}

// of lists the partitions of the primary of one.
func (w *env) of(p uint16) (list []uint16) {
	primary := w.primary(p)
	for _, q := range everywhere() {
		if w.primary(q) == primary {
			list = append(list, q)
		}
	}
	return list
}

// A primary is killed while producers submit. Which acknowledged submits are lost depends on how far its replica was,
// and on what the primary was told to wait for. The figures in docs/explanation/scale.md are what this logs.
func TestAcknowledgedSubmits(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	run := func(name string, safely bool, minReplicas string, kill func(p *producers, of []uint16) *testserver.Server,
		judge func(acked, lost, safeLost int)) {
		one := w.onEach()[0]
		of := w.of(one)
		for _, s := range w.nodes.Primaries() {
			w.no(w.at(s, "CONFIG", "SET", "min-replicas-to-write", minReplicas, "min-replicas-max-lag", "1").Error())
		}
		p := w.newProducers(safely)
		p.more(50, of)
		w.nodes.Elections(true)
		dead := kill(p, of)
		for _, s := range w.nodes.Primaries() { // the new primary has no replica yet
			w.no(w.at(s, "CONFIG", "SET", "min-replicas-to-write", "0").Error())
		}
		p.more(50, of)
		acked, lost, safeLost, gone := p.lost()
		w.nodes.Elections(false)
		dead.Restart()
		w.nodes.Settled()
		for id := range gone {
			if !contains(of, id) {
				t.Errorf("%s: %s is lost, which another primary has", name, id)
			}
		}
		t.Logf("%s: %d acknowledged, %d lost", name, acked, lost)
		judge(acked, lost, safeLost)
	}
	crash := func(_ *producers, of []uint16) *testserver.Server { return w.nodes.Crash(w.slot(of[0])) }

	run("a replica that is in step", false, "0", crash, func(acked, lost, _ int) {
		if lost*2 > acked {
			t.Errorf("%d of %d are lost", lost, acked)
		}
	})
	var behind int
	run("a replica that is cut off", false, "0", func(p *producers, of []uint16) *testserver.Server {
		return w.nodes.CrashBehind(w.slot(of[0]), func() {
			before := p.count(of)
			p.more(50, of)
			behind = p.count(of) - before
		})
	}, func(_, lost, _ int) {
		if lost < behind-producing { // each may have counted one that was acknowledged before
			t.Errorf("%d are lost, but %d were acknowledged while the replica was cut off", lost, behind)
		}
	})
	run("the same, and the primary wants a replica", false, "1", func(p *producers, of []uint16) *testserver.Server {
		return w.nodes.CrashBehind(w.slot(of[0]), func() {
			primary := w.primary(of[0])
			refused := func() bool {
				return w.at(primary, "SET", "barrier:{fp:"+strconv.Itoa(int(of[0]))+"}", "1").Error() != nil
			}
			w.until("the primary refuses writes", refused)
			before := p.count(of)
			for range 100 {
				if !refused() {
					t.Error("a primary without a replica takes a write")
				}
			}
			// What had been answered when it began to refuse may be counted a little later.
			if late := p.count(of) - before; late > 8 {
				t.Errorf("%d submits were acknowledged by a primary that refuses writes", late)
			}
		})
	}, func(acked, lost, _ int) {
		if lost*2 > acked {
			t.Errorf("%d of %d are lost", lost, acked)
		}
	})
	run("submits that wait for a replica", true, "0", crash, func(_, lost, safeLost int) {
		if safeLost > 0 {
			t.Errorf("%d of %d lost ones were on a replica", safeLost, lost)
		}
	})
	w.sound()
}

// A primary that writes every call to the disk first loses nothing when it comes back itself, before a replica has
// taken over.
func TestAcknowledgedSubmitsOnDisk(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis, testserver.AOF()))
	of := w.of(w.onEach()[0])
	p := w.newProducers(false)
	p.more(50, of)
	primary := w.primary(of[0])
	primary.Kill()
	primary.Restart()
	w.nodes.Settled()
	p.more(50, of)
	acked, lost, _, _ := p.lost()
	t.Logf("on disk before each answer: %d acknowledged, %d lost", acked, lost)
	if lost > 0 {
		t.Errorf("%d of %d are lost", lost, acked)
	}
	w.sound()
}
