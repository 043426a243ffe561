package scale

import (
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
)

// Wish is what a store is to carry.
type Wish struct {
	Waiting, Suspended, Done float64 // executions that are kept at the same time
	Rate                     float64 // lifecycles a second
	Batch                    int     // executions of a call, on average
	Workers, Concurrency     float64 // processes, and handlers of each
	Busy                     float64 // sessions of a worker, as a part of the partitions
	Tails, Frames            float64 // that are followed at the same time; calls that append to each, a second
	Partitions               int
	Homes                    int     // what if a worker dealt with so many partitions only; 0: with all, as it does
	Lease                    float64 // seconds

	Memory float64 // usable bytes of a primary
	Use    float64 // of a primary's processor, at most
}

// Need is what that takes.
type Need struct {
	Bytes         float64            // of all primaries, without replicas
	ByMemory      int                // primaries
	ByTime        int                // primaries
	Primaries     int                // the larger one; the busiest has Skew times an equal part
	Skew          float64            //
	Cores         map[string]float64 // of all primaries, by what they are used for
	Connections   float64            // at each primary
	Maintained    float64            // calls a second that have nothing to do with work, of all primaries
	Start         float64            // seconds of all primaries until a fleet that starts has registered everywhere
	UrgentMillis  float64            // for which a message to all workers keeps a primary
	PartitionSize float64            // bytes
	Enough        bool               // no number of primaries up to the number of partitions is enough if false
}

// uses are the names of Cores, in the order of a report.
var uses = []string{"lifecycles", "frames", "polls", "renewals", "registering as waiters", "worker registry",
	"pings of workers", "ticks"}

// Plan computes what a wish takes. Connections and pings grow with the number of primaries, so it is found by trying.
func Plan(w Wish, c Costs) (Need, error) {
	if w.Batch < 1 || w.Batch > maxBatch || w.Partitions < 1 || w.Partitions > 1024 || w.Memory <= 0 || w.Use <= 0 ||
		w.Use > 1 || w.Lease < 1 {
		return Need{}, fmt.Errorf(
			"scale: %d a call, %d partitions, %g bytes and %g of a primary, leases of %g s: want 1..100, 1..1024, more than 0, 0..1, 1 or more",
			w.Batch, w.Partitions, w.Memory, w.Use, w.Lease)
	}
	if w.Homes < 0 || w.Homes > w.Partitions {
		return Need{}, fmt.Errorf("scale: %d homes of a worker, want 0..%d", w.Homes, w.Partitions)
	}
	if min(w.Waiting, w.Suspended, w.Done, w.Rate, w.Workers, w.Tails, w.Frames, w.Busy) < 0 {
		return Need{}, errors.New("scale: a wish must not be negative")
	}
	n := Need{}
	for n.Primaries = 1; ; n.Primaries++ {
		n = w.on(n.Primaries, c)
		if n.Enough = n.ByMemory <= n.Primaries && n.ByTime <= n.Primaries; n.Enough || n.Primaries == w.Partitions {
			return n, nil
		}
	}
}

// on is what so many primaries have to do.
func (w Wish) on(primaries int, c Costs) Need {
	p, k := float64(primaries), float64(w.Partitions)
	n := Need{Primaries: primaries, Skew: Skew(w.Partitions, primaries), Cores: map[string]float64{}}
	cluster := primaries > 1
	mine := k // partitions of a worker
	if w.Homes > 0 {
		mine = float64(w.Homes)
	}
	reached := min(mine, p) // primaries to which it has connections
	cost := func(use string, calls, us, items float64) {
		n.Cores[use] = calls * (us + c.Outside.Fixed + items*c.Outside.Item) / 1e6
		if use != "lifecycles" && use != "frames" {
			n.Maintained += calls
		}
	}
	n.Cores["lifecycles"] = w.Rate * c.Lifecycle(w.Batch) / 1e6
	cost("frames", w.Tails*w.Frames, c.Append.Fixed+c.Append.Item+c.Ring, 1)

	pause := min(max(1, w.Workers/fleetPolls), pollSeldom.Seconds())
	asked := float64(clusterPoll(w.Partitions, w.Workers)) // partitions of a poll, each a call
	if !cluster {
		most := math.Ceil(k * min(1, pollSeldom.Seconds()*fleetPolls/max(w.Workers, 1)))
		cost("polls", w.Workers/pause, c.Poll.Fixed+c.Poll.Item*most, 1)
	} else {
		cost("polls", w.Workers/pause*asked, c.Poll.Fixed+c.Poll.Item, 1)
	}
	sessions := w.Workers * w.Busy * mine
	cost("renewals", sessions*3/w.Lease, c.Renew, 0)
	cost("registering as waiters", w.Workers*(1-w.Busy)*mine/registration.Seconds(), c.Empty, 0)
	cost("worker registry", w.Workers*3/w.Lease, c.Renew, 1)
	n.Cores["pings of workers"] = w.Workers * pinged * reached / pingEvery.Seconds() * (c.Ping + c.Outside.Fixed) / 1e6
	cost("ticks", k, c.Tick, 0)

	b := c.Bytes
	channels := w.Workers * mine
	n.Bytes = w.Waiting*(b.Waiting+b.Payload) + w.Suspended*(b.Suspended+b.Payload) +
		w.Done*(b.Done+b.Payload+b.Result) +
		w.Workers*connections*reached*b.Connection + channels*(b.Subscription+b.Shared) +
		channels*(1-w.Busy)*b.Waiter + sessions*b.Session +
		w.Workers*b.Registration + w.Tails*b.Subscription
	n.Connections = w.Workers * connections * reached / p
	n.Start = channels * (c.Empty + c.Outside.Fixed) / 1e6
	n.UrgentMillis = w.Workers * mine / k * c.Fanout / 1e3
	n.PartitionSize = n.Bytes / k

	sum := 0.0
	for _, cores := range n.Cores {
		sum += cores
	}
	n.ByMemory = max(1, int(math.Ceil(n.Bytes*n.Skew/w.Memory)))
	n.ByTime = max(1, int(math.Ceil(sum*n.Skew/w.Use)))
	return n
}

// Print writes what a wish takes.
func (n Need) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%s\t"+format+"\t\n", append([]any{name}, args...)...)
	}
	enough := ""
	if !n.Enough {
		enough = " are not enough, and there are no more partitions"
	}
	row("primaries", "%d%s", n.Primaries, enough)
	row("by memory", "%d", n.ByMemory)
	row("by processor", "%d", n.ByTime)
	row("share of the busiest, in equal ones", "%.2f", n.Skew)
	row("memory, without replicas", "%.1f GB", n.Bytes/1e9)
	row("a partition", "%.2f GB", n.PartitionSize/1e9)
	row("connections at each primary", "%.0f", n.Connections)
	row("calls besides work", "%.0f/s", n.Maintained)
	for _, use := range uses {
		row("cores for "+use, "%.2f", n.Cores[use])
	}
	row("start of the whole fleet", "%.1f s of a core", n.Start)
	row("a message of urgent work", "%.1f ms", n.UrgentMillis)
	return w.Flush()
}
