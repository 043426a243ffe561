package suspend

import (
	"errors"
	"strings"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// Names are looked through for every signal, so that there is a limit to all of them together.
func TestNamesOfAllLists(t *testing.T) {
	lists := func(n int) Condition {
		var all []Condition
		for range n {
			all = append(all, Signals("a", 1, make([]string, maxNames)...))
		}
		return AllOf(all...)
	}
	if _, _, err := lists(4).Compile(); err != nil {
		t.Error(err)
	}
	if _, _, err := lists(5).Compile(); !errors.Is(err, denied.Condition) || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
}
