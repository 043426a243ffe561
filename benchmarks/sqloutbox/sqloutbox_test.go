package sqloutbox_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/sqloutbox"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	o := sqloutbox.Options{Server: "redis-server", Rounds: 1, Jobs: 40, Concurrency: 3}
	err := sqloutbox.Run(t.Context(), o, &out)
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"40 transactions a round", "\nriver ", "\noutbox ", "\nrelay, of 1,000 orders "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("no %q in\n%s", line, &out)
		}
	}
}
