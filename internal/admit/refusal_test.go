package admit

import (
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/gatetext"
)

// What a worker writes when a gate refuses is what readers understand: the gate, and that the work waits for it.
func TestRefusalIsRead(t *testing.T) {
	limit := (flowfabric.Start{Limits: []flowfabric.KeyLimit{{Key: "user:7 (a) %", Concurrency: 2, Rate: 10,
		Per: flowfabric.Millis(time.Second)}}}).Gates()[0]
	waiting := codes.Shown(codes.WaitingFirst)
	for _, tc := range []struct {
		refusal Refusal
		state   flowfabric.PublicState
		text    string
	}{
		{Refusal{Kind: RefusedCap, Gate: limit}, flowfabric.WaitingGate,
			"limit user:7 (a) % (2 at once, 10 in 1s) cap"},
		{Refusal{Kind: RefusedRate, Gate: limit}, flowfabric.WaitingGate,
			"limit user:7 (a) % (2 at once, 10 in 1s) rate"},
		{Refusal{Kind: RefusedCap, Gate: flowfabric.Gate("api")}, flowfabric.WaitingGate, "gate api cap"},
		{Refusal{Kind: RefusedRate, Gate: flowfabric.Gate("api")}, flowfabric.WaitingGate, "gate api rate"},
		{Refusal{Kind: RefusedNotFound, Gate: flowfabric.Gate("api")}, flowfabric.WaitingGate,
			"gate_not_found api"},
		{Refusal{Kind: RefusedAmount, Gate: flowfabric.Gate("acme"), Dimension: "tokens", Used: 30, Limit: 100,
			Refused: 71}, flowfabric.WaitingGate, "gate acme amount tokens 30 100 71"},
		{Refusal{Kind: RefusedError, Gate: flowfabric.Gate("api")}, flowfabric.WaitingGate,
			"unavailable gate api"},
		{Refusal{Kind: RefusedError, Gate: limit}, flowfabric.WaitingGate,
			"limit user:7 (a) % (2 at once, 10 in 1s) unavailable"},
		{Refusal{Kind: RefusedUnknown}, flowfabric.WaitingGate, "gates unavailable"},
	} {
		text := tc.refusal.Text()
		by := gatetext.ParseClosing(text)
		if by.Gate != tc.refusal.Gate || by.Dimension != tc.refusal.Dimension || by.Refused != tc.refusal.Refused {
			t.Errorf("%q is read as %+v", text, by)
		}
		if got := engine.Gated(waiting, text).Public; got != tc.state {
			t.Errorf("%q: %s, want %s", text, got, tc.state)
		}
		if got := gatetext.ClosingText(text); got != tc.text {
			t.Errorf("%q for people: %q, want %q", text, got, tc.text)
		}
	}
}
