package admin_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

func rotate(b *booth, r admin.Rotation) {
	b.Helper()
	if _, err := admin.New(b.Client).RotateTokenKeys(b.Ctx, r); err != nil {
		b.Fatal(err)
	}
	for i := range uint16(2) {
		b.Ring.Use(i, r.Kid)
	}
}

func TestResumeOnAServer(t *testing.T) {
	b := newBooth(t).Seed()
	x, token := b.Park(0)
	s, err := b.Client.Execution(x.ID()).Suspension(b.Ctx)
	if err != nil || s.ID.IsZero() || s.Reason != "waiting_for_approval" || !s.ClosedAt.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := admin.New(b.Client).Resume(b.Ctx, x.ID(), admin.Resume{Suspension: mint.UUID()},
		flowfabric.By("anna")); !errors.Is(err, denied.SuspensionChanged) ||
		!strings.Contains(err.Error(), s.ID.String()) {
		t.Errorf("%v", err)
	}
	request := mint.UUID()
	for range 2 { // the second is the same request
		must.No(t, admin.New(b.Client).Resume(b.Ctx, x.ID(), admin.Resume{Suspension: s.ID, Request: request},
			flowfabric.By("anna"), flowfabric.Reason("seen it")))
	}
	if err := admin.New(b.Client).Resume(b.Ctx, x.ID(), admin.Resume{}, flowfabric.By("anna")); !errors.Is(err,
		denied.NotSuspended) ||
		!strings.HasSuffix(err.Error(), "only a suspended execution is resumed, it is waiting") {
		t.Errorf("%v", err)
	}
	if s, err = b.Client.Execution(x.ID()).Suspension(b.Ctx); err != nil || s.Cause != "operator" ||
		s.Result.By != "anna" ||
		s.Result.Reason != "seen it" || len(s.Result.Signals) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := b.Signal(token); !errors.Is(err, flowfabric.ErrWaitpointClosed) {
		t.Errorf("%v", err)
	}
}

func TestRotationWithinGrace(t *testing.T) {
	b := newBooth(t).Seed()
	_, one := b.Park(30 * time.Second)
	_, two := b.Park(0)
	rotate(b, admin.Rotation{Kid: "b", Grace: flowfabric.Millis(time.Minute), Force: true})
	if err := b.Signal(one); err != nil {
		t.Errorf("in its grace: %v", err)
	}
	b.Pass(time.Minute - time.Millisecond)
	if err := b.Signal(flip(t, two)); !errors.Is(err, flowfabric.ErrInvalidToken) {
		t.Errorf("flipped, in its grace: %v", err)
	}
	b.Pass(time.Millisecond)
	if err := b.Signal(two); !errors.Is(err, flowfabric.ErrTokenExpired) ||
		!strings.Contains(err.Error(), "admin.ReissueToken") {
		t.Errorf("past its grace: %v", err)
	}
	if err := b.Signal(flip(t, two)); !errors.Is(err, flowfabric.ErrInvalidToken) {
		t.Errorf("flipped, past its grace: %v", err)
	}
}

// current is the key that signs, the same in both partitions, and when the others end.
func current(b *booth) (kid string, ends map[string]time.Time) {
	b.Helper()
	list, err := admin.New(b.Client).TokenKeys(b.Ctx)
	if err != nil || len(list) != 2 || list[0].Current != list[1].Current {
		b.Fatalf("%+v, %v", list, err)
	}
	ends = map[string]time.Time{}
	for _, k := range list[0].Keys {
		if k.Current != (k.Kid == list[0].Current) || k.Current && !k.ExpiresAt.IsZero() {
			b.Errorf("%+v", k)
		}
		ends[k.Kid] = k.ExpiresAt
	}
	return list[0].Current, ends
}

// Without a grace of its own a key has the default one.
func TestRotationListsTheKeys(t *testing.T) {
	b := newBooth(t).Seed()
	rotate(b, admin.Rotation{Kid: "b", Grace: flowfabric.Millis(time.Hour), Force: true})
	rotate(b, admin.Rotation{Kid: "c", Force: true})
	if kid, ends := current(b); kid != "c" || len(ends) != 3 || !ends["a"].Equal(b.Now.Add(time.Hour)) ||
		!ends["b"].Equal(b.Now.Add(limits.DefaultKeyGrace)) {
		t.Errorf("%s, %v", kid, ends)
	}
}

// A rotation makes a first key known to a store that has none.
func TestRotationOfAStoreWithoutKeys(t *testing.T) {
	b := newBooth(t)
	rotate(b, admin.Rotation{Kid: "b"})
	if kid, _ := current(b); kid != "b" {
		t.Errorf("current %q", kid)
	}
}

func TestRotationToTheSameKey(t *testing.T) {
	b := newBooth(t).Seed()
	rotated, err := admin.New(b.Client).RotateTokenKeys(b.Ctx,
		admin.Rotation{Kid: "a", Grace: flowfabric.Millis(time.Hour)})
	if err != nil || slices.ContainsFunc(rotated, func(r suspend.KeyRotated) bool { return !r.Noop }) {
		t.Errorf("%+v, %v", rotated, err)
	}
	other, err := client.Connect(b.Ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: b.Server.URL(), TokenKeys: "a:" + strings.Repeat("00", 32), Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	defer other.Close()
	rotated, err = admin.New(other).RotateTokenKeys(b.Ctx,
		admin.Rotation{Kid: "a", Grace: flowfabric.Millis(time.Hour), Force: true})
	if !errors.Is(err, denied.KidConflict) || !errors.Is(rotated[0].Err, denied.KidConflict) ||
		!strings.HasPrefix(err.Error(), `rotate token keys to "a": 2 of 2 partitions: `) {
		t.Errorf("%+v, %v", rotated, err)
	}
}

// A rotation does not strand long waits without anybody noticing.
func TestRotationUnderALongWait(t *testing.T) {
	b := newBooth(t).Seed()
	x, _ := b.Park(48 * time.Hour)
	rotated, err := admin.New(b.Client).RotateTokenKeys(b.Ctx, admin.Rotation{Kid: "b", Grace: 0})
	if !errors.Is(err, denied.GraceTooShort) ||
		!strings.Contains(err.Error(),
			`1 of 2 partitions: grace_too_short: waitpoints open under kid "a": 1, the last one until 2027-01-17T08:00:00Z; rotate with a longer grace`) {
		t.Fatalf("%v", err)
	}
	for _, r := range rotated {
		if refused := r.Partition == x.ID().Partition(); refused != (r.Err != nil) {
			t.Errorf("%+v", r)
		}
		if r.Err == nil {
			b.Ring.Use(r.Partition, "b")
		}
	}
	endless, forever := b.Park(0)
	rotate(b, admin.Rotation{Kid: "d", Grace: flowfabric.Millis(time.Millisecond), Force: true})
	b.Pass(time.Millisecond)
	if err := b.Signal(forever); !errors.Is(err, flowfabric.ErrTokenExpired) {
		t.Fatalf("%v", err)
	}
	fresh, err := admin.New(b.Client).ReissueToken(b.Ctx, endless.ID(), forever.Waitpoint(), flowfabric.By("anna"))
	if err != nil || fresh == forever || fresh.Waitpoint() != forever.Waitpoint() {
		t.Fatalf("%v, %v", fresh, err)
	}
	if d, err := b.Client.Signal(b.Ctx, fresh, true); err != nil || d.Effect != waitwords.EffectSatisfied {
		t.Errorf("%+v, %v", d, err)
	}
	events, err := admin.New(b.Client).History(b.Ctx, endless.ID()) // S16
	if err != nil || !slices.ContainsFunc(events, func(e flowfabric.Event) bool {
		return strings.Contains(e.String(), "token reissued") && strings.Contains(e.String(), "anna")
	}) {
		t.Errorf("%v, %v", events, err)
	}
	if _, err := admin.New(b.Client).ReissueToken(b.Ctx, endless.ID(), forever.Waitpoint(),
		flowfabric.By("anna")); !errors.Is(err, denied.WaitpointNotOpen) {
		t.Errorf("a closed one: %v", err)
	}
}

// A key that another client rotated to is learned on the way, if it is configured here.
func TestReissueAfterSomebodyElsesRotation(t *testing.T) {
	b := newBooth(t).Seed()
	x, token := b.Park(0)
	rotate(b, admin.Rotation{Kid: "d", Grace: flowfabric.Millis(time.Millisecond), Force: true})
	b.Pass(time.Millisecond)
	for keys, want := range map[string]error{secret("a") + "," + secret("d"): nil, secret("a"): denied.KidNotCurrent,
		"": flowfabric.ErrNoTokenKeys} {
		t.Setenv(suspend.EnvTokenKeys, "")
		other, err := client.Connect(b.Ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
			URL: b.Server.URL(), TokenKeys: keys, Logger: slog.New(slog.DiscardHandler)})
		must.No(t, err)
		if _, err := admin.New(other).ReissueToken(b.Ctx, x.ID(), token.Waitpoint(),
			flowfabric.By("anna")); !errors.Is(err, want) {
			t.Errorf("%d bytes of keys: %v, want %v", len(keys), err, want)
		}
		other.Close()
	}
}
