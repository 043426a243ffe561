package flowfabric_test

import (
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

func TestOfTwoOptionsOfAKindTheLaterCounts(t *testing.T) {
	got := flowfabric.NewAct(flowfabric.By("anna"), flowfabric.Reason("first"), flowfabric.Reason("second"), flowfabric.By("otto"))
	if want := (flowfabric.Act{By: "otto", Reason: "second"}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := flowfabric.NewAct(); got != (flowfabric.Act{}) {
		t.Errorf("without options %+v", got)
	}
}

func TestWorkerOf(t *testing.T) {
	for session, want := range map[string]string{"web-1~0a1b": "web-1", "a~b~c": "a~b", "plain": "plain", "": ""} {
		if got := flowfabric.WorkerOf(session); got != want {
			t.Errorf("%q: %q, want %q", session, got, want)
		}
	}
}
