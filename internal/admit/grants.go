package admit

import "sync"

// maxGrants is how many a claim is granted at most.
const maxGrants = 32

// grants say for how many grants the next claim of a partition asks; 0 is no limit.
type grants struct {
	mu sync.Mutex
	by map[uint16]int
}

// most is how many grants the next claim asks for: what gates refuse has been moved for nothing.
func (g *grants) most(partition uint16) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.by[partition]
}

// passed records how much of what was granted may run: a slot that is freed now and then is worth few grants, and
// where all may run there may be room for more.
func (g *grants) passed(partition uint16, granted, admitted int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch own := g.by[partition]; {
	case admitted < granted:
		g.by[partition] = min(2*admitted+1, maxGrants)
	case own > 0 && admitted >= own:
		g.by[partition] = min(2*own, maxGrants)
	}
}
