package conformance

import (
	"slices"
	"strings"
	"sync"

	"github.com/flowfabric/flowfabric-go/internal/contract"
)

var functionsByName = sync.OnceValue(func() map[string]contract.Function {
	out := map[string]contract.Function{}
	for _, f := range contract.Functions() {
		out[f.Name] = f
	}
	return out
})

// shaped holds a call to the header of its function: every call that scenarios make by themselves is, so that a header
// cannot say what is not so. A batch answers for each of its items, which may be of a type that it refuses.
func (w *env) shaped(name string, args []string, a answer) {
	w.Helper()
	f := functionsByName()[name]
	if a.status == 0 {
		if !slices.Contains(f.Errors, a.code) {
			w.Errorf("%s refuses with %s, which is not among the errors of its header", name, a.code)
		}
		return
	}
	refused := slices.ContainsFunc(a.slots, func(slot string) bool {
		return strings.HasPrefix(slot, "-") || slot == "refused" // by a schedule that fires
	})
	if _, err := contract.Decode(f.Args, args); err != nil && !w.hostile && !refused {
		w.Errorf("the arguments of %s are not what its header says: %v", name, err)
	}
	if a.status != 1 {
		w.Errorf("%s answers %s with status %d", name, a.code, a.status)
	}
	slots, ok := f.Reply(a.code)
	if !ok {
		w.Errorf("%s answers %s, which its header does not say", name, a.code)
	}
	if _, err := contract.Decode(slots, a.slots); err != nil {
		w.Errorf("%s answers %s, but not what its header says: %v", name, a.code, err)
	}
}
