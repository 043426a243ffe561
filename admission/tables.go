package admission

import (
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
)

// tables know the gates of the routes of each partition, as the replies to claims tell them.
type tables struct {
	mu sync.Mutex
	by map[uint16]*table
}

type table struct {
	version uint64
	rows    map[uint64][]flowfabric.Gate // of all routes with gates
	blind   bool                         // a row is missing: the next claim asks for all
}

// learn merges what a reply says of routes.
func (t *tables) learn(partition uint16, reply engine.ClaimReply) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.by[partition]
	if own == nil || reply.TableFull || reply.Table < own.version { // a failover may have given an id to another route
		own = &table{rows: map[uint64][]flowfabric.Gate{}}
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
