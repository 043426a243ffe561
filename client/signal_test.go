package client

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What the fake was asked about signals.
type (
	delivery struct {
		target string
		signal suspend.SentSignal
	}
)

func (f *fakeStore) DeliverSignal(_ context.Context, _ flowfabric.ExecutionID, waitpoint flowfabric.UUID, digest string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	return suspend.Delivered{Effect: waitwords.EffectNone}, f.ask(delivery{waitpoint.String() + " " + digest, s})
}

func (f *fakeStore) ApproveWaitpoint(_ context.Context, _ flowfabric.ExecutionID, waitpoint string,
	s suspend.SentSignal) (suspend.Delivered, error) {
	return suspend.Delivered{Effect: waitwords.EffectNone}, f.ask(delivery{waitpoint, s})
}

func (f *fakeStore) ReadSuspension(context.Context, flowfabric.ExecutionID) (suspend.Record, error) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	return suspend.Record{Waitpoints: []suspend.Waitpoint{
		{Key: "old", State: "closed", CreatedAt: at(1)}, {Key: "late", State: "active", CreatedAt: at(4)},
		{Key: "gone", State: "expired", CreatedAt: at(2)},
		{ID: flowfabric.UUID(known), Key: "early", State: "pending", CreatedAt: at(3)},
	}}, f.ask("suspension")
}

func (f *fakeStore) ReadQuestion(_ context.Context, _ flowfabric.ExecutionID, waitpoint flowfabric.UUID,
	digest string) (suspend.Asked, error) {
	return suspend.Asked{}, f.ask(waitpoint.String() + " " + digest)
}

var (
	known   = uuid.MustParse("11111111-2222-4333-8444-555555555555")
	twoKeys = "k1:" + strings.Repeat("a1", 32) + ",k2:" + strings.Repeat("b2", 32)
)

// tokenIn is a token of a partition, of a waitpoint that the fake knows.
func tokenIn(t *testing.T, partition uint16) suspend.Token {
	t.Helper()
	k, err := tokenkeys.Parse(twoKeys)
	must.No(t, err)
	_, token, err := k.Reissue(mint.ID(partition), flowfabric.UUID(known), "early")
	must.No(t, err)
	return token
}

func TestSignalsCarryWhatWasSaid(t *testing.T) {
	f := newFake()
	c, ctx, id := f.client(t), t.Context(), mint.ID(1)
	token := tokenIn(t, 1)
	target, now := token.Waitpoint().String()+" "+token.Digest(), time.Now()
	plain := func(encoding, payload string) suspend.SentSignal {
		return suspend.SentSignal{Name: "signal", SourceType: "client", Encoding: encoding,
			Payload: []byte(payload)}
	}
	chosen := plain("json", `{"choice":"go"}`)
	chosen.Name = "go" // as the page names it
	full := suspend.SentSignal{Name: "go", Category: "votes", SourceType: "person", Source: "anna", Correlation: "c-1",
		IdempotencyKey: "k", DedupTTL: time.Hour, CreatedAt: now, Encoding: "json", Payload: []byte("true")}
	options := []SignalOption{SignalName("go"), SignalSource("person", "anna"), flowfabric.IdempotencyKey("k"),
		SignalDetails(suspend.SentSignal{Category: "votes", Correlation: "c-1", DedupTTL: time.Hour, CreatedAt: now})}
	operator := full
	operator.SourceType, operator.Source = "operator", "otto"
	for what, x := range map[string]struct {
		payload any
		opts    []SignalOption
		want    any
		approve bool
	}{
		"an answer": {suspend.Answer{Choice: "signal", By: "anna"}, nil,
			delivery{target, plain("json", `{"choice":"signal","by":"anna"}`)}, false},
		"its choice":  {suspend.Answer{Choice: "go"}, nil, delivery{target, chosen}, false},
		"nothing":     {nil, nil, delivery{target, plain("json", "null")}, false},
		"struct":      {draft{"tides"}, nil, delivery{target, plain("json", `{"Topic":"tides"}`)}, false},
		"raw JSON":    {json.RawMessage(` [1]`), nil, delivery{target, plain("json", " [1]")}, false},
		"bytes":       {[]byte{0, 255}, nil, delivery{target, plain("bytes", "\x00\xff")}, false},
		"text":        {"a", nil, delivery{target, plain("json", `"a"`)}, false},
		"everything":  {true, options, delivery{target, full}, false},
		"by operator": {true, options, delivery{"release", operator}, true},
		"64 KiB": {json.RawMessage(`"` + strings.Repeat("x", limits.MaxSignal-2) + `"`), nil,
			delivery{target, plain("json", `"`+strings.Repeat("x", limits.MaxSignal-2)+`"`)}, false},
		"key of 256": {nil, []SignalOption{flowfabric.IdempotencyKey(strings.Repeat("k", 256))}, nil, false},
		"last one won": {nil, []SignalOption{SignalName("x"), SignalName("signal")},
			delivery{target, plain("json", "null")}, false},
	} {
		f.asked = nil
		var err error
		if x.approve {
			opts := []ApproveOption{flowfabric.By("otto")}
			for _, o := range x.opts {
				opts = append(opts, o)
			}
			_, err = c.Execution(id).Approve(ctx, "release", x.payload, opts...)
		} else {
			_, err = c.Signal(ctx, token, x.payload, x.opts...)
		}
		if err != nil || len(f.asked) != 1 || x.want != nil && !reflect.DeepEqual(f.asked[0], x.want) {
			t.Errorf("%s: asked %.300v, %v; want %.300v", what, f.asked, err, x.want)
		}
	}
	c.cfg.Creator, f.asked = "billing", nil
	if _, err := c.Signal(ctx, token, nil); err != nil || f.asked[0].(delivery).signal.Source != "billing" {
		t.Errorf("%v, %v", f.asked, err)
	}
}

type draft struct{ Topic string }

func TestSignalsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	c, ctx, id := f.client(t), t.Context(), mint.ID(1)
	signal := func(payload any, opts ...SignalOption) error {
		_, err := c.Signal(ctx, tokenIn(t, 1), payload, opts...)
		return err
	}
	approve := func(waitpoint string, by string, opts ...ApproveOption) error {
		_, err := c.Execution(id).Approve(ctx, waitpoint, nil, append(opts, flowfabric.By(by))...)
		return err
	}
	send := func(key flowfabric.Key) error {
		_, err := c.Execution(id).Send(ctx, "user", nil, key)
		return err
	}
	zero := func() error { _, err := c.Signal(ctx, suspend.Token{}, nil); return err }()
	foreign := func() error { _, err := c.Signal(ctx, tokenIn(t, 4), nil); return err }()
	for what, x := range map[string]struct {
		err  error
		want error
		says string
	}{
		"no token": {zero, denied.NoToken, "signal: missing_token"},
		"another store": {foreign, flowfabric.ErrInvalidToken,
			"invalid_token: the token opens no waitpoint of this store"},
		"no name": {signal(nil, SignalName("")), flowfabric.ErrInvalidInput,
			`the name of the signal is empty, want 1..128 bytes`},
		"reserved": {signal(nil, SignalName("__x")), flowfabric.ErrInvalidInput, "do not begin with __"},
		"source type": {signal(nil, SignalSource(strings.Repeat("x", 65), "")), flowfabric.ErrInvalidInput,
			"signal source type has 65 bytes, want at most 64"},
		"empty key": {signal(nil, flowfabric.IdempotencyKey("")), flowfabric.ErrInvalidInput,
			"the key has 0 bytes, want 1..256"},
		"long key": {signal(nil, flowfabric.IdempotencyKey(strings.Repeat("x", 257))),
			flowfabric.ErrInvalidInput, "the key has 257 bytes"},
		"a key that is more than a text": {signal(nil, flowfabric.Key{Text: "k", WhileActive: true, Window: time.Hour}),
			flowfabric.ErrInvalidInput, "Key.WhileActive, Key.Window: not for the key of a signal"},
		"approve with a key that debounces": {approve("release", "anna", flowfabric.Key{Text: "k",
			Debounce: time.Second, DebounceMax: time.Hour}), flowfabric.ErrInvalidInput,
			"Key.Debounce, Key.DebounceMax: not for the key of a signal"},
		"two keys": {signal(nil, flowfabric.IdempotencyKey("a"), flowfabric.IdempotencyKey("b")),
			flowfabric.ErrInvalidInput, "two keys"},
		"send with a window": {send(flowfabric.Key{Text: "k", Window: time.Hour}), flowfabric.ErrInvalidInput,
			"Key.Window: not for the key of a message"},
		"remembered too long": {signal(nil, SignalDetails(suspend.SentSignal{DedupTTL: 8 * 24 * time.Hour})),
			flowfabric.ErrInvalidInput, "want up to 168h0m0s"},
		"another detail": {signal(nil, SignalDetails(suspend.SentSignal{Category: "votes", Name: "go"})),
			flowfabric.ErrInvalidInput, "SignalDetails takes"},
		"no JSON": {signal(make(chan int)), flowfabric.ErrInvalidInput, "does not encode as JSON"},
		"raw but no JSON": {signal(json.RawMessage("{")), flowfabric.ErrInvalidInput,
			"json.RawMessage that is not JSON"},
		"64 KiB and one": {signal(make([]byte, limits.MaxSignal+1)), flowfabric.ErrPayloadTooLarge,
			"a signal of 65537 bytes, want at most 65536"},
		"approve by nobody":  {approve("release", ""), flowfabric.ErrInvalidInput, "By has 0 bytes, want 1..256"},
		"approve by newline": {approve("release", "a\nb"), flowfabric.ErrInvalidInput, "without control characters"},
		"approve by too long": {approve("release", strings.Repeat("x", 257)), flowfabric.ErrInvalidInput,
			"By has 257 bytes"},
		"approve what": {approve("", "anna"), flowfabric.ErrInvalidInput, "the waitpoint is empty"},
		"approve name": {approve("release", "anna", SignalName("__x")), flowfabric.ErrInvalidInput,
			"do not begin with __"},
	} {
		if !errors.Is(x.err, x.want) || !strings.Contains(x.err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", what, x.err, x.says)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the server was asked %v", f.asked)
	}
}

// A refusal tells what to do, and matches what the server said.
func TestSignalRefusalsInWords(t *testing.T) {
	f := newFake()
	c, ctx, id := f.client(t), t.Context(), mint.ID(1)
	token := tokenIn(t, 1)
	signal := func() error { _, err := c.Signal(ctx, token, nil); return err }
	approve := func() error {
		_, err := c.Execution(id).Approve(ctx, "release", nil, flowfabric.By("anna"))
		return err
	}
	for _, x := range []struct {
		call   func() error
		code   string
		detail []string
		says   string
	}{
		{signal, "invalid_token", nil,
			"signal " + token.Execution().String() +
				": invalid_token: the token opens no waitpoint of this store: it is of another store, was replaced by admin.ReissueToken, or is of an execution that was purged"},
		{signal, "token_expired", nil,
			"token_expired: the key of the token was rotated out; admin.ReissueToken makes a new token for its waitpoint"},
		{signal, "hmac_secret_not_initialized", nil,
			"the store knows no token key; start a worker with Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS), or call admin.RotateTokenKeys"},
		{signal, "waitpoint_closed", []string{"resumed", "1700000000000"},
			"waitpoint_closed: it came too late, the waitpoint closed at 2023-11-14T22:13:20Z (resumed)"},
		{signal, "waitpoint_closed", nil, "waitpoint_closed: it came too late, the waitpoint closed"},
		{approve, "waitpoint_not_found", []string{"release"}, `approve ` + id.String() +
			`: waitpoint_not_found: the execution has no waitpoint "release"; client.Waitpoints lists those it has`},
		{signal, "target_not_signalable", []string{"T1"},
			"target_not_signalable: it has ended, it is completed; nobody waits for a signal"},
		{signal, "signal_limit_exceeded", []string{"buffered signals: at most 1000"},
			"(buffered signals: at most 1000)"},
	} {
		f.refusal = denied.New("fake", x.code, x.detail...)
		err := x.call()
		if flowfabric.CodeOf(err) != x.code || !strings.HasSuffix(err.Error(), x.says) && !strings.Contains(err.Error(),
			x.says) {
			t.Errorf("%s: %v, want %q", x.code, err, x.says)
		}
		if strings.Contains(err.Error(), token.Digest()) {
			t.Errorf("%s shows the digest", x.code)
		}
	}
}

func TestWaitpointsOpenOnesFirst(t *testing.T) {
	list, err := newFake().client(t).Execution(mint.ID(1)).Waitpoints(t.Context())
	var keys []string
	for _, w := range list {
		keys = append(keys, w.Key)
	}
	if got := strings.Join(keys, " "); err != nil || got != "early late old gone" {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTokenKeysOfTheConfiguration(t *testing.T) {
	t.Setenv(suspend.EnvTokenKeys, twoKeys)
	if cfg := (Config{}).withDefaults(); cfg.TokenKeys != twoKeys {
		t.Error("the environment is not looked at")
	}
	if cfg := (Config{TokenKeys: "k3:x"}).withDefaults(); cfg.TokenKeys != "k3:x" {
		t.Error("the environment wins")
	}
	_, err := Connect(t.Context(), Config{URL: "redis://127.0.0.1:1", TokenKeys: "k1:" + strings.Repeat("a1", 31)})
	if !errors.Is(err, flowfabric.ErrConfig) || !errors.Is(err, denied.Secret) ||
		strings.Contains(err.Error(), "a1a1") || !strings.Contains(err.Error(), suspend.EnvTokenKeys) {
		t.Errorf("%v", err)
	}
}
