package explain

import (
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

func TestWorkThatWaitsForAVersion(t *testing.T) {
	of := func(instance, version string) flowfabric.Worker {
		w := writer(instance)
		w.Version, w.Capabilities = version, valid.Offered(w.Capabilities, version)
		return w
	}
	asks := func(capabilities ...string) engine.Facts {
		return in("R1f", func(f *engine.Facts) { f.Route.Capabilities = capabilities })
	}
	for _, c := range []struct {
		name            string
		facts           engine.Facts
		live            []flowfabric.Worker
		reason          string
		sentence, moves string
	}{
		{"other versions", asks("version:12"), []flowfabric.Worker{of("a", "13"), of("b", "14"), of("c", "13")},
			WhyWaitingNoCapability, "It waits for version \"12\" of the application, which no live worker " +
				"has: 3 live workers take", "and is of version \"12\"."},
		{"no version", asks("version:12"), []flowfabric.Worker{of("a", "")}, WhyWaitingNoCapability,
			"without a version;", "and is of version \"12\"."},
		{"more is missing", asks("gpu", "version:12"), []flowfabric.Worker{of("a", "13")}, WhyWaitingNoCapability,
			"It waits for a capable worker", "and is of version \"12\" and has the capabilities \"gpu\"."},
		{"no worker", asks("version:12"), nil, WhyWaitingNoWorker, "It waits for a worker",
			"and is of version \"12\"."},
		{"the version", asks("version:12"), []flowfabric.Worker{of("a", "12")}, WhyWaitingNext,
			"It waits to be claimed", "The next claim"},
	} {
		got := waits(c.facts, crew{live: c.live})
		if got.reason != c.reason || !strings.Contains(got.why, c.sentence) || !strings.Contains(got.next, c.moves) {
			t.Errorf("%s: %s: %s %s", c.name, got.reason, got.why, got.next)
		}
	}
}
