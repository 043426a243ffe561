package engine

import (
	"context"

	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Tick does, for one partition, what is due because time passed, about 100 executions a call (lua/tick/ff_tick.lua).
// Only the owner ticks: a call by anybody else answers Owner false unless there is no owner or the tick is 2 s overdue.
// release gives the ownership up. owner is a worker instance id, which is rung with "t" when an earlier timer is set.
func (e *Engine) Tick(ctx context.Context, partition uint16, owner string, release bool) (TickReply, error) {
	return e.tick(ctx, partition, owner, bit(release))
}

// AskTick is a tick by a process that may have missed something, or that starts (lua/tick/ff_tick.lua). If another
// process owns the partition's tick and listens on its bell, that one is rung for a tick, which has to come within 2
// s, and the answer's Owner is false. If nobody owns it, or the owner does not listen, because its process is gone,
// the caller becomes the owner and ticks.
func (e *Engine) AskTick(ctx context.Context, partition uint16, owner string) (TickReply, error) {
	return e.tick(ctx, partition, owner, "2")
}

func (e *Engine) tick(ctx context.Context, partition uint16, owner, release string) (TickReply, error) {
	r, _, err := ask[TickReply](ctx, e, partition, wire.Tick{Owner: owner, Release: release})
	return r, err
}
