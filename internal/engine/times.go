package engine

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	durations "github.com/flowfabric/flowfabric-go/internal/spread"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// Times is what a process measured of attempts of a kind, [EveryKind] for all, that ended in a minute of the server's
// clock.
type Times struct {
	Kind   string
	Minute int64 // since 1970
	Tally  *durations.Tally
}

// EveryKind stands for the sum of all kinds, and AllSpaces for that of all namespaces.
const (
	EveryKind = "*"
	AllSpaces = allSpaces
)

// minutesKept is for how many minutes times are kept.
const minutesKept = 24 * 60

// MaxTimes is how many rows a call of [Engine.NoteTimes] may have.
const MaxTimes = 8

// NoteTimes adds what a process measured (lua/worker/ff_note_times.lua): 1..[MaxTimes] rows. number must grow with
// each call of a sender; a call that was answered with an error may be repeated as it was, within ten minutes.
func (e *Engine) NoteTimes(ctx context.Context, namespace, sender string, number uint64, rows []Times) error {
	q := wire.NoteTimes{Namespace: namespace, Sender: sender, Number: int(number)}
	for _, x := range rows {
		q.Rows = append(q.Rows, wire.NoteTimesRow{Kind: x.Kind, Minute: int(x.Minute), Tally: x.Tally.Text()})
	}
	_, _, err := ask[wire.NoteTimesReply](ctx, e, e.timesPartition(namespace), q)
	return err
}

// ReadTimes returns what is known of a kind in minutes of the server's clock, from one on and at most a day, oldest
// first, and the names of the kinds of the namespace (lua/worker/ff_read_times.lua).
func (e *Engine) ReadTimes(ctx context.Context, namespace, kind string, from int64, count int) (kinds []string,
	minutes []Times, err error) {
	for until := from + int64(count); from > 0; {
		r, _, err := ask[wire.ReadTimesReply](ctx, e, e.timesPartition(namespace), wire.ReadTimes{Namespace: namespace,
			Kind: kind, From: int(from), Count: min(int(until-from), minutesKept)})
		if err != nil {
			return nil, nil, err
		}
		kinds = r.Kinds
		for _, x := range r.Minutes {
			t, err := durations.ParseTally(x.Tally)
			if err != nil {
				return nil, nil, fmt.Errorf("read times of minute %d: %w", x.Minute, err)
			}
			minutes = append(minutes, Times{kind, int64(x.Minute), t})
		}
		from = int64(r.Next)
	}
	return kinds, minutes, nil
}

func (e *Engine) timesPartition(namespace string) uint16 {
	return ids.SchedulePartition(namespace, e.partitions)
}
