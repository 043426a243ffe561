package client

import (
	"context"

	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// The fake store has no lanes, queues, holders or lists: those are tested on servers.

func (f *fakeStore) SetLane(_ context.Context, namespace, lane string, change engine.LaneChange) []engine.LaneSet {
	err := f.ask(laneAsked{namespace, lane, change})
	return []engine.LaneSet{{Err: err}}
}

func (f *fakeStore) Lanes(context.Context) []engine.PartitionLanes { return nil }

func (f *fakeStore) Queues(context.Context, uint16) ([]engine.Queue, error) { return nil, f.refusal }

func (f *fakeStore) PartitionSessions(context.Context, uint16) ([]engine.SessionRow, error) {
	return nil, f.refusal
}

func (f *fakeStore) ListExecutions(context.Context, uint16, engine.ListQuery) (engine.ListPage, error) {
	return engine.ListPage{}, f.refusal
}

func (f *fakeStore) DescribePartition(_ context.Context, p uint16) (engine.PartitionInfo, error) {
	return engine.PartitionInfo{Partition: p}, f.refusal
}

type laneAsked struct {
	namespace, lane string
	change          engine.LaneChange
}
