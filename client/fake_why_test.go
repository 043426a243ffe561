package client

import (
	"context"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

func (f *fakeStore) Explain(context.Context, flowfabric.ExecutionID) (engine.Facts, error) {
	return engine.Facts{}, f.ask("why")
}

func (f *fakeStore) Workers(context.Context) []engine.PartitionWorkers { return nil }
