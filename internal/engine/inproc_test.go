package engine_test

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// The good case is embedded's: a server in the process answers under its URL.
func TestInProcessURLThatLeadsNowhere(t *testing.T) {
	for url, want := range map[string]error{"inproc://": flowfabric.ErrConfig,
		"inproc://4000000000": flowfabric.ErrTransport} {
		if e, err := engine.Open(t.Context(), engine.Config{URL: url}); !errors.Is(err, want) {
			t.Errorf("%s: %v, %v; want %v", url, e, err, want)
		}
	}
}
