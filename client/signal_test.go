package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/internal/waithook"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What the fake was asked about signals.
type (
	delivery struct {
		target string
		signal suspend.SentSignal
	}
	rekey struct {
		key   engine.TokenKey
		grace time.Duration
		force bool
	}
)

func (f *fakeStore) DeliverSignal(_ context.Context, _ flowfabric.ExecutionID, waitpoint uuid.UUID, digest string, s suspend.SentSignal) (suspend.Delivered, error) {
	return suspend.Delivered{Effect: waithook.EffectNone}, f.ask(delivery{waitpoint.String() + " " + digest, s})
}

func (f *fakeStore) ApproveWaitpoint(_ context.Context, _ flowfabric.ExecutionID, waitpoint string, s suspend.SentSignal) (suspend.Delivered, error) {
	return suspend.Delivered{Effect: waithook.EffectNone}, f.ask(delivery{waitpoint, s})
}

func (f *fakeStore) ResumeExecution(_ context.Context, _ flowfabric.ExecutionID, q engine.ResumeRequest) (bool, error) {
	return false, f.ask(q)
}

func (f *fakeStore) ReadSuspension(context.Context, flowfabric.ExecutionID) (suspend.Record, error) {
	at := func(s int) time.Time { return time.Unix(int64(s), 0) }
	return suspend.Record{Waitpoints: []suspend.Waitpoint{
		{Key: "old", State: suspend.WaitpointClosed, CreatedAt: at(1)}, {Key: "late", State: suspend.WaitpointActive, CreatedAt: at(4)},
		{Key: "gone", State: suspend.WaitpointExpired, CreatedAt: at(2)}, {ID: known, Key: "early", State: suspend.WaitpointPending, CreatedAt: at(3)},
	}}, f.ask("suspension")
}

func (f *fakeStore) ReissueToken(_ context.Context, _ flowfabric.ExecutionID, m engine.Minted, by string) (string, error) {
	f.ask(by + " " + m.Kid)
	if len(f.reissue) > 0 {
		err := f.reissue[0]
		f.reissue = f.reissue[1:]
		return "early", err
	}
	return "early", nil
}

func (f *fakeStore) RotateTokenKey(_ context.Context, k engine.TokenKey, grace time.Duration, force bool) []engine.KeyRotated {
	_ = f.ask(rekey{k, grace, force})
	return f.rotated
}

func (f *fakeStore) TokenKeys(context.Context) []engine.PartitionKeys {
	return []engine.PartitionKeys{{Partition: 0, Current: "k1"}, {Partition: 1, Err: f.ask("keys")}}
}

var (
	known   = uuid.MustParse("11111111-2222-4333-8444-555555555555")
	twoKeys = "k1:" + strings.Repeat("a1", 32) + ",k2:" + strings.Repeat("b2", 32)
)

// withKeys is a client of the fake with keys k1 and k2.
func (f *fakeStore) withKeys(t *testing.T) *Client {
	t.Helper()
	c := f.client(t)
	var err error
	if c.keyring, err = tokenkeys.Parse(twoKeys); err != nil {
		t.Fatal(err)
	}
	return c
}

// tokenIn is a token of a partition, of a waitpoint that the fake knows.
func tokenIn(t *testing.T, partition uint16) suspend.Token {
	t.Helper()
	k, err := tokenkeys.Parse(twoKeys)
	if err != nil {
		t.Fatal(err)
	}
	_, token, err := k.Reissue(flowfabric.NewExecutionID(partition), known, "early")
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestSignalsCarryWhatWasSaid(t *testing.T) {
	f := newFake()
	c, ctx, id := f.client(t), t.Context(), flowfabric.NewExecutionID(1)
	token := tokenIn(t, 1)
	target, now := token.Waitpoint().String()+" "+token.Digest(), time.Now()
	plain := func(encoding, payload string) suspend.SentSignal {
		return suspend.SentSignal{Name: "signal", SourceType: "client", Source: "client", Encoding: encoding, Payload: []byte(payload)}
	}
	chosen := plain("json", `{"choice":"go"}`)
	chosen.Name = "go" // as the page names it
	full := suspend.SentSignal{Name: "go", Category: "votes", SourceType: "person", Source: "anna", Correlation: "c-1", IdempotencyKey: "k", DedupTTL: time.Hour,
		CreatedAt: now, Encoding: "json", Payload: []byte("true")}
	options := []SignalOption{SignalName("go"), SignalCategory("votes"), SignalSource("person", "anna"), SignalCorrelation("c-1"), IdempotencyKey("k"),
		SignalRemembered(time.Hour), SignalSentAt(now)}
	operator := full
	operator.SourceType, operator.Source = suspend.SourceOperator, "otto"
	for what, x := range map[string]struct {
		payload any
		opts    []SignalOption
		want    any
		approve bool
	}{
		"an answer":    {suspend.Answer{Choice: "signal", By: "anna"}, nil, delivery{target, plain("json", `{"choice":"signal","by":"anna"}`)}, false},
		"its choice":   {suspend.Answer{Choice: "go"}, nil, delivery{target, chosen}, false},
		"nothing":      {nil, nil, delivery{target, plain("json", "null")}, false},
		"struct":       {draft{"tides"}, nil, delivery{target, plain("json", `{"Topic":"tides"}`)}, false},
		"raw JSON":     {json.RawMessage(` [1]`), nil, delivery{target, plain("json", " [1]")}, false},
		"bytes":        {[]byte{0, 255}, nil, delivery{target, plain("bytes", "\x00\xff")}, false},
		"text":         {"a", nil, delivery{target, plain("json", `"a"`)}, false},
		"everything":   {true, options, delivery{target, full}, false},
		"by operator":  {true, options, delivery{"release", operator}, true},
		"64 KiB":       {json.RawMessage(`"` + strings.Repeat("x", flowfabric.MaxSignal-2) + `"`), nil, delivery{target, plain("json", `"`+strings.Repeat("x", flowfabric.MaxSignal-2)+`"`)}, false},
		"key of 256":   {nil, []SignalOption{IdempotencyKey(strings.Repeat("k", 256))}, nil, false},
		"last one won": {nil, []SignalOption{SignalName("x"), SignalName("signal")}, delivery{target, plain("json", "null")}, false},
	} {
		f.asked = nil
		var err error
		if x.approve {
			_, err = c.Approve(ctx, id, "release", "otto", x.payload, x.opts...)
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
	c, ctx, id := f.withKeys(t), t.Context(), flowfabric.NewExecutionID(1)
	signal := func(payload any, opts ...SignalOption) error {
		_, err := c.Signal(ctx, tokenIn(t, 1), payload, opts...)
		return err
	}
	approve := func(waitpoint, by string, opts ...SignalOption) error {
		_, err := c.Approve(ctx, id, waitpoint, by, nil, opts...)
		return err
	}
	reissue := func(by string) error { _, err := c.ReissueToken(ctx, id, known, by); return err }
	zero := func() error { _, err := c.Signal(ctx, suspend.Token{}, nil); return err }()
	foreign := func() error { _, err := c.Signal(ctx, tokenIn(t, 4), nil); return err }()
	rotate := func(c *Client, kid string, grace time.Duration) error {
		_, err := c.RotateTokenKeys(ctx, kid, grace)
		return err
	}
	for what, x := range map[string]struct {
		err  error
		want error
		says string
	}{
		"no token":            {zero, flowfabric.ErrMissingToken, "signal: missing_token"},
		"another store":       {foreign, flowfabric.ErrInvalidToken, "invalid_token: the token opens no waitpoint of this store"},
		"no name":             {signal(nil, SignalName("")), flowfabric.ErrInvalidInput, `signal name "", want 1..128 bytes`},
		"reserved":            {signal(nil, SignalName("__x")), flowfabric.ErrInvalidInput, "do not begin with __"},
		"source type":         {signal(nil, SignalSource(strings.Repeat("x", 65), "")), flowfabric.ErrInvalidInput, "signal source type has 65 bytes, want at most 64"},
		"empty key":           {signal(nil, IdempotencyKey("")), flowfabric.ErrInvalidInput, "the idempotency key is empty, want 1..256 bytes"},
		"long key":            {signal(nil, IdempotencyKey(strings.Repeat("x", 257))), flowfabric.ErrInvalidInput, "idempotency key has 257 bytes"},
		"remembered too long": {signal(nil, SignalRemembered(8*24*time.Hour)), flowfabric.ErrInvalidInput, "want up to 168h0m0s"},
		"no JSON":             {signal(make(chan int)), flowfabric.ErrInvalidInput, "does not encode as JSON"},
		"raw but no JSON":     {signal(json.RawMessage("{")), flowfabric.ErrInvalidInput, "json.RawMessage that is not JSON"},
		"64 KiB and one":      {signal(make([]byte, flowfabric.MaxSignal+1)), flowfabric.ErrPayloadTooLarge, "a signal of 65537 bytes, want at most 65536"},
		"approve by nobody":   {approve("release", ""), flowfabric.ErrInvalidInput, "by has 0 bytes, want 1..256"}, // S33
		"approve by newline":  {approve("release", "a\nb"), flowfabric.ErrInvalidInput, "without control characters"},
		"approve by too long": {approve("release", strings.Repeat("x", 257)), flowfabric.ErrInvalidInput, "by has 257 bytes"},
		"approve what":        {approve("", "anna"), flowfabric.ErrInvalidInput, "the waitpoint is empty"},
		"approve name":        {approve("release", "anna", SignalName("__x")), flowfabric.ErrInvalidInput, "do not begin with __"},
		"resume by nobody":    {c.Resume(ctx, id, ""), flowfabric.ErrInvalidInput, "by has 0 bytes, want 1..64"},
		"resume by too long":  {c.Resume(ctx, id, strings.Repeat("x", 65)), flowfabric.ErrInvalidInput, "by has 65 bytes, want 1..64"},
		"resume delay":        {c.Resume(ctx, id, "anna", ResumeDelay(31*24*time.Hour)), flowfabric.ErrInvalidInput, "want 0..30 days"},
		"resume delay below":  {c.Resume(ctx, id, "anna", ResumeDelay(-1)), flowfabric.ErrInvalidInput, "want 0..30 days"},
		"reissue by nobody":   {reissue(""), flowfabric.ErrInvalidInput, "by has 0 bytes, want 1..64"},
		"rotate to unknown":   {rotate(c, "k3", 0), flowfabric.ErrConfig, `the key id that was asked for is not among this client's token keys (k1,k2); add it to Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS)`},
		"rotate without keys": {rotate(newFake().client(t), "k1", 0), flowfabric.ErrNoTokenKeys, "this client has none; set Config.TokenKeys or FLOWFABRIC_TOKEN_KEYS"},
		"grace -1":            {rotate(c, "k2", -1), flowfabric.ErrInvalidGrace, "the grace is -1ns, want 1 ms or more"},
		"grace 1.5 ms":        {rotate(c, "k2", 1500*time.Microsecond), flowfabric.ErrInvalidGrace, "the grace is 1.5ms"},
	} {
		if !errors.Is(x.err, x.want) || !strings.Contains(x.err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", what, x.err, x.says)
		}
	}
	if len(f.asked) != 0 {
		t.Errorf("the server was asked %v", f.asked)
	}
}

func TestResumeCarriesWhatWasAsked(t *testing.T) {
	f := newFake()
	c, ctx, id := f.client(t), t.Context(), flowfabric.NewExecutionID(1)
	request, suspension := uuid.New(), uuid.New()
	err := c.Resume(ctx, id, "anna", Reason("seen"), OnlySuspension(suspension), ResumeDelay(time.Minute), ResumeRequest(request))
	if want := (engine.ResumeRequest{Request: request, Suspension: suspension, By: "anna", Reason: "seen", Delay: time.Minute}); err != nil || f.asked[0] != any(want) {
		t.Errorf("asked %+v, %v", f.asked, err)
	}
	f.asked = nil
	for range 2 {
		if err := c.Resume(ctx, id, "anna"); err != nil {
			t.Fatal(err)
		}
	}
	if one, two := f.asked[0].(engine.ResumeRequest).Request, f.asked[1].(engine.ResumeRequest).Request; one == uuid.Nil || one == two {
		t.Errorf("requests %s, %s", one, two)
	}
}

// A refusal tells what to do, and matches what the server said.
func TestSignalRefusalsInWords(t *testing.T) {
	f := newFake()
	c, ctx, id := f.withKeys(t), t.Context(), flowfabric.NewExecutionID(1)
	token := tokenIn(t, 1)
	signal := func() error { _, err := c.Signal(ctx, token, nil); return err }
	resume := func() error { return c.Resume(ctx, id, "anna") }
	approve := func() error { _, err := c.Approve(ctx, id, "release", "anna", nil); return err }
	reissue := func() error { _, err := c.ReissueToken(ctx, id, known, "anna"); return err }
	for _, x := range []struct {
		call   func() error
		code   string
		detail []string
		says   string
	}{
		{signal, "invalid_token", nil, "signal " + token.Execution().String() + ": invalid_token: the token opens no waitpoint of this store: it is of another store, was replaced by client.ReissueToken, or is of an execution that was purged"},
		{signal, "token_expired", nil, "token_expired: the key of the token was rotated out; client.ReissueToken makes a new token for its waitpoint"},
		{signal, "hmac_secret_not_initialized", nil, "the store knows no token key; start a worker with Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS), or call client.RotateTokenKeys"},
		{signal, "waitpoint_closed", []string{"resumed", "1700000000000"}, "waitpoint_closed: it came too late, the waitpoint closed at 2023-11-14T22:13:20Z (resumed)"},
		{signal, "waitpoint_closed", nil, "waitpoint_closed: it came too late, the waitpoint closed"},
		{approve, "waitpoint_not_found", []string{"release"}, `approve ` + id.String() + `: waitpoint_not_found: the execution has no waitpoint "release"; client.Waitpoints lists those it has`},
		{signal, "target_not_signalable", []string{"T1"}, "target_not_signalable: it has ended, it is completed; nobody waits for a signal"},
		{signal, "signal_limit_exceeded", []string{"buffered signals: at most 1000"}, "(buffered signals: at most 1000)"},
		{resume, "execution_not_suspended", []string{string(flowfabric.CodeActive)}, "execution_not_suspended: only a suspended execution is resumed, it is active"},
		{resume, "suspension_changed", []string{"s-2"}, "it is suspended anew, as s-2; look at client.Suspension before you resume that one"},
		{resume, "execution_not_found", nil, "execution_not_found: "},
		{reissue, "execution_not_found", nil, "reissue token of " + id.String() + ": fake: execution_not_found"},
		{reissue, "result_purged", []string{"T1"}, "it was purged; it was completed"},
	} {
		f.refusal = flowfabric.NewError("fake", x.code, x.detail...)
		err := x.call()
		if flowfabric.CodeOf(err) != x.code || !strings.HasSuffix(err.Error(), x.says) && !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", x.code, err, x.says)
		}
		if strings.Contains(err.Error(), token.Digest()) {
			t.Errorf("%s shows the digest", x.code)
		}
	}
	f.refusal, f.reissue = nil, []error{flowfabric.NewError("fake", "waitpoint_not_open", "resumed")}
	if err := reissue(); !errors.Is(err, flowfabric.ErrWaitpointNotOpen) || !strings.HasSuffix(err.Error(), "the waitpoint is closed (resumed); no token opens it any more") {
		t.Error(err)
	}
	if _, err := c.ReissueToken(ctx, id, uuid.New(), "anna"); !errors.Is(err, flowfabric.ErrWaitpointNotFound) || !strings.Contains(err.Error(), "client.Waitpoints lists") {
		t.Error(err)
	}
}

func TestWaitpointsOpenOnesFirst(t *testing.T) { // 20 §3.12
	list, err := newFake().client(t).Waitpoints(t.Context(), flowfabric.NewExecutionID(1))
	var keys []string
	for _, w := range list {
		keys = append(keys, w.Key)
	}
	if got := strings.Join(keys, " "); err != nil || got != "early late old gone" {
		t.Errorf("%s, %v", got, err)
	}
}

// The partition says which key is in use, and one repeat with it is enough.
func TestReissueLearnsTheKeyInUse(t *testing.T) {
	stale := func(kid string) error { return flowfabric.NewError("fake", "kid_not_current", kid) }
	for what, x := range map[string]struct {
		replies []error
		want    error
		asked   string
	}{
		"first try":      {nil, nil, "[suspension anna k1]"},
		"second try":     {[]error{stale("k2")}, nil, "[suspension anna k1 anna k2]"},
		"changes again":  {[]error{stale("k2"), stale("k1")}, flowfabric.ErrKidNotCurrent, "[suspension anna k1 anna k2]"},
		"a key not ours": {[]error{stale("k9")}, flowfabric.ErrKidNotCurrent, "[suspension anna k1]"},
		"no connection":  {[]error{flowfabric.ErrTransport}, flowfabric.ErrTransport, "[suspension anna k1]"},
	} {
		f := newFake()
		f.reissue = x.replies
		token, err := f.withKeys(t).ReissueToken(t.Context(), flowfabric.NewExecutionID(1), known, "anna")
		if asked := fmt.Sprint(f.asked); !errors.Is(err, x.want) || asked != x.asked || (err == nil) != (token.Waitpoint() == known) {
			t.Errorf("%s: %v, %v, asked %s", what, token, err, asked)
		}
		if what == "a key not ours" && !strings.HasSuffix(err.Error(), `tokens are signed with kid "k9" now, which is not among this client's token keys; add it to Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS)`) {
			t.Error(err)
		}
	}
	if _, err := newFake().client(t).ReissueToken(t.Context(), flowfabric.NewExecutionID(1), known, "anna"); !errors.Is(err, flowfabric.ErrNoTokenKeys) {
		t.Errorf("without keys: %v", err)
	}
}

func TestRotationSumsUp(t *testing.T) { // 20 §2.4, S43
	short := func(kid, open, needed string) error {
		return flowfabric.NewError("fake", "grace_too_short", kid, open, needed)
	}
	for what, x := range map[string]struct {
		errs []error
		want []error
		says string
	}{
		"all good": {[]error{nil, nil, nil}, nil, ""},
		"too short": {[]error{short("k1", "2", "1700000000000"), nil, short("k1", "3", "1600000000000")}, []error{flowfabric.ErrGraceTooShort},
			`rotate token keys to "k2": 2 of 3 partitions: grace_too_short: waitpoints open under kid "k1": 5, the last one until 2023-11-14T22:13:20Z; rotate with a longer grace, or with client.Force() and then client.ReissueToken for each`},
		"no end": {[]error{short("k1", "1", "9999999999999"), short("k1", "3", "1600000000000"), nil}, []error{flowfabric.ErrGraceTooShort},
			`waitpoints open under kid "k1": 4, some of them have no end;`},
		"of all kinds": {[]error{flowfabric.ErrTransport, short("k1", "1", "1600000000000"), flowfabric.ErrTransport}, []error{flowfabric.ErrGraceTooShort, flowfabric.ErrTransport},
			`2 of 3 partitions: transport: the server could not be reached or did not answer in time (partitions 0, 2); 1 of 3 partitions: grace_too_short: `},
		"conflict": {[]error{nil, nil, flowfabric.NewError("fake", "rotation_conflict", "k2")}, []error{flowfabric.ErrKeyConflict}, "(k2) (partition 2)"},
	} {
		f := newFake()
		for i, err := range x.errs {
			f.rotated = append(f.rotated, engine.KeyRotated{Partition: uint16(i), Err: err})
		}
		c := f.withKeys(t)
		rotated, err := c.RotateTokenKeys(t.Context(), "k2", 0)
		if len(rotated) != 3 || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, %v", what, rotated, err)
		}
		for _, want := range x.want {
			if !errors.Is(err, want) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s: %v, want %q", what, err, x.says)
			}
		}
		key, _ := c.keyring.Key("k2")
		if f.asked[0] != any(rekey{key, 24 * time.Hour, false}) {
			t.Errorf("%s: asked %+v", what, f.asked)
		}
	}
	f := newFake()
	if _, err := f.withKeys(t).RotateTokenKeys(t.Context(), "k1", time.Millisecond, Force()); err != nil || !f.asked[0].(rekey).force || f.asked[0].(rekey).grace != time.Millisecond {
		t.Errorf("asked %+v, %v", f.asked, err)
	}
	f.refusal = flowfabric.ErrTransport
	if list, err := f.client(t).TokenKeys(t.Context()); len(list) != 2 || !errors.Is(err, flowfabric.ErrTransport) || !strings.Contains(err.Error(), "list token keys: 1 of 2 partitions: transport") {
		t.Errorf("%v, %v", list, err)
	}
}

// After a rotation this client signs with the new key where it is in use, and nowhere else.
func TestRotationIsLearned(t *testing.T) {
	f := newFake()
	f.rotated = []engine.KeyRotated{{Partition: 0}, {Partition: 1, Err: flowfabric.ErrTransport}}
	c := f.withKeys(t)
	_, _ = c.RotateTokenKeys(t.Context(), "k2", 0)
	for partition, kid := range []string{"k2", "k1"} {
		f.asked = nil
		if _, err := c.ReissueToken(t.Context(), flowfabric.NewExecutionID(uint16(partition)), known, "anna"); err != nil || f.asked[1] != any("anna "+kid) {
			t.Errorf("partition %d: %v, %v", partition, f.asked, err)
		}
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
	if !errors.Is(err, flowfabric.ErrConfig) || !errors.Is(err, flowfabric.ErrInvalidSecret) || strings.Contains(err.Error(), "a1a1") || !strings.Contains(err.Error(), suspend.EnvTokenKeys) {
		t.Errorf("%v", err)
	}
}
