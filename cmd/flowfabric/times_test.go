package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// A worker that has stopped has told of everything that it ran, by kind.
func TestTimes(t *testing.T) {
	for server, start := range servers {
		t.Run(server, func(t *testing.T) {
			w := newEnv(t, start(t))
			var all apiv1.Times
			_, out, _ := w.run("times --json", "")
			must.No(t, json.Unmarshal([]byte(out), &all))
			ends := map[string][5]uint64{}
			for _, k := range all.Kinds {
				ends[k.Kind] = [5]uint64{k.Completed, k.Failed, k.Other, k.Waited.Count, k.Ran.Count}
			}
			want := map[string][5]uint64{"echo": {1, 0, 0, 1, 1}, "broken": {0, 1, 0, 1, 1}, "ask": {0, 0, 1, 1, 0}}
			if len(ends) != len(want) {
				t.Errorf("%v", ends)
			}
			for kind, n := range want {
				if ends[kind] != n {
					t.Errorf("%s: %v, want %v", kind, ends[kind], n)
				}
			}
			if k := all.Total; k.Completed != 1 || k.Failed != 1 || k.Ran.P50 < 1 || k.Waited.Count != 3 {
				t.Errorf("%+v", all.Total)
			}
			_, out, _ = w.run("times", "")
			for _, want := range []string{"KIND", "WAITED P50 P90 P99 RAN P50", "echo", "broken", "ask", "all"} {
				if !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
					t.Errorf("no %s in\n%s", want, out)
				}
			}
			if code, out, _ := w.run("times echo --since 24h --step 1h", ""); code != exitOK ||
				strings.Count(out, "\n") != 3 {
				t.Errorf("a header, a step and the sum:\n%s", out)
			}
			if code, _, out := w.run("times echo --step 90s", ""); code == exitOK || !strings.Contains(out, "step") {
				t.Errorf("%d: %s", code, out)
			}
		})
	}
}
