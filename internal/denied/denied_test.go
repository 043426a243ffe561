package denied_test

import (
	"errors"
	"fmt"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// An answer matches the refusal of its code, and no other; the table of package flowfabric knows each code.
func TestRefusalsMatchAnswers(t *testing.T) {
	all := []error{
		denied.FenceRequired,
		denied.PartialFence,
		denied.ClaimOrder,
		denied.SessionHeld,
		denied.WaitpointExists,
		denied.WaitpointNotPending,
		denied.WaitpointExpired,
		denied.WaitpointKey,
		denied.StaleRevision,
		denied.OtherFlow,
		denied.Namespace,
		denied.StaleAppend,
		denied.FrameGap,
		denied.SummaryConflict,
		denied.UnknownSubscription,
		denied.Secret,
		denied.Kid,
		denied.Grace,
		denied.Script,
	}
	for i, want := range all {
		code := flowfabric.CodeOf(want)
		if code == flowfabric.CodeOf(denied.Reply) {
			t.Errorf("%v: its code is not in the table", want)
		}
		answer := fmt.Errorf("wrapped: %w", denied.New("ff_x", code, "detail"))
		for j, other := range all {
			if errors.Is(answer, other) != (i == j) {
				t.Errorf("%s matches %v: %t", code, other, errors.Is(answer, other))
			}
		}
	}
}
