package httpapi

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/gateway"
	measured "github.com/flowfabric/flowfabric-go/internal/times"
)

// lastTimes is how long the store may take for what was measured last, when the handler is closed.
const lastTimes = 500 * time.Millisecond

// measuring measures the attempts of workers over HTTP, for whom this process knows when they end. What it has to know
// of a claim comes back with the lease, because another process may have made the claim.
type measuring struct {
	recorder *measured.Recorder
	begin    sync.Once // with the first attempt
	life     context.Context
	end      context.CancelFunc
	loop     conc.WaitGroup
	ahead    atomic.Int64 // ms by which the clock here was before the store's when an execution was claimed
}

func newMeasuring(s measured.Store, log *slog.Logger) *measuring {
	m := &measuring{recorder: measured.New(s, log)}
	m.life, m.end = context.WithCancel(context.Background())
	return m
}

// close sends what was measured last.
func (m *measuring) close() {
	m.end()
	m.begin.Do(func() {}) // nothing begins any more
	m.loop.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), lastTimes)
	defer cancel()
	m.recorder.Send(ctx)
}

// about is what a lease says of its claim behind the fence, for measured.
func (m *measuring) about(x *gateway.Claim) string {
	m.ahead.Store(time.Now().UnixMilli() - x.ClaimedAt.UnixMilli())
	waited := measured.Waited(&x.Claim)
	if waited >= 0 {
		waited = time.Duration(waited.Milliseconds())
	}
	return strconv.FormatInt(int64(waited), 10) + "," + x.Route.Namespace + "\x1f" + x.Route.Kind
}

// settled counts an attempt that has ended under a lease just now, unless it goes on, or an earlier call had ended it.
// A lease that does not say what it is of, or speaks of a namespace that is not the caller's, is not counted.
func (c *call) settled(lease string, how measured.Outcome, not bool) {
	f, about, ok := readLease(lease)
	waited, route, _ := strings.Cut(about, ",")
	namespace, kind, said := strings.Cut(route, "\x1f")
	ms, bad := strconv.ParseInt(waited, 10, 53)
	if not || !ok || !said || bad != nil || !c.who.may(namespace) {
		return
	}
	m := c.h.timing
	at := time.Now().UnixMilli() - m.ahead.Load()
	// the epoch of a fence is when the execution was claimed, or a little more
	m.recorder.Add(f.Execution.Partition(), measured.Attempt{Namespace: namespace, Kind: kind, Outcome: how,
		Waited: time.Duration(ms) * time.Millisecond, Ran: time.Duration(max(at-int64(f.Epoch), 0)) * time.Millisecond,
		At: time.UnixMilli(at)})
	m.begin.Do(func() { m.loop.Go(func() { m.recorder.Run(m.life) }) })
}

// ends counts an attempt that a write of a worker has ended.
func (c *call) ends(lease, action string, answer any) {
	switch a := answer.(type) {
	case *failAnswer:
		how := measured.Failed
		if a.Retry {
			how = measured.Retried
		}
		c.settled(lease, how, a.Already)
	case *suspendAnswer:
		c.settled(lease, measured.Other, !a.Suspended)
	case *childrenAnswer:
		c.settled(lease, measured.Other, !a.Parked)
	case *already:
		switch action {
		case "complete":
			c.settled(lease, measured.Completed, a.Already)
		case "delay", "continue", "cancel", "release":
			c.settled(lease, measured.Other, a.Already)
		}
	}
}
