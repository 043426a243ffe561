package runtime

import (
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
)

// partition is what the worker knows of one partition. The first group is guarded by scheduler.mu, the second
// belongs to the claim round under way (there is at most one).
type partition struct {
	id uint16

	queued     bool // waits in scheduler.hot
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
	gated        bool   // some of it has had gates; changed under scheduler.mu
	digest       string // "" until the subscription is stored
	// grows with each claim; it begins elsewhere in each partition, so that lanes have their turns over all of them,
	// too
	rotation uint64
}

func newPartition(id uint16) *partition {
	return &partition{id: id, rotation: uint64(id), backoff: newBackoff(100*time.Millisecond, 5*time.Second)}
}

// learn merges the table delta of a reply.
func (p *partition) learn(reply engine.ClaimReply) {
	if p.table.Learn(reply) {
		p.digest = ""
	}
}

func newOffer(cfg Config, kinds []string) offer.Offer {
	return offer.New(append([]string{cfg.Namespace}, cfg.Namespaces...), cfg.Lanes, kinds,
		cfg.Capabilities).Weighing(cfg.LaneWeights)
}

// newBackoff is the one shape of backoff in this package: doubling, ±50 %, for ever.
func newBackoff(initial, ceiling time.Duration) *backoff.ExponentialBackOff {
	return backoff.NewExponentialBackOff(backoff.WithInitialInterval(initial), backoff.WithMaxInterval(ceiling),
		backoff.WithMultiplier(2), backoff.WithMaxElapsedTime(0))
}
