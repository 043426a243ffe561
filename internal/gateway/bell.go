package gateway

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// start listens to the doorbells, and looks now and then at what they may have missed. Gateway.mu is held.
func (g *Gateway) start() {
	channels := map[string]uint16{} // of doorbells, and of what all workers are told of urgent work
	for p := range g.engine.Partitions() {
		channels[engine.BellChannel(p, g.name)], channels[engine.UrgentChannel(p)] = p, p
	}
	all := slices.Collect(maps.Keys(channels))
	ring := func(channel, message string) {
		p := channels[channel]
		priority, work := strings.CutPrefix(message, "w")
		switch {
		case channel == engine.UrgentChannel(p):
			text, _, _ := strings.Cut(message, " ")
			g.prefer(p, text)
		case work:
			g.prefer(p, priority)
			g.ring(p, true)
		case message == "r":
			g.ring(p, false)
		}
	}
	var left atomic.Int32
	confirmed := func() {
		if left.Add(-1) == 0 {
			close(g.listening)
		}
	}
	if !g.engine.Cluster() {
		left.Store(1)
		g.tasks.Go(func() { g.listen(0, all, confirmed, ring) })
	} else {
		left.Store(int32(g.engine.Partitions()))
		for p := range g.engine.Partitions() {
			g.tasks.Go(func() {
				g.listen(p, []string{engine.BellChannel(p, g.name), engine.UrgentChannel(p)}, confirmed,
					ring)
			})
		}
	}
	g.tasks.Go(g.sweep)
}

// listen subscribes until the gateway is closed, again whenever that ends. What was rung meanwhile was not heard:
// everything is looked at.
func (g *Gateway) listen(partition uint16, channels []string, confirmed func(), ring func(channel, message string)) {
	pause := backoff.NewExponentialBackOff(backoff.WithInitialInterval(backoffMin), backoff.WithMaxInterval(backoffMax),
		backoff.WithMaxElapsedTime(0))
	first := true
	for g.life.Err() == nil {
		err := g.engine.Subscribe(g.life, partition, channels, func() {
			if first {
				first = false
				confirmed()
			}
			pause.Reset()
			g.heatAll()
		}, ring)
		if g.life.Err() == nil {
			g.log.Warn("flowfabric: gateway: doorbell lost, subscribing again; looks now and then stand in for it",
				"error", err)
			sleep(g.life, pause.NextBackOff())
		}
	}
}

// prefer notes that a partition has work that should come next, of a priority in words; without any it does nothing.
func (g *Gateway) prefer(partition uint16, text string) {
	priority, _ := strconv.Atoi(text)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		p.parts[partition].urgent = max(p.parts[partition].urgent, priority)
	}
}

// ring has those look who wait. A wake for work that nobody waits for here is passed on to other workers.
func (g *Gateway) ring(partition uint16, work bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		x := p.parts[partition]
		was := !x.registered.IsZero()
		x.hot, x.registered = true, time.Time{}
		switch {
		case len(p.asks) > 0:
			p.wakeFirst()
		case was && work && !g.closed:
			g.tasks.Go(func() { p.forward(x) })
		}
	}
}

// forward rings another worker for what nobody here waits for.
func (p *pool) forward(x *part) {
	select {
	case x.turn <- struct{}{}:
		defer func() { <-x.turn }()
	case <-p.g.life.Done():
		return
	}
	if x.digest == "" {
		return
	}
	ctx, cancel := context.WithTimeout(p.g.life, callTimeout)
	defer cancel()
	if _, err := p.g.engine.ForwardRing(ctx, x.id, x.digest); err != nil && p.g.life.Err() == nil {
		p.g.log.Debug("flowfabric: gateway: a wake was not passed on; polls stand in for it", "partition", x.id,
			"error", err)
	}
}

func (g *Gateway) heatAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range g.pools {
		for _, x := range p.parts {
			x.hot = true
		}
		p.wakeFirst()
	}
}

// sweep has those look again who wait at a partition that did not answer or whose registration is old, and finds work
// that nobody was rung for. It forgets offers that nobody makes any more.
func (g *Gateway) sweep() {
	ticks := time.NewTicker(g.every)
	defer ticks.Stop()
	for n := 0; ; n++ {
		select {
		case <-g.life.Done():
			return
		case now := <-ticks.C:
			if g.tidy(now) {
				g.poll(n)
			}
		}
	}
}

// tidy tells whether somebody waits.
func (g *Gateway) tidy(now time.Time) (waiting bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, p := range g.pools {
		if len(p.asks) == 0 {
			if now.Sub(p.used) > forgotten {
				delete(g.pools, key)
			}
			continue
		}
		waiting = true
		for _, x := range p.parts {
			if !x.registered.IsZero() && now.Sub(x.registered) > registered {
				x.hot, x.registered = true, time.Time{}
			}
		}
		if p.anyHot(now) {
			p.wakeFirst()
		}
	}
	return waiting
}

// poll looks at all partitions every few sweeps; in a cluster, where each is a call of its own, at some of them each
// time.
func (g *Gateway) poll(n int) {
	var turns [][]uint16
	for p := range g.engine.Partitions() {
		switch {
		case g.engine.Cluster() && int(p)%pollSweeps == n%pollSweeps:
			turns = append(turns, []uint16{p})
		case !g.engine.Cluster() && n%pollSweeps == 0 && len(turns) == 0:
			turns = append(turns, []uint16{p})
		case !g.engine.Cluster() && n%pollSweeps == 0:
			turns[0] = append(turns[0], p)
		}
	}
	for _, turn := range turns {
		ctx, cancel := context.WithTimeout(g.life, callTimeout)
		states, _, err := g.engine.Poll(ctx, turn)
		cancel()
		if err != nil {
			continue // the claims meet the same, and say so
		}
		g.mu.Lock()
		for _, s := range states {
			for _, p := range g.pools {
				if s.Ready > 0 && len(p.asks) > 0 {
					p.parts[s.Partition].hot = true
					p.wakeFirst()
				}
			}
		}
		g.mu.Unlock()
	}
}
