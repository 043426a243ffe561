package crash

import (
	"context"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// RecordEnds makes every partition record who ends, from now on.
func RecordEnds(ctx context.Context, e *engine.Engine) error {
	for _, state := range e.SetFeed(ctx, engine.FeedWish{Ends: true, Keep: 24 * time.Hour, Length: 10_000_000}) {
		if state.Err != nil {
			return state.Err
		}
	}
	return nil
}

// Ends counts how often each execution has ended, since [RecordEnds].
func Ends(ctx context.Context, e *engine.Engine) (map[flowfabric.ExecutionID]int, error) {
	ends := map[flowfabric.ExecutionID]int{}
	for p := range e.Partitions() {
		var after stream.Cursor
		for number := uint64(0); ; {
			page, err := e.ReadFeed(ctx, p, after, 1000)
			if err != nil {
				return nil, err
			}
			for _, entry := range page {
				if entry.Err != nil || number > 0 && entry.Number != number+1 {
					return nil, fmt.Errorf("partition %d, entry %d after %d: %w", p, entry.Number, number, entry.Err)
				}
				after, number = entry.ID, entry.Number
				for _, event := range entry.Events {
					ends[event.Execution]++
				}
			}
			if len(page) == 0 {
				break
			}
		}
	}
	return ends, nil
}
