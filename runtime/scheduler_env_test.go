package runtime

import (
	"context"
	"log/slog"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/offer"
	"github.com/flowfabric/flowfabric-go/internal/source"
)

// stored takes every subscription.
type stored struct{}

func (stored) SetSubscription(context.Context, uint16, engine.Subscription) (string, error) {
	return "aa", nil
}

// testScheduler is a scheduler and its source without a run around them.
func testScheduler(partitions uint16, slots *slots) *scheduler {
	s := newScheduler(slots)
	s.source = source.New(source.Config{Partitions: partitions, Offer: offer.New(nil, nil, nil, nil), Store: stored{},
		Room: room{slots}, Logger: slog.New(slog.DiscardHandler), OnHot: s.poke})
	return s
}
