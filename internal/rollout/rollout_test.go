package rollout_test

import (
	"reflect"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/rollout"
)

func TestEachVersionIsToldWithWhatItHolds(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 31, 17, minute, 0, 0, time.UTC) }
	worker := func(name, version string, alive bool, registered int, held ...int) flowfabric.Worker {
		w := flowfabric.Worker{Instance: name, Alive: alive, Registered: true, RegisteredAt: at(registered),
			SeenAt: at(50), WorkerInfo: flowfabric.WorkerInfo{Version: version, Kinds: []string{"ship", name}}}
		for _, n := range held {
			w.Sessions = append(w.Sessions, flowfabric.WorkerSession{ID: ids.Session(name, version), Held: n})
		}
		return w
	}
	r := rollout.New([]flowfabric.Worker{worker("c", "13", true, 40, 1), worker("b", "13", true, 30, 2, 3),
		worker("a", "12", false, 10, 4), worker("z", "", true, 20, 5)},
		map[string]time.Time{"13": at(51), "12": at(50), "11": at(5), "10": at(4)})
	old, older, unknown := ids.Session("a", "12"), ids.Session("gw~w", "11"), ids.Session("a", "9")
	r.Add(flowfabric.Suspended, old, at(12))
	r.Add(flowfabric.Suspended, old, at(11))
	r.Add(flowfabric.Delayed, old, at(13))
	r.Add(flowfabric.Waiting, older, at(3))
	r.Add("held", older, at(4))
	r.Add(flowfabric.Delayed, unknown, at(2))
	r.Add(flowfabric.Delayed, ids.Session("z", ""), at(21))
	r.Add(flowfabric.Waiting, "", time.Time{}) // was never claimed
	want := apiv1.Versions{Items: []apiv1.Version{
		{Version: "13", Workers: 2, Kinds: []string{"b", "c", "ship"}, Since: at(30), SeenAt: at(51), Active: 6},
		{Workers: 1, Kinds: []string{"ship", "z"}, Since: at(20), SeenAt: at(50), Active: 5, Delayed: 2,
			OldestAt: at(2)},
		{Version: "12", SeenAt: at(50), Active: 4, Suspended: 2, Delayed: 1, OldestAt: at(11)},
		{Version: "11", SeenAt: at(5), Waiting: 2, OldestAt: at(3)},
	}, More: []flowfabric.PublicState{flowfabric.Waiting}}
	if got := r.All([]flowfabric.PublicState{flowfabric.Waiting}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}
