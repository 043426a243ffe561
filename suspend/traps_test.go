package suspend

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// A signal without payload is no answer where the type cannot say so.
func TestDecodeOfNothing(t *testing.T) {
	nothing := engine.Signal{Name: "go", Encoding: "json", Payload: []byte(" null ")}
	if v, err := Decode[Answer](nothing); !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "no payload") {
		t.Errorf("%+v, %v", v, err)
	}
	if v, err := Decode[bool](nothing); err == nil {
		t.Errorf("%v", v)
	}
	if v, err := Decode[*Answer](nothing); v != nil || err != nil {
		t.Errorf("%v, %v", v, err)
	}
}

// Named narrows Await; anywhere else it would be ignored.
func TestNamedIsForAwait(t *testing.T) {
	if _, err := Wait(t.Context(), newTask(t, PassConfig{}), "a", Signal("a"), Named("go")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	if err := On(Signal("a"), Named("go")); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Error(err)
	}
	_, err := Await[bool](t.Context(), newTask(t, PassConfig{}), "a", Named("go"))
	if w, ok := errors.AsType[*Wanted](err); !ok || w.text != "L\x1f1\x1f1\x1fgo" {
		t.Errorf("%v", err)
	}
}

// Names are looked through for every signal, so that there is a limit to all of them together.
func TestNamesOfAllLists(t *testing.T) {
	lists := func(n int) Condition {
		var all []Condition
		for range n {
			all = append(all, Signals("a", 1, make([]string, maxNames)...))
		}
		return AllOf(all...)
	}
	if _, _, err := lists(4).compile(); err != nil {
		t.Error(err)
	}
	if _, _, err := lists(5).compile(); !errors.Is(err, flowfabric.ErrCondition) || !strings.Contains(err.Error(), "256") {
		t.Error(err)
	}
}

// 20-S18: a wrong secret of a key that is not the first would sign tokens that nobody accepts.
func TestSeedComparesEveryKey(t *testing.T) {
	ctx, e := store(t)
	if err := keyring(t, "k1:"+secretA).Seed(ctx, e); err != nil {
		t.Fatal(err)
	}
	if err := keyring(t, "k2:"+secretB+",k1:"+secretB).Seed(ctx, e); !errors.Is(err, flowfabric.ErrKeyConflict) {
		t.Error(err)
	}
	if err := keyring(t, "k2:"+secretB+",k1:"+secretA).Seed(ctx, e); err != nil {
		t.Error(err)
	}
}

// The token of a waitpoint that is closed is needed no more, so its key may be gone, whatever the wait that closed it was called;
// as long as it is open it may not, whatever was answered.
func TestPendingWithoutItsKey(t *testing.T) {
	kept := func(id uuid.UUID, key string) []byte {
		return []byte(id.String() + " gone " + strings.Repeat("0", 32) + " 9000000000000 " + key)
	}
	open, closed, forgotten := uuid.New(), uuid.New(), uuid.New()
	o := &opener{kept: []engine.Waitpoint{{ID: open, State: engine.WaitpointActive}, {ID: closed, State: engine.WaitpointClosed}}}
	claim := engine.Claim{Steps: map[string][]byte{
		engine.StepWaitpoint + "open": kept(open, "open"), engine.StepWaitpoint + "closed": kept(closed, "closed"),
		engine.StepWaitpoint + "forgotten": kept(forgotten, "forgotten"),
		engine.StepAwait + "open":          told("open", engine.CauseSignal, "true"), // a wait of that name, on another waitpoint
	}}
	x := newTask(t, PassConfig{Claim: claim, Opener: o})
	o.lost = flowfabric.ErrTransport
	if token, err := Pending(t.Context(), x, "closed", time.Hour); !errors.Is(err, flowfabric.ErrTransport) || !token.IsZero() {
		t.Errorf("nobody knows whether it is open: %v, %v", token, err)
	}
	o.lost, o.reads = nil, 0
	for _, key := range []string{"closed", "forgotten"} {
		if token, err := Pending(t.Context(), x, key, time.Hour); err != nil || !token.IsZero() {
			t.Errorf("%s: %v, %v", key, token, err)
		}
	}
	if o.reads != 1 {
		t.Errorf("the store was asked %d times, want once for all that is closed", o.reads)
	}
	if token, err := Pending(t.Context(), x, "open", time.Hour); !errors.Is(err, flowfabric.ErrNoTokenKeys) || !token.IsZero() {
		t.Errorf("open: %v, %v", token, err)
	}
	if _, err := Pending(t.Context(), newTask(t, PassConfig{Claim: claim}), "open", time.Hour); !errors.Is(err, flowfabric.ErrNoTokenKeys) {
		t.Errorf("without a store: %v", err)
	}
}
