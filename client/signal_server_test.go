package client_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// secret is one of the keys a, b, c, d.
func secret(kid string) string {
	sum := sha256.Sum256([]byte(kid))
	return kid + ":" + hex.EncodeToString(sum[:])
}

// booth is a store with a clock that the test moves, a client with the keys a to d, and an engine for the worker's part.
type booth struct {
	*testing.T
	ctx    context.Context
	server *embedded.Server
	now    time.Time
	client *client.Client
	engine *engine.Engine
	ring   *tokenkeys.Keyring
}

func newBooth(t *testing.T) *booth {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	quiet := slog.New(slog.DiscardHandler)
	server, err := embedded.Start(ctx, embedded.Config{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	b := &booth{T: t, ctx: ctx, server: server, now: time.UnixMilli(1_800_000_000_000)}
	server.SetTime(b.now)
	keys := strings.Join([]string{secret("a"), secret("b"), secret("c"), secret("d")}, ",")
	if b.ring, err = tokenkeys.Parse(keys); err != nil {
		t.Fatal(err)
	}
	if b.client, err = client.Connect(ctx, client.Config{URL: server.URL(), Partitions: 2, TokenKeys: keys, Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.client.Close)
	if b.engine, err = engine.Open(ctx, engine.Config{URL: server.URL(), Logger: quiet}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.engine.Close)
	return b
}

// seed makes key a current.
func (b *booth) seed() *booth {
	b.Helper()
	if err := b.ring.Seed(b.ctx, b.engine); err != nil {
		b.Fatal(err)
	}
	return b
}

func (b *booth) pass(d time.Duration) {
	b.now = b.now.Add(d)
	b.server.SetTime(b.now)
}

// park suspends a new execution until somebody signals its waitpoint "release", for as long as within says (0: for ever).
func (b *booth) park(within time.Duration) (*client.Execution[verdict], suspend.Token) {
	b.Helper()
	x := submit(b.ctx, b.T, b.client, "tides")
	held := claim(b.ctx, b.T, b.engine, x.ID())
	m, token, err := b.ring.Reissue(x.ID(), uuid.New(), "release")
	if err != nil {
		b.Fatal(err)
	}
	if _, err := b.engine.SuspendExecution(b.ctx, held.Fence, engine.Suspension{ID: uuid.New(), Name: "release", Reason: "waiting_for_approval", Timeout: within,
		Behaviour: "fail", Condition: "L\x1f1\x1f1\x1f", Bindings: []engine.Binding{{Minted: m}}}); err != nil {
		b.Fatal(err)
	}
	return x, token
}

// signal answers with a token and says what came of it.
func (b *booth) signal(token suspend.Token) error {
	_, err := b.client.Signal(b.ctx, token, true)
	return err
}

func (b *booth) rotate(kid string, grace time.Duration, opts ...client.RotateOption) {
	b.Helper()
	if _, err := b.client.RotateTokenKeys(b.ctx, kid, grace, opts...); err != nil {
		b.Fatal(err)
	}
	for i := range uint16(2) {
		b.ring.Use(i, kid)
	}
}

// flip changes the last digit of a token.
func flip(t *testing.T, token suspend.Token) suspend.Token {
	t.Helper()
	text := []byte(token.Reveal())
	text[len(text)-1] ^= 1
	if text[len(text)-1] > 'f' || text[len(text)-1] == '`' {
		text[len(text)-1] = '0'
	}
	flipped, err := suspend.ParseToken(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return flipped
}

func TestSignalsOnAServer(t *testing.T) {
	b := newBooth(t).seed()
	x, token := b.park(0)
	for what, err := range map[string]error{
		"flipped": b.signal(flip(t, token)),
		"reserved name": func() error {
			_, err := b.client.Signal(b.ctx, token, 1, client.SignalName("__operator_only__"))
			return err
		}(),
	} {
		if !errors.Is(err, flowfabric.ErrInvalidToken) && !errors.Is(err, flowfabric.ErrInvalidInput) {
			t.Errorf("%s: %v", what, err)
		}
	}
	key := client.IdempotencyKey("evt-1")
	first, err := b.client.Signal(b.ctx, token, draft{"wet"}, client.SignalName("go"), client.SignalSource("person", "anna"), key)
	if err != nil || first.Effect != waithook.EffectSatisfied || first.Duplicate || first.Open {
		t.Fatalf("%+v, %v", first, err)
	}
	again, err := b.client.Signal(b.ctx, token, draft{"dry"}, client.SignalName("stop"), key)
	if err != nil || !again.Duplicate || again.Signal != first.Signal || again.Effect != first.Effect {
		t.Errorf("%+v, %v", again, err)
	}
	if err := b.signal(token); !errors.Is(err, flowfabric.ErrWaitpointClosed) || !strings.Contains(err.Error(), "closed at 2027-01-15T08:00:00Z (resumed)") {
		t.Errorf("a late one: %v", err)
	}
	s, err := b.client.Suspension(b.ctx, x.ID())
	if err != nil || s.Result == nil || len(s.Result.Signals) != 1 || s.Cause != suspend.CauseSignal || s.CloseReason != "resumed" {
		t.Fatalf("%+v, %v", s, err)
	}
	if got := s.Result.Signals[0]; got.Name != "go" || got.Source != "anna" || string(got.Payload) != `{"Topic":"wet"}` {
		t.Errorf("%+v", got)
	}
	if err := x.Cancel(b.ctx, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.signal(token); !errors.Is(err, flowfabric.ErrNotSignalable) || !strings.HasSuffix(err.Error(), "it is cancelled; nobody waits for a signal") {
		t.Errorf("after the end: %v", err)
	}
}

// 20-S33: operators have names, and the second decision does not stand beside the first.
func TestApproveOnAServer(t *testing.T) {
	b := newBooth(t).seed()
	x, _ := b.park(0)
	if _, err := b.client.Approve(b.ctx, x.ID(), "relaese", "otto", true); !errors.Is(err, flowfabric.ErrWaitpointNotFound) || !strings.Contains(err.Error(), `"relaese"`) {
		t.Errorf("%v", err)
	}
	key := client.IdempotencyKey("release-v2")
	first, err := b.client.Approve(b.ctx, x.ID(), "release", "otto", true, client.SignalName("approve"), key)
	if err != nil || first.Effect != waithook.EffectSatisfied {
		t.Fatalf("%+v, %v", first, err)
	}
	second, err := b.client.Approve(b.ctx, x.ID(), "release", "olga", false, client.SignalName("reject"), key)
	if err != nil || !second.Duplicate || second.Signal != first.Signal || second.Effect != waithook.EffectSatisfied {
		t.Errorf("%+v, %v", second, err)
	}
	s, err := b.client.Suspension(b.ctx, x.ID())
	if err != nil || len(s.Result.Signals) != 1 || s.Result.Signals[0].SourceType != "operator" || s.Result.Signals[0].Source != "otto" || s.Result.Signals[0].Name != "approve" {
		t.Errorf("%+v, %v", s, err)
	}
	if _, err := b.client.Approve(b.ctx, flowfabric.NewExecutionID(1), "release", "otto", true); !errors.Is(err, flowfabric.ErrNotFound) {
		t.Errorf("%v", err)
	}
}

func TestResumeOnAServer(t *testing.T) { // 20 §3.7
	b := newBooth(t).seed()
	x, token := b.park(0)
	s, err := b.client.Suspension(b.ctx, x.ID())
	if err != nil || s.ID == uuid.Nil || s.Reason != "waiting_for_approval" || !s.ClosedAt.IsZero() {
		t.Fatalf("%+v, %v", s, err)
	}
	if err := b.client.Resume(b.ctx, x.ID(), "anna", client.OnlySuspension(uuid.New())); !errors.Is(err, flowfabric.ErrSuspensionChanged) || !strings.Contains(err.Error(), s.ID.String()) {
		t.Errorf("%v", err)
	}
	request := client.ResumeRequest(uuid.New())
	for range 2 { // the second is the same request
		if err := b.client.Resume(b.ctx, x.ID(), "anna", client.OnlySuspension(s.ID), client.Reason("seen it"), request); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.client.Resume(b.ctx, x.ID(), "anna"); !errors.Is(err, flowfabric.ErrNotSuspended) || !strings.HasSuffix(err.Error(), "only a suspended execution is resumed, it is waiting") {
		t.Errorf("%v", err)
	}
	if s, err = b.client.Suspension(b.ctx, x.ID()); err != nil || s.Cause != suspend.CauseOperator || s.Result.By != "anna" || s.Result.Reason != "seen it" || len(s.Result.Signals) != 0 {
		t.Errorf("%+v, %v", s, err)
	}
	if err := b.signal(token); !errors.Is(err, flowfabric.ErrWaitpointClosed) { // 20 §11 #16
		t.Errorf("%v", err)
	}
}

// 20 §2.8, S19, #40: a listing shows which key, and a fingerprint from which nothing follows.
func TestWaitpointsShowNoToken(t *testing.T) {
	b := newBooth(t).seed()
	x, token := b.park(time.Hour)
	list, err := b.client.Waitpoints(b.ctx, x.ID())
	if err != nil || len(list) != 1 || list[0].ID != token.Waitpoint() || list[0].Kid != "a" || list[0].Key != "release" || !list[0].ExpiresAt.Equal(b.now.Add(time.Hour)) {
		t.Fatalf("%+v, %v", list, err)
	}
	sum := sha256.Sum256([]byte(token.Digest()))
	if list[0].Fingerprint != hex.EncodeToString(sum[:8]) || strings.Contains(token.Digest()+token.Reveal(), list[0].Fingerprint) {
		t.Errorf("fingerprint %s", list[0].Fingerprint)
	}
}

func TestRotationWithinGrace(t *testing.T) { // 20 §11 #10
	b := newBooth(t).seed()
	_, one := b.park(30 * time.Second)
	_, two := b.park(0)
	b.rotate("b", time.Minute, client.Force())
	if err := b.signal(one); err != nil {
		t.Errorf("in its grace: %v", err)
	}
	b.pass(time.Minute - time.Millisecond)
	if err := b.signal(flip(t, two)); !errors.Is(err, flowfabric.ErrInvalidToken) {
		t.Errorf("flipped, in its grace: %v", err)
	}
	b.pass(time.Millisecond)
	if err := b.signal(two); !errors.Is(err, flowfabric.ErrTokenExpired) || !strings.Contains(err.Error(), "client.ReissueToken") {
		t.Errorf("past its grace: %v", err)
	}
	if err := b.signal(flip(t, two)); !errors.Is(err, flowfabric.ErrInvalidToken) {
		t.Errorf("flipped, past its grace: %v", err)
	}
}

// current is the key that signs, the same in both partitions, and when the others end.
func (b *booth) current() (kid string, ends map[string]time.Time) {
	b.Helper()
	list, err := b.client.TokenKeys(b.ctx)
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

func TestRotationThereAndBack(t *testing.T) { // 20 §11 #11, S18
	b := newBooth(t).seed()
	_, one := b.park(0)
	_, two := b.park(0)
	b.rotate("b", time.Hour, client.Force())
	b.rotate("c", time.Hour, client.Force())
	if err := b.signal(one); err != nil {
		t.Errorf("the last but one key: %v", err)
	}
	b.pass(time.Minute)
	b.rotate("a", time.Hour, client.Force())
	if kid, ends := b.current(); kid != "a" || !ends["a"].IsZero() || len(ends) != 3 {
		t.Errorf("%s, %v", kid, ends)
	}
	b.rotate("d", time.Hour, client.Force())
	if kid, ends := b.current(); kid != "d" || !ends["a"].Equal(b.now.Add(time.Hour)) {
		t.Errorf("%s, %v", kid, ends)
	}
	b.pass(time.Hour - time.Millisecond) // past what a's first grace was
	if err := b.signal(two); err != nil {
		t.Errorf("in the second grace of its key: %v", err)
	}
	b.pass(time.Hour)
	b.rotate("a", 0, client.Force())
	if kid, ends := b.current(); kid != "a" || len(ends) != 2 || !ends["d"].Equal(b.now.Add(flowfabric.DefaultKeyGrace)) {
		t.Errorf("%s, %v", kid, ends)
	}
}

func TestRotationToTheSameKey(t *testing.T) { // 20 §11 #12
	b := newBooth(t).seed()
	rotated, err := b.client.RotateTokenKeys(b.ctx, "a", time.Hour)
	if err != nil || slices.ContainsFunc(rotated, func(r engine.KeyRotated) bool { return !r.Noop }) {
		t.Errorf("%+v, %v", rotated, err)
	}
	other, err := client.Connect(b.ctx, client.Config{URL: b.server.URL(), TokenKeys: "a:" + strings.Repeat("00", 32), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	rotated, err = other.RotateTokenKeys(b.ctx, "a", time.Hour, client.Force())
	if !errors.Is(err, flowfabric.ErrKeyConflict) || !errors.Is(rotated[0].Err, flowfabric.ErrKeyConflict) || !strings.HasPrefix(err.Error(), `rotate token keys to "a": 2 of 2 partitions: `) {
		t.Errorf("%+v, %v", rotated, err)
	}
}

func TestAStoreWithoutKeys(t *testing.T) { // 20 §11 #14
	b := newBooth(t)
	x := submit(b.ctx, t, b.client, "tides")
	_, token, err := b.ring.Reissue(x.ID(), uuid.New(), "release")
	if err != nil {
		t.Fatal(err)
	}
	if err := b.signal(token); !errors.Is(err, flowfabric.ErrNoTokenKeys) || !strings.Contains(err.Error(), "start a worker with Config.TokenKeys") {
		t.Errorf("%v", err)
	}
	b.rotate("b", 0) // also makes a first key known
	if kid, _ := b.current(); kid != "b" {
		t.Errorf("current %q", kid)
	}
}

// 20 §11 #45, S43: a rotation does not strand long waits without anybody noticing.
func TestRotationUnderALongWait(t *testing.T) {
	b := newBooth(t).seed()
	x, token := b.park(48 * time.Hour)
	rotated, err := b.client.RotateTokenKeys(b.ctx, "b", 0)
	if !errors.Is(err, flowfabric.ErrGraceTooShort) || !strings.Contains(err.Error(), `1 of 2 partitions: grace_too_short: waitpoints open under kid "a": 1, the last one until 2027-01-17T08:00:00Z; rotate with a longer grace`) {
		t.Fatalf("%v", err)
	}
	for _, r := range rotated {
		if refused := r.Partition == x.ID().Partition(); refused != (r.Err != nil) {
			t.Errorf("%+v", r)
		}
	}
	if _, err := b.client.RotateTokenKeys(b.ctx, "b", 48*time.Hour); err != nil {
		t.Errorf("a grace that is long enough: %v", err)
	}
	b.rotate("c", 0, client.Force())
	endless, forever := b.park(0)
	if _, err := b.client.RotateTokenKeys(b.ctx, "d", 365*24*time.Hour); !errors.Is(err, flowfabric.ErrGraceTooShort) || !strings.Contains(err.Error(), "some of them have no end") {
		t.Errorf("%v", err)
	}
	b.rotate("d", time.Millisecond, client.Force())
	b.pass(time.Millisecond)
	if err := b.signal(forever); !errors.Is(err, flowfabric.ErrTokenExpired) {
		t.Fatalf("%v", err)
	}
	fresh, err := b.client.ReissueToken(b.ctx, endless.ID(), forever.Waitpoint(), "anna")
	if err != nil || fresh == forever || fresh.Waitpoint() != forever.Waitpoint() {
		t.Fatalf("%v, %v", fresh, err)
	}
	if err := b.signal(forever); !errors.Is(err, flowfabric.ErrInvalidToken) {
		t.Errorf("the old one: %v", err)
	}
	if d, err := b.client.Signal(b.ctx, fresh, true); err != nil || d.Effect != waithook.EffectSatisfied {
		t.Errorf("%+v, %v", d, err)
	}
	if s, err := endless.Get(b.ctx); err != nil || s.State.Public != flowfabric.Waiting {
		t.Errorf("%+v, %v", s.State, err)
	}
	events, err := endless.History(b.ctx) // S16
	if err != nil || !slices.ContainsFunc(events, func(e engine.Event) bool {
		return strings.Contains(e.String(), "token reissued") && strings.Contains(e.String(), "anna")
	}) {
		t.Errorf("%v, %v", events, err)
	}
	if _, err := b.client.ReissueToken(b.ctx, endless.ID(), forever.Waitpoint(), "anna"); !errors.Is(err, flowfabric.ErrWaitpointNotOpen) {
		t.Errorf("a closed one: %v", err)
	}
	if err := b.signal(token); err != nil { // 48 h of grace, given when b came
		t.Errorf("%v", err)
	}
}

// A key that another client rotated to is learned on the way, if it is configured here.
func TestReissueAfterSomebodyElsesRotation(t *testing.T) {
	b := newBooth(t).seed()
	x, token := b.park(0)
	b.rotate("d", time.Millisecond, client.Force())
	b.pass(time.Millisecond)
	for keys, want := range map[string]error{secret("a") + "," + secret("d"): nil, secret("a"): flowfabric.ErrKidNotCurrent, "": flowfabric.ErrNoTokenKeys} {
		t.Setenv(suspend.EnvTokenKeys, "")
		other, err := client.Connect(b.ctx, client.Config{URL: b.server.URL(), TokenKeys: keys, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.ReissueToken(b.ctx, x.ID(), token.Waitpoint(), "anna"); !errors.Is(err, want) {
			t.Errorf("%d bytes of keys: %v, want %v", len(keys), err, want)
		}
		other.Close()
	}
}
