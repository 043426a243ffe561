package inproc_test

import (
	"errors"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
)

// This test program does not link package embedded.
func TestEmbeddedThatIsNotLinked(t *testing.T) {
	_, release, err := inproc.Resolve(t.Context(), "embedded://", nil)
	if !errors.Is(err, flowfabric.ErrConfig) ||
		!strings.Contains(err.Error(), `import _ "github.com/flowfabric/flowfabric-go/embedded"`) {
		t.Errorf("%v does not say what to import", err)
	}
	release()
	url, release, err := inproc.Resolve(t.Context(), "redis://h", nil)
	if url != "redis://h" || err != nil {
		t.Errorf("another URL: %q, %v", url, err)
	}
	release()
}
