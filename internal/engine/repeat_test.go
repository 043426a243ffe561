package engine

import (
	"errors"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
)

// An answer is an answer: only a call whose outcome is unknown is made again, and no more than a few times.
func TestOneCallOneRefusal(t *testing.T) {
	e, f := openFake(t)
	for _, c := range []struct {
		reply string
		want  error
		calls int
	}{
		{envelope(0, "stale_lease"), denied.StaleLease, 1},
		{"-OOM command not allowed when used memory > 'maxmemory'.\r\n", flowfabric.ErrOutOfMemory, 1},
		{"-ERR user_function:12: attempt to index a nil value\r\n", denied.Script, 1},
		{envelope(1, "OK"), nil, 1},
		{"-LOADING Redis is loading the dataset in memory\r\n", flowfabric.ErrTransport, 1 + repeats},
	} {
		calls := 0
		f.answer(func(function string) string {
			if function == "ff_release_execution" {
				calls++
			}
			return c.reply
		})
		_, err := e.ReleaseExecution(t.Context(), sampleFence)
		if !errors.Is(err, c.want) || calls != c.calls {
			t.Errorf("%q: %d calls and %v, want %d and %v", c.reply, calls, err, c.calls, c.want)
		}
	}
}

// What its caller repeats is not repeated here: otherwise both would wait, and a caller's bound would not hold.
func TestACallThatItsCallerRepeatsIsMadeOnce(t *testing.T) {
	e, f := openFake(t)
	calls := map[string]int{}
	f.answer(func(function string) string {
		calls[function]++
		return "-LOADING Redis is loading the dataset in memory\r\n"
	})
	item := NewExecution{ID: sampleID, Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k"}}
	_, create := e.CreateExecutions(t.Context(), sampleID.Partition(), []NewExecution{item})
	_, flow := e.CreateFlow(t.Context(), NewFlow{ID: sampleFlow})
	_, stage := e.StageFlow(t.Context(), sampleFlow, nil, []FlowMember{{NewExecution: item, Node: "n"}})
	_, _, seal := e.SealFlow(t.Context(), sampleFlow, SealClosed, 1, 0)
	for name, err := range map[string]error{"ff_create_execution": create, "ff_flow_create": flow,
		"ff_flow_stage": stage,
		"ff_flow_seal":  seal} {
		if !errors.Is(err, flowfabric.ErrTransport) || calls[name] != 1 {
			t.Errorf("%s: %d calls and %v, want one and ErrTransport", name, calls[name], err)
		}
	}
}
