//go:build unix

package cluster_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/ledger"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

const (
	tokenLimit = 1000 // of each gate
	upperBound = 50   // of a call, which uses 40 and some
)

// payment is a call, as the model outside the cluster counts it.
type payment struct {
	entry ledger.Entry
	used  int64
}

// bank reserves in gates, calls a model and settles. What it notes is in no server.
type bank struct {
	*env
	own    string // the gate of its executions
	tokens int64  // that the model has counted
}

// pay reserves and calls the model; nil: there is no room.
func (b *bank) pay() *payment {
	b.Helper()
	x := &payment{entry: ledger.Entry{Fence: flowfabric.Fence{Execution: mint.ID(0), Epoch: 1}, Number: 1,
		Own: []string{b.own}, Amounts: map[string]int64{"tokens": upperBound}}}
	refused, err := ledger.Reserve(b.ctx, b.engine, &x.entry)
	b.no(err)
	if refused != nil {
		return nil
	}
	x.used = 40 + b.tokens%7
	b.tokens += x.used
	return x
}

// fill pays as long as there is room, which must be for n calls at least.
func (b *bank) fill(n int) (list []*payment) {
	b.Helper()
	for x := b.pay(); x != nil; x = b.pay() {
		list = append(list, x)
	}
	if len(list) < n {
		b.Fatalf("only %d calls: nothing was proved", len(list))
	}
	return list
}

// settle says what a call used.
func (b *bank) settle(x *payment) {
	b.Helper()
	_, err := ledger.Settle(b.ctx, b.engine, &x.entry, map[string]int64{"tokens": x.used})
	b.no(err)
}

// root of the partition of a gate.
func (b *bank) root(gate string) string {
	return keys.GateRoot(ids.GatePartition(gate, b.engine.GatePartitions()))
}

// replicated waits until a replica has all that the primary of a gate was told.
func (b *bank) replicated(gate string) {
	b.Helper()
	b.no(b.raw.Dedicated(func(c rueidis.DedicatedClient) error {
		if err := c.Do(b.ctx, c.B().Set().Key("barrier:"+b.root(gate)).Value("1").Build()).Error(); err != nil {
			return err
		}
		n, err := c.Do(b.ctx, c.B().Wait().Numreplicas(1).Timeout(60_000).Build()).ToInt64()
		if err == nil && n == 0 {
			err = errors.New("no replica has it")
		}
		return err
	}))
}

// reckon ends what is reserved in a gate, as if a minute had passed since it was vouched for.
func (b *bank) reckon(gate string) {
	b.Helper()
	reserved := keys.Partition(b.root(gate)).Reserved()
	members, err := b.raw.Do(b.ctx, b.raw.B().Zrange().Key(reserved).Min("0").Max("-1").Build()).AsStrSlice()
	b.no(err)
	for _, member := range members {
		b.no(b.raw.Do(b.ctx, b.raw.B().Zadd().Key(reserved).Xx().ScoreMember().ScoreMember(1, member).Build()).Error())
	}
	_, err = admit.Reckon(b.ctx, b.engine, ids.GatePartition(gate, b.engine.GatePartitions()))
	b.no(err)
}

// read is ReadGate that a primary which is away for a moment does not fail.
func (b *bank) read(gate string) (g admission.GateRecord) {
	b.Helper()
	b.until("the gate can be read", func() (read bool) {
		var err error
		g, err = b.engine.ReadGate(b.ctx, gate, 0, 0, 0)
		return err == nil
	})
	return g
}

// apart names two gates that different primaries serve.
func (b *bank) apart(round int) (user, org string) {
	user = fmt.Sprint("user", round)
	for i := 0; ; i++ {
		org = fmt.Sprint("org", round, ".", i)
		if b.serves(org) != b.serves(user) {
			return user, org
		}
	}
}

func (b *bank) serves(gate string) *testserver.Server {
	return b.nodes.NodeOf(b.nodes.SlotOf(b.root(gate)))
}

// loss is a case of TestReservationsLost: what gates have counted at the end, of what the model has.
type loss struct {
	name       string
	above      bool // there is a gate above, which another primary serves
	losesAbove bool // its primary dies, instead of that of the gate that decides
	user, org  func(x sums) int64
}

// sums are tokens.
type sums struct {
	model int64 // that the model has counted in all
	// of the calls for which was reserved in writes that are lost
	reserved       int64 // what was
	settled, dead  int64 // what those used that were settled in such writes, too, and those that never were
	reservedOfDead int64
	inFlight       []*payment // those that are to be settled
}

// gates makes those of a case, the one that decides last.
func (b *bank) gates(c loss, round int) (names []string) {
	b.Helper()
	user, org := b.apart(round)
	limits := map[string]admission.Limit{"tokens": {Hard: tokenLimit}}
	list := []admission.Gate{{Name: user, Limits: limits}}
	if c.above {
		list[0].Parent = org
		list = append([]admission.Gate{{Name: org, Limits: limits}}, list...)
	}
	for _, g := range list {
		_, _, _, err := b.engine.PutGate(b.ctx, g, 0)
		b.no(err)
		names = append(names, g.Name)
	}
	b.own = user
	return names
}

// lose has a primary die whose replica is behind, after all room was used: a third of the calls are settled, a third
// are under way, and of a third the processes die.
func (b *bank) lose(victim string) (x sums) {
	b.Helper()
	b.replicated(victim)
	b.nodes.Elections(true)
	down := b.nodes.CrashBehind(b.nodes.SlotOf(b.root(victim)), func() {
		for i, call := range b.fill(15) {
			x.reserved += upperBound
			switch i % 3 {
			case 0:
				b.settle(call)
				x.settled += call.used
			case 1:
				x.inFlight = append(x.inFlight, call)
			case 2:
				x.dead += call.used
				x.reservedOfDead += upperBound
			}
		}
	})
	b.read(victim)
	b.nodes.Elections(false)
	down.Restart()
	b.nodes.Settled()
	b.read(b.own)
	return x
}

// A primary with a gate is killed whose replica is behind. At most what was reserved in the writes that are lost is
// used beyond the limit. A settlement that finds no reservation is charged, so that what a gate does not count are
// calls that were settled in those writes, or never; and nothing stays reserved.
func TestReservationsLost(t *testing.T) {
	t.Parallel()
	w := newEnv(t, testserver.Cluster(t, testserver.ServerRedis))
	for round, c := range []loss{
		{name: "one gate",
			user: func(x sums) int64 { return x.model - x.settled - x.dead }},
		{name: "the gate that decides", above: true,
			user: func(x sums) int64 { return x.model - x.settled - x.dead },
			org:  func(x sums) int64 { return x.model - x.dead }}, // it hears that those were never made
		{name: "the gate above it", above: true, losesAbove: true,
			user: func(x sums) int64 { return x.model - x.dead + x.reservedOfDead },
			org:  func(x sums) int64 { return x.model - x.settled - x.dead }},
	} {
		b := &bank{env: w}
		names := b.gates(c, round)
		victim := b.own
		if c.losesAbove {
			victim = names[0]
		}
		b.settle(b.pay())
		kept := b.pay()
		x := b.lose(victim)
		more := 0
		if !c.above { // else the other gate has no room
			more = 15
		}
		for _, call := range append(append(b.fill(more), kept), x.inFlight...) {
			b.settle(call)
		}
		for range 2 {
			for _, name := range names {
				b.reckon(name)
			}
		}
		x.model = b.tokens
		if over := x.model - tokenLimit; over > x.reserved || c.above == (over > 0) {
			t.Errorf("%s: %d tokens are used of %d, and %d were reserved in what is lost", c.name, x.model,
				tokenLimit, x.reserved)
		}
		for _, name := range names {
			want := c.user
			if name != b.own {
				want = c.org
			}
			b.counts(name, want(x), x)
		}
		t.Logf("%s: %d tokens are used of %d, %d were reserved in what is lost", c.name, x.model, tokenLimit,
			x.reserved)
	}
}

// counts fails unless a gate has counted so much, and nothing is reserved.
func (b *bank) counts(name string, want int64, x sums) {
	b.Helper()
	g := b.read(name)
	if g.Used["tokens"] != want || g.Reserved["tokens"] != 0 || g.Used["tokens"] < x.model-x.reserved {
		b.Errorf("%s has %d used and %d reserved, want %d and none; the model counted %d", name, g.Used["tokens"],
			g.Reserved["tokens"], want, x.model)
	}
	bad, err := invariant.CheckAdmission(b.ctx, b.raw, b.root(name))
	b.no(err)
	for _, what := range bad {
		b.Errorf("%s: %s", name, what)
	}
}
