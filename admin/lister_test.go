package admin

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// readers notes which index of which partition is read, and has entries at 100, 200 … 1,000 ms.
type readers struct {
	*fakeStore
	read []string
}

func (r *readers) Partitions() uint16 { return 1 }

func (r *readers) ListExecutions(_ context.Context, _ uint16, q engine.ListQuery) (engine.ListPage, error) {
	r.read = append(r.read, fmt.Sprintf("%s %d", q.Index, q.After.Score))
	var page engine.ListPage
	for i := range int64(10) {
		x := engine.Listed{Index: q.Index, Score: 100 * (i + 1), Member: fmt.Sprintf("%02d", i), Drift: "of a test"}
		if q.Newest {
			x.Score, x.Member = 100*(10-i), fmt.Sprintf("%02d", 10-i)
		}
		if behind := x.Score > q.After.Score; q.After.Member == "" || behind != q.Newest && x.Score != q.After.Score {
			page.Executions = append(page.Executions, x)
		}
	}
	page.More = len(page.Executions) > q.Limit
	page.Executions = page.Executions[:min(q.Limit, len(page.Executions))]
	return page, nil
}

func TestIndexOfWhatDidNotSucceed(t *testing.T) {
	for what, x := range map[string]struct {
		states []flowfabric.PublicState
		f      Filter
		read   string // the first
		calls  int
		items  int
	}{
		"failed": {[]flowfabric.PublicState{flowfabric.Failed}, Filter{}, "unsuccessful 0", 1, 10},
		"all four": {[]flowfabric.PublicState{flowfabric.Failed, flowfabric.Cancelled, flowfabric.Expired,
			flowfabric.Skipped}, Filter{}, "unsuccessful 0", 1, 10},
		"completed": {[]flowfabric.PublicState{flowfabric.Completed}, Filter{}, "ended 0", 1, 10},
		"failed and completed": {[]flowfabric.PublicState{flowfabric.Failed, flowfabric.Completed}, Filter{},
			"ended 0", 1, 10},
		"failed and ended": {[]flowfabric.PublicState{flowfabric.Failed, Ended}, Filter{}, "ended 0", 1, 10},
		"what ended lately": {[]flowfabric.PublicState{flowfabric.Failed},
			Filter{Newest: true, Since: time.UnixMilli(900)}, "unsuccessful 0", 1, 2},
		"what ended long ago": {[]flowfabric.PublicState{flowfabric.Failed},
			Filter{Newest: true, Until: time.UnixMilli(300)}, "unsuccessful 300", 1, 2},
		"what ended since then": {[]flowfabric.PublicState{flowfabric.Failed}, Filter{Since: time.UnixMilli(850)},
			"unsuccessful 850", 1, 2},
		"what ended until then": {[]flowfabric.PublicState{flowfabric.Failed}, Filter{Until: time.UnixMilli(250)},
			"unsuccessful 0", 1, 2},
	} {
		t.Run(what, func(t *testing.T) {
			r := &readers{fakeStore: newFake()}
			x.f.States = x.states
			page, err := r.admin(t, r).ListPage(t.Context(), x.f, "", 3)
			if err != nil || len(page.Items) > 3 {
				t.Fatalf("%+v, %v", page, err)
			}
			if !slices.Equal(r.read[:1], []string{x.read}) {
				t.Errorf("read %v, want %s first", r.read, x.read)
			}
			r.read = nil
			if page, err = r.admin(t, r).ListPage(t.Context(), x.f, "", 100); err != nil ||
				len(page.Items) != x.items || len(r.read) != x.calls || page.Cursor != "" {
				t.Errorf("%d of %d, %d calls, cursor %q, %v", len(page.Items), x.items, len(r.read), page.Cursor, err)
			}
		})
	}
}
