package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/tokenkeys"
	"github.com/flowfabric/flowfabric-go/suspend"
)

type resumeOf struct {
	engine.ResumeRequest
	by, why string
}

func (f *fakeStore) ResumeExecution(ctx context.Context, _ flowfabric.ExecutionID,
	q engine.ResumeRequest) (bool, error) {
	by, why := asked(ctx)
	return false, f.ask(resumeOf{q, by, why})
}

func (f *fakeStore) ReissueToken(ctx context.Context, _ flowfabric.ExecutionID, m engine.Minted) (string, error) {
	by, _ := asked(ctx)
	f.ask(by + " " + m.Kid)
	if len(f.reissue) > 0 {
		err := f.reissue[0]
		f.reissue = f.reissue[1:]
		return "early", err
	}
	return "early", nil
}

func (f *fakeStore) RotateTokenKey(_ context.Context, k suspend.TokenKey, grace time.Duration,
	force bool) []suspend.KeyRotated {
	_ = f.ask(rekey{k, grace, force})
	return f.rotated
}

func (f *fakeStore) TokenKeys(context.Context) []suspend.PartitionKeys {
	return []suspend.PartitionKeys{{Partition: 0, Current: "k1"}, {Partition: 1, Err: f.ask("keys")}}
}

var twoKeys = "k1:" + strings.Repeat("a1", 32) + ",k2:" + strings.Repeat("b2", 32)

// rekey is what a rotation asked.
type rekey struct {
	key   suspend.TokenKey
	grace time.Duration
	force bool
}

// withKeys is one over the fake with keys k1 and k2.
func (f *fakeStore) withKeys(t *testing.T) *Admin {
	t.Helper()
	a := f.admin(t)
	var err error
	if a.conn.Keyring, err = tokenkeys.Parse(twoKeys); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestResumeCarriesWhatWasAsked(t *testing.T) {
	f := newFake()
	a, ctx, id := f.admin(t), t.Context(), mint.ID(1)
	request, suspension := mint.UUID(), mint.UUID()
	err := a.Resume(ctx, id, Resume{Suspension: suspension, Delay: flowfabric.Millis(time.Minute), Request: request},
		flowfabric.By("anna"), flowfabric.Reason("seen"))
	if want := (resumeOf{engine.ResumeRequest{Request: request, Suspension: suspension, Delay: time.Minute}, "anna",
		"seen"}); err != nil || f.asked[0] != any(want) {
		t.Errorf("asked %+v, %v", f.asked, err)
	}
	f.asked = nil
	for range 2 {
		must.No(t, a.Resume(ctx, id, Resume{}, flowfabric.By("anna")))
	}
	if one, two := f.asked[0].(resumeOf).Request,
		f.asked[1].(resumeOf).Request; one.IsZero() || one == two {
		t.Errorf("requests %s, %s", one, two)
	}
}

// The partition says which key is in use, which may change meanwhile.
func TestReissueLearnsTheKeyInUse(t *testing.T) {
	stale := func(kid string) error { return denied.New("fake", "kid_not_current", kid) }
	for what, x := range map[string]struct {
		replies []error
		want    error
		asked   string
	}{
		"first try":     {nil, nil, "[suspension anna k1]"},
		"second try":    {[]error{stale("k2")}, nil, "[suspension anna k1 anna k2]"},
		"changes again": {[]error{stale("k2"), stale("k1")}, nil, "[suspension anna k1 anna k2 anna k1]"},
		"for ever": {[]error{stale("k2"), stale("k1"), stale("k2"), stale("k1")}, denied.KidNotCurrent,
			"[suspension anna k1 anna k2 anna k1 anna k2]"},
		"a key not ours": {[]error{stale("k9")}, denied.KidNotCurrent, "[suspension anna k1]"},
		"no connection":  {[]error{flowfabric.ErrTransport}, flowfabric.ErrTransport, "[suspension anna k1]"},
	} {
		f := newFake()
		f.reissue = x.replies
		token, err := f.withKeys(t).ReissueToken(t.Context(), mint.ID(1), flowfabric.UUID(known),
			flowfabric.By("anna"))
		if asked := fmt.Sprint(f.asked); !errors.Is(err, x.want) || asked != x.asked ||
			(err == nil) != (token.Waitpoint() == flowfabric.UUID(known)) {
			t.Errorf("%s: %v, %v, asked %s", what, token, err, asked)
		}
		if what == "a key not ours" &&
			!strings.HasSuffix(err.Error(),
				`tokens are signed with kid "k9" now, which is not among this client's token keys; add it to Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS)`) {
			t.Error(err)
		}
	}
	if _, err := newFake().admin(t).ReissueToken(t.Context(), mint.ID(1), flowfabric.UUID(known),
		flowfabric.By("anna")); !errors.Is(err, flowfabric.ErrNoTokenKeys) {
		t.Errorf("without keys: %v", err)
	}
}

func TestRotationSumsUp(t *testing.T) {
	short := func(kid, open, needed string) error {
		return denied.New("fake", "grace_too_short", kid, open, needed)
	}
	for what, x := range map[string]struct {
		errs []error
		want []error
		says string
	}{
		"all good": {[]error{nil, nil, nil}, nil, ""},
		"too short": {[]error{short("k1", "2", "1700000000000"), nil, short("k1", "3", "1600000000000")},
			[]error{denied.GraceTooShort},
			`rotate token keys to "k2": 2 of 3 partitions: grace_too_short: waitpoints open under kid "k1": 5, the last one until 2023-11-14T22:13:20Z; rotate with a longer grace, or with Force and then admin.ReissueToken for each`},
		"no end": {[]error{short("k1", "1", "9999999999999"), short("k1", "3", "1600000000000"), nil},
			[]error{denied.GraceTooShort},
			`waitpoints open under kid "k1": 4, some of them have no end;`},
		"of all kinds": {[]error{flowfabric.ErrTransport, short("k1", "1", "1600000000000"), flowfabric.ErrTransport},
			[]error{denied.GraceTooShort, flowfabric.ErrTransport},
			`2 of 3 partitions: transport: the server could not be reached or did not answer in time (partitions 0, 2); 1 of 3 partitions: grace_too_short: `},
		"conflict": {[]error{nil, nil, denied.New("fake", "rotation_conflict", "k2")}, []error{denied.KidConflict},
			"(k2) (partition 2)"},
	} {
		f := newFake()
		for i, err := range x.errs {
			f.rotated = append(f.rotated, suspend.KeyRotated{Partition: uint16(i), Err: err})
		}
		a := f.withKeys(t)
		rotated, err := a.RotateTokenKeys(t.Context(), Rotation{Kid: "k2", Grace: 0})
		if len(rotated) != 3 || (err == nil) != (x.want == nil) {
			t.Errorf("%s: %v, %v", what, rotated, err)
		}
		for _, want := range x.want {
			if !errors.Is(err, want) || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%s: %v, want %q", what, err, x.says)
			}
		}
		key, _ := a.conn.Keyring.Key("k2")
		if f.asked[0] != any(rekey{key, 24 * time.Hour, false}) {
			t.Errorf("%s: asked %+v", what, f.asked)
		}
	}
	f := newFake()
	if _, err := f.withKeys(t).RotateTokenKeys(t.Context(), Rotation{Kid: "k1",
		Grace: flowfabric.Millis(time.Millisecond), Force: true}); err != nil ||
		!f.asked[0].(rekey).force || f.asked[0].(rekey).grace != time.Millisecond {
		t.Errorf("asked %+v, %v", f.asked, err)
	}
	f.refusal = flowfabric.ErrTransport
	if list, err := f.admin(t).TokenKeys(t.Context()); len(list) != 2 || !errors.Is(err, flowfabric.ErrTransport) ||
		!strings.Contains(err.Error(), "list token keys: 1 of 2 partitions: transport") {
		t.Errorf("%v, %v", list, err)
	}
}

// After a rotation this client signs with the new key where it is in use, and nowhere else.
func TestRotationIsLearned(t *testing.T) {
	f := newFake()
	f.rotated = []suspend.KeyRotated{{Partition: 0}, {Partition: 1, Err: flowfabric.ErrTransport}}
	a := f.withKeys(t)
	_, _ = a.RotateTokenKeys(t.Context(), Rotation{Kid: "k2", Grace: 0})
	for partition, kid := range []string{"k2", "k1"} {
		f.asked = nil
		if _, err := a.ReissueToken(t.Context(), mint.ID(uint16(partition)), flowfabric.UUID(known),
			flowfabric.By("anna")); err != nil || f.asked[1] != any("anna "+kid) {
			t.Errorf("partition %d: %v, %v", partition, f.asked, err)
		}
	}
}

func TestTokenAndSuspensionCallsRefusedBeforeAnyCall(t *testing.T) {
	f := newFake()
	a, ctx, id := f.withKeys(t), t.Context(), mint.ID(1)
	resume := func(how Resume, by string) error { return a.Resume(ctx, id, how, flowfabric.By(by)) }
	rotate := func(a *Admin, r Rotation) error { _, err := a.RotateTokenKeys(ctx, r); return err }
	_, reissued := a.ReissueToken(ctx, id, flowfabric.UUID(known))
	for what, x := range map[string]struct {
		err  error
		want error
		says string
	}{
		"resume by nobody": {resume(Resume{}, ""), flowfabric.ErrInvalidInput, "By has 0 bytes, want 1..64"},
		"resume by too long": {resume(Resume{}, strings.Repeat("x", 65)), flowfabric.ErrInvalidInput,
			"By has 65 bytes, want 1..64"},
		"resume delay": {resume(Resume{Delay: flowfabric.Millis(31 * 24 * time.Hour)}, "anna"),
			flowfabric.ErrInvalidInput, "want 0..30 days"},
		"resume delay below": {resume(Resume{Delay: -1}, "anna"), flowfabric.ErrInvalidInput,
			"want 0..30 days"},
		"reissue by nobody": {reissued, flowfabric.ErrInvalidInput, "By has 0 bytes, want 1..64"},
		"rotate to unknown": {rotate(a, Rotation{Kid: "k3"}), flowfabric.ErrConfig,
			`the key id that was asked for is not among this client's token keys (k1,k2); add it to Config.TokenKeys (FLOWFABRIC_TOKEN_KEYS)`},
		"rotate without keys": {rotate(newFake().admin(t), Rotation{Kid: "k1"}), flowfabric.ErrNoTokenKeys,
			"this client has none; set Config.TokenKeys or FLOWFABRIC_TOKEN_KEYS"},
		"grace -1": {rotate(a, Rotation{Kid: "k2", Grace: -1}), denied.Grace,
			"the grace is -1ns, want 1 ms or more"},
		"grace 1.5 ms": {rotate(a, Rotation{Kid: "k2", Grace: flowfabric.Millis(1500 * time.Microsecond)}),
			denied.Grace,
			"the grace is 1.5ms"},
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
func TestRefusalsOfSuspensionsInWords(t *testing.T) {
	f := newFake()
	a, ctx, id := f.withKeys(t), t.Context(), mint.ID(1)
	resume := func() error { return a.Resume(ctx, id, Resume{}, flowfabric.By("anna")) }
	reissue := func() error {
		_, err := a.ReissueToken(ctx, id, flowfabric.UUID(known), flowfabric.By("anna"))
		return err
	}
	for _, x := range []struct {
		call   func() error
		code   string
		detail []string
		says   string
	}{
		{resume, "execution_not_suspended", []string{string(codes.Active)},
			"execution_not_suspended: only a suspended execution is resumed, it is active"},
		{resume, "suspension_changed", []string{"s-2"},
			"it is suspended anew, as s-2; look at client.Suspension before you resume that one"},
		{resume, "execution_not_found", nil, "execution_not_found: "},
		{reissue, "execution_not_found", nil, "reissue token of " + id.String() + ": fake: execution_not_found"},
		{reissue, "result_purged", []string{"T1"}, "it was purged; it was completed"},
	} {
		f.refusal = denied.New("fake", x.code, x.detail...)
		if err := x.call(); flowfabric.CodeOf(err) != x.code || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v, want %q", x.code, err, x.says)
		}
	}
	f.refusal, f.reissue = nil, []error{denied.New("fake", "waitpoint_not_open", "resumed")}
	if err := reissue(); !errors.Is(err, denied.WaitpointNotOpen) ||
		!strings.HasSuffix(err.Error(), "the waitpoint is closed (resumed); no token opens it any more") {
		t.Error(err)
	}
	if _, err := a.ReissueToken(ctx, id, mint.UUID(), flowfabric.By("anna")); !errors.Is(err, denied.NoWaitpoint) ||
		!strings.Contains(err.Error(), "client.Waitpoints lists") {
		t.Errorf("a waitpoint that is not there: %v", err)
	}
}
