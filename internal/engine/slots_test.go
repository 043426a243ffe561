package engine

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// A hold that is none is shown as it is.
func TestSlots(t *testing.T) {
	h := Hold{Execution: mint.Join(3, uuid.MustParse(sampleUUID)), Epoch: 4}
	q := admission.GateRecord{Holds: []string{h.String(), "what is this"}}
	derived(&q)
	if want := []admission.Hold{{Execution: h.Execution.String(), Epoch: 4},
		{Execution: "what is this"}}; !slices.Equal(
		q.Slots, want) {
		t.Errorf("%+v, want %+v", q.Slots, want)
	}
}
