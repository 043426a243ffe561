package times

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/spread"
)

const (
	// Day is for how many minutes times are kept.
	Day = 24 * 60
	// MostByKind is how many minutes a question for each kind may read, of all kinds together.
	MostByKind = 50_000

	readAtOnce = 8
)

// Query asks for times.
type Query struct {
	Namespace string // engine.AllSpaces for all
	Kind      string // engine.EveryKind for all
	From      int64  // the first minute since 1970
	Minutes   int    // how many, 1..Day
	Step      int    // how many minutes are one step, at least 1
}

// Reader is what answers; *engine.Engine is one.
type Reader interface {
	ReadTimes(ctx context.Context, namespace, kind string, from int64, count int) (kinds []string,
		minutes []engine.Times, err error)
}

// Read returns the steps of a query, and which kinds there are.
func Read(ctx context.Context, r Reader, q Query) (out apiv1.Times, kinds []string, err error) {
	kinds, minutes, err := r.ReadTimes(ctx, q.Namespace, q.Kind, q.From, q.Minutes)
	if err != nil {
		return out, nil, err
	}
	out = apiv1.Times{Namespace: q.Namespace, Since: instant(q.From),
		Step: flowfabric.Millis(time.Duration(q.Step) * time.Minute)}
	if q.Kind != engine.EveryKind {
		out.Kind = q.Kind
	}
	steps := make([]spread.Tally, (q.Minutes+q.Step-1)/q.Step)
	var all spread.Tally
	for _, m := range minutes {
		steps[int(m.Minute-q.From)/q.Step].Merge(m.Tally)
		all.Merge(m.Tally)
	}
	out.Total = sum(&all)
	for i := range steps {
		out.Steps = append(out.Steps,
			apiv1.TimesStep{At: instant(q.From + int64(i*q.Step)), TimesSum: sum(&steps[i])})
	}
	return out, kinds, nil
}

// ByKind returns the sums of some kinds, and of those that the store does not tell apart, if there are such.
func ByKind(ctx context.Context, r Reader, q Query, kinds []string) ([]apiv1.KindTimes, error) {
	var mu sync.Mutex
	var out []apiv1.KindTimes
	reading := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError().WithMaxGoroutines(readAtOnce)
	for _, kind := range append(slices.Clone(kinds), "") {
		reading.Go(func(ctx context.Context) error {
			_, minutes, err := r.ReadTimes(ctx, q.Namespace, kind, q.From, q.Minutes)
			if err != nil || len(minutes) == 0 {
				return err
			}
			var all spread.Tally
			for _, m := range minutes {
				all.Merge(m.Tally)
			}
			mu.Lock()
			defer mu.Unlock()
			out = append(out, apiv1.KindTimes{Kind: kind, TimesSum: sum(&all)})
			return nil
		})
	}
	err := reading.Wait()
	slices.SortFunc(out, func(a, b apiv1.KindTimes) int {
		return cmp.Or(cmp.Compare(runs(b), runs(a)), cmp.Compare(a.Kind, b.Kind))
	})
	return out, err
}

func runs(k apiv1.KindTimes) uint64 { return k.Completed + k.Failed + k.Retried + k.Other }

func instant(minute int64) time.Time { return time.Unix(minute*60, 0).UTC() }

func sum(t *spread.Tally) apiv1.TimesSum {
	return apiv1.TimesSum{Completed: t.Completed, Failed: t.Failed, Retried: t.Retried, Other: t.Other,
		Waited: percentiles(&t.Waited), Ran: percentiles(&t.Ran)}
}

func percentiles(s *spread.Spread) apiv1.Percentiles {
	at := func(q float64) flowfabric.Millis { return flowfabric.Millis(s.Quantile(q).Round(time.Millisecond)) }
	return apiv1.Percentiles{Count: s.Count(), P50: at(0.5), P90: at(0.9), P99: at(0.99)}
}
