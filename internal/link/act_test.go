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
	if got := link.ActOf(nil); got != (link.Act{}) {
		t.Errorf("without options %+v", got)
	}
}
