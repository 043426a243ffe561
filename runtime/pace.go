package runtime

import "time"

const (
	// patience is how long a claimed execution may wait here for a slot. Then it goes back to its queue, where a
	// worker that is idle gets it.
	patience = 10 * time.Millisecond
	// deepPatience is how many times as long it may wait if its partition had more than this worker took: a worker
	// that is idle finds work there. Handlers that began together end together, so without it all that waits for
	// handlers of 10 ms would go back.
	deepPatience = 5
	// maxAhead bounds what waits, in time at the present pace. It is less than patience, since handlers do not return
	// evenly.
	maxAhead = 5 * time.Millisecond
	// paceWindow is how long handlers that return are counted before their rate is believed.
	paceWindow = 10 * time.Millisecond
	// paceMemory is after which silence the pace is unknown.
	paceMemory = 200 * time.Millisecond
	// mistakePause is for how long nothing is claimed ahead after something went back.
	mistakePause = time.Second
)

// pace tells how many executions to claim ahead: as many as slots are freed for while a claim comes, twice, since the
// next claim is made when half of them are left. With handlers that take long that is none. It is guarded by the
// mutex of its slots.
type pace struct {
	since time.Time // begin of the window
	count int       // of handlers that returned since
	rate  float64   // of them a second
	trip  time.Duration
	off   time.Time // nothing ahead before
	most  int       // as told last

	patience time.Duration
	fixed    int // tests: this many, whatever the pace
}

// returned counts a handler.
func (p *pace) returned(now time.Time) {
	p.count++
	p.fold(now)
}

func (p *pace) fold(now time.Time) {
	passed := now.Sub(p.since)
	if passed < paceWindow {
		return
	}
	rate := float64(p.count) / passed.Seconds()
	switch {
	case passed > paceMemory:
		p.rate = 0
	case p.rate == 0:
		p.rate = rate
	default:
		p.rate += (rate - p.rate) / 2
	}
	p.since, p.count = now, 0
}

// claimed learns how long a claim took.
func (p *pace) claimed(took time.Duration) {
	if p.trip == 0 {
		p.trip = took
	}
	p.trip += (took - p.trip) / 8
}

// mistaken stops claims ahead for a while: something waited too long.
func (p *pace) mistaken(now time.Time) { p.off = now.Add(mistakePause) }

// ahead is how many executions may wait for a slot.
func (p *pace) ahead(now time.Time, capacity int) int {
	p.fold(now)
	p.most = p.fixed
	if p.fixed == 0 && !now.Before(p.off) {
		p.most = min(capacity, int(p.rate*min(2*p.trip, maxAhead).Seconds()))
	}
	return p.most
}

// bound is how long an execution may wait; deep if more waits where it came from.
func (p *pace) bound(deep bool) time.Duration {
	if deep {
		return deepPatience * p.patience
	}
	return p.patience
}
