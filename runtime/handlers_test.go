package runtime

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

func TestHandlers(t *testing.T) {
	echo := handler.Plain(func(_ context.Context, in string) (string, error) { return in, nil })
	bind := func(kind string) handler.Binding {
		return handler.Bind(handler.Define[string, string](kind, flowfabric.Lane("fast")), echo)
	}
	r, err := newHandlers([]handler.Binding{bind("b"), bind("a")})
	if err != nil || !slices.Equal(r.kinds(), []string{"a", "b"}) || r["a"].Info().Kind != "a" ||
		r["a"].Info().Lane != "fast" {
		t.Fatalf("got %v, %v", r, err)
	}
	var none *handler.Definition[string, string]
	_, err = newHandlers([]handler.Binding{bind("a"), bind("a"), {}, handler.Bind(none, echo),
		handler.Bind(handler.Define[string, string]("n"), handler.Plain[string, string](nil))})
	if !errors.Is(err, denied.DuplicateHandler) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{`"a"`, "binding is empty", "definition is nil", "function for kind n is nil"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}
