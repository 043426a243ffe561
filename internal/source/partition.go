package source

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

// Partition is what a source knows of one partition. The first group is guarded by Source.mu, the second belongs to
// the caller that claims from it (there is at most one).
type Partition struct {
	id uint16

	queued     bool // waits in Source.hot
	claiming   bool
	stale      bool // the connection was lost: after a failover route ids may mean something else
	rung       bool // since the claim round began, so its registration is worth nothing
	registered bool // the server will ring when matching work arrives
	ahead      bool // the claim round claims ahead of slots: it must not register
	dry        bool // nothing is left to claim ahead
	more       bool // the last claim left some
	until      time.Time
	// when it was rung for work that no claim round has looked for since: the ring may have to be forwarded
	owed        time.Time
	failures    int
	notBefore   time.Time // backoff after a failed claim round
	backoff     *backoff.ExponentialBackOff
	polled      bool      // hot only because the poll saw ready routes
	emptyPolls  int       // how often in a row that led to nothing: the routes are other workers'
	ignorePolls time.Time // what polls see is ignored until then

	urgent mark // what is to be claimed before other partitions have their turn
	served mark // likewise, by the claim round under way

	table        offer.Table
	subscription []uint64
	gated        bool   // some of it has had gates; changed under Source.mu
	digest       string // "" until the subscription is stored
	// grows with each claim; it begins elsewhere in each partition, so that lanes have their turns over all of them,
	// too
	rotation uint64
}

func newPartition(id uint16) *Partition {
	return &Partition{id: id, rotation: uint64(id), backoff: newBackoff()}
}

// newBackoff is that of a partition, or a subscription, in trouble: doubling, ±50 %, for ever.
func newBackoff() *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(100*time.Millisecond),
		backoff.WithMaxInterval(5*time.Second), backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
}

// ID is its number.
func (p *Partition) ID() uint16 { return p.id }

// Route looks a route up, which claims from this partition have brought. Only for the caller that claims from it.
func (p *Partition) Route(id uint64) (r engine.Route, known bool) { return p.table.Route(id) }

// Subscribed reports whether the subscription is stored. Only for the caller that claims from it.
func (p *Partition) Subscribed() bool { return p.digest != "" }

// More reports whether the last claim left some. Only for the caller that claims from it.
func (p *Partition) More() bool { return p.more }

// Gated reports whether some of its work has had gates. Only for the caller that claims from it, or within reserve.
func (p *Partition) Gated() bool { return p.gated }

// Failing reports whether its last claim was not answered. Only within reserve.
func (p *Partition) Failing() bool { return p.failures > 0 }

// Request asks for up to n executions; the caller adds the session. With wait the server rings once there is work if
// it has less than n now.
func (p *Partition) Request(n int, wait bool) engine.ClaimRequest {
	return engine.ClaimRequest{Partition: p.id, Max: n, Subscription: p.digest, Table: p.table.Version, Wait: wait,
		Rotation: p.rotation}
}

// Waits is whether a claim of this round may wait for a ring: one ahead of slots may not.
func (p *Partition) Waits() bool { return !p.ahead }
