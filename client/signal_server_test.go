package client_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

func TestSignalsOnAServer(t *testing.T) {
	b := newBooth(t).Seed()
	x, token := b.Park(0)
	for what, err := range map[string]error{
		"flipped": b.Signal(flip(t, token)),
		"reserved name": func() error {
			_, err := b.Client.Signal(b.Ctx, token, 1, client.SignalName("__operator_only__"))
			return err
		}(),
	} {
		if !errors.Is(err, flowfabric.ErrInvalidToken) && !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
	key := flowfabric.IdempotencyKey("evt-1")
	first, err := b.Client.Signal(b.Ctx, token, draft{Topic: "wet"}, client.SignalName("go"),
		client.SignalSource("person", "anna"), key)
	if err != nil || first.Effect != waitwords.EffectSatisfied || first.Duplicate || first.Open {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := b.Client.Signal(b.Ctx, token, draft{Topic: "dry"}, client.SignalName("stop"), key)
	if err != nil || !again.Duplicate || again.Signal != first.Signal || again.Effect != first.Effect {
		t.Errorf("%+v, %v", again, err)
	}
	if err := b.Signal(token); !errors.Is(err, flowfabric.ErrWaitpointClosed) ||
		!strings.Contains(err.Error(), "closed at 2027-01-15T08:00:00Z (resumed)") {
		t.Errorf("a late one: %v", err)
	}
	s, err := b.Client.Execution(x.ID()).Suspension(b.Ctx)
	if err != nil || s.Result == nil || len(s.Result.Signals) != 1 || s.Cause != "signal" ||
		s.CloseReason != "resumed" {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := s.Result.Signals[0]; got.Name != "go" || got.Source != "anna" ||
		string(got.Payload) != `{"Topic":"wet"}` {
		t.Errorf("%+v", got)
	}
	must.No(t, x.Cancel(b.Ctx))
	if err := b.Signal(token); !errors.Is(err, denied.NotSignalable) ||
		!strings.HasSuffix(err.Error(), "it is cancelled; nobody waits for a signal") {
		t.Errorf("after the end: %v", err)
	}
}

// Operators have names, and the second decision does not stand beside the first.
func TestApproveOnAServer(t *testing.T) {
	b := newBooth(t).Seed()
	x, _ := b.Park(0)
	if _, err := b.Client.Execution(x.ID()).Approve(b.Ctx, "relaese", true, flowfabric.By("otto")); !errors.Is(err,
		denied.NoWaitpoint) || !strings.Contains(err.Error(), `"relaese"`) {
		t.Errorf("%v", err)
	}
	key := flowfabric.IdempotencyKey("release-v2")
	first, err := b.Client.Execution(x.ID()).Approve(b.Ctx, "release", true, flowfabric.By("otto"),
		client.SignalName("approve"),
		key)
	if err != nil || first.Effect != waitwords.EffectSatisfied {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := b.Client.Execution(x.ID()).Approve(b.Ctx, "release", false, flowfabric.By("olga"),
		client.SignalName("reject"),
		key)
	if err != nil || !second.Duplicate || second.Signal != first.Signal || second.Effect != waitwords.EffectSatisfied {
		t.Errorf("%+v, %v", second, err)
	}
	s, err := b.Client.Execution(x.ID()).Suspension(b.Ctx)
	if err != nil || len(s.Result.Signals) != 1 || s.Result.Signals[0].SourceType != "operator" ||
		s.Result.Signals[0].Source != "otto" || s.Result.Signals[0].Name != "approve" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := b.Client.Execution(mint.ID(1)).Approve(b.Ctx, "release", true,
		flowfabric.By("otto")); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

// A listing shows which key, and a fingerprint from which nothing follows.
func TestWaitpointsShowNoToken(t *testing.T) {
	b := newBooth(t).Seed()
	x, token := b.Park(time.Hour)
	list, err := b.Client.Execution(x.ID()).Waitpoints(b.Ctx)
	if err != nil || len(list) != 1 || list[0].ID != token.Waitpoint() || list[0].Kid != "a" ||
		list[0].Key != "release" || !list[0].ExpiresAt.Equal(b.Now.Add(time.Hour)) {
		t.Fatalf("%+v, %v", list, err)
	}
	sum := sha256.Sum256([]byte(token.Digest()))
	if list[0].Fingerprint != hex.EncodeToString(sum[:8]) ||
		strings.Contains(token.Digest()+token.Reveal(), list[0].Fingerprint) {
		t.Errorf("fingerprint %s", list[0].Fingerprint)
	}
}

func TestAStoreWithoutKeys(t *testing.T) {
	b := newBooth(t)
	x := submit(b.Ctx, t, b.Client, "tides")
	_, token, err := b.Ring.Reissue(x.ID(), mint.UUID(), "release")
	must.No(t, err)
	if err := b.Signal(token); !errors.Is(err, flowfabric.ErrNoTokenKeys) ||
		!strings.Contains(err.Error(), "start a worker with Config.TokenKeys") {
		t.Errorf("%v", err)
	}
}
