package link_test

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

func TestOfTwoOptionsOfAKindTheLaterCounts(t *testing.T) {
	got := link.ActOf([]flowfabric.ActOption{flowfabric.By("anna"), flowfabric.Reason("first"),
		flowfabric.Reason("second"), flowfabric.By("otto")})
	if want := (link.Act{By: "otto", Reason: "second"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for want, act := range map[string]link.Act{"": {}, "by anna": {By: "anna"}, "moved": {Reason: "moved"},
		"moved (by anna)": {By: "anna", Reason: "moved"}} {
		if got := act.Words(); got != want {
			t.Errorf("%+v says %q, want %q", act, got, want)
		}
	}
	if got := link.ActOf(nil); got != (link.Act{}) {
		t.Errorf("without options %+v", got)
	}
}
