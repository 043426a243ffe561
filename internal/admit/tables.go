package admit

import (
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// maxGrants is how many a claim is granted at most.
const maxGrants = 32

// tables know the gates of the routes of each partition, as the replies to claims tell them.
type tables struct {
	mu sync.Mutex
	by map[uint16]*table
}

type table struct {
	version uint64
	rows    map[uint64][]flowfabric.Gate // of all routes with gates
	blind   bool                         // a row is missing: the next claim asks for all
	limit   int                          // of grants; 0 = as many as there may be
}

// learn merges what a reply says of routes.
func (t *tables) learn(partition uint16, reply engine.ClaimReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.by[partition]
	if own == nil || reply.TableFull || reply.Table < own.version { // a failover may have given an id to another route
		fresh := &table{rows: map[uint64][]flowfabric.Gate{}}
		if own != nil {
			fresh.limit = own.limit
		}
		own = fresh
		t.by[partition] = own
	}
	for _, r := range reply.Routes {
		if len(r.Gates) > 0 {
			own.rows[r.ID] = r.Gates
		}
	}
	own.version = reply.Table
}

func (t *tables) gates(partition uint16, route uint64) (gates []flowfabric.Gate, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	gates, known = t.by[partition].rows[route]
	return gates, known
}

// most is how many grants the next claim asks for: what gates refuse has been moved for nothing.
func (t *tables) most(partition uint16) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own := t.by[partition]; own != nil {
		return own.limit
	}
	return 0
}

// passed records how much of what was granted may run: a slot that is freed now and then is worth few grants, and where all may run there
// may be room for more.
func (t *tables) passed(partition uint16, granted, admitted int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.by[partition]
	switch {
	case admitted < granted:
		own.limit = min(2*admitted+1, maxGrants)
	case own.limit > 0 && admitted >= own.limit:
		own.limit = min(2*own.limit, maxGrants)
	}
}

// forget has the whole table read by the next claim.
func (t *tables) forget(partition uint16) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.by[partition].blind = true
}

func (t *tables) blind(partition uint16) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.by[partition]
	return own != nil && own.blind
}
