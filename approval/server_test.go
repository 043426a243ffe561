package approval_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

const keys = "k1:00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

var release = handler.Define[string, suspend.Answer]("release", flowfabric.Retries(0))

// desk is a worker that asks for a release, a client, and the web server where people answer.
type desk struct {
	*testing.T
	ctx    context.Context
	client *client.Client
	web    *httptest.Server
	links  chan suspend.Token // one for each execution
	goOn   chan struct{}      // the handler waits for it between handing out the token and asking; closed by default
}

func newDesk(t *testing.T, log slog.Handler) *desk {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	logger := slog.New(log)
	d := &desk{T: t, ctx: ctx, links: make(chan suspend.Token, 10), goOn: make(chan struct{})}
	server := testserver.Embedded(t)
	worker, err := runtime.New(runtime.Config{URL: server, TokenKeys: keys, Partitions: 2, Logger: logger},
		handler.Bind(release, func(ctx context.Context, t *handler.Task, version string) (suspend.Answer, error) {
			token, err := t.Pending(ctx, "release", time.Hour)
			if err != nil {
				return suspend.Answer{}, err
			}
			if _, err := handler.Step(ctx, t, "mail", func(context.Context) (bool, error) {
				d.links <- token
				return true, nil
			}); err != nil {
				return suspend.Answer{}, err
			}
			select {
			case <-d.goOn:
			case <-ctx.Done():
				return suspend.Answer{}, context.Cause(ctx)
			}
			return handler.Await[suspend.Answer](ctx, t, "release", suspend.Because(suspend.ReasonApproval))
		}))
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	d.client, err = client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: server,
		TokenKeys: keys, Partitions: 2, Logger: logger})
	must.No(t, err)
	t.Cleanup(d.client.Close)
	mux := http.NewServeMux()
	mux.Handle("/answers/",
		http.StripPrefix("/answers", approval.New(approval.Config{Deliver: d.client, Logger: logger})))
	d.web = httptest.NewServer(mux)
	t.Cleanup(d.web.Close)
	return d
}

// ask submits an execution and returns it with the token that it mails.
func (d *desk) ask() (*client.Execution[suspend.Answer], suspend.Token) {
	d.Helper()
	x, err := client.Submit(d.ctx, d.client, release, "v2")
	if err != nil {
		d.Fatal(err)
	}
	select {
	case token := <-d.links:
		return x, token
	case <-d.ctx.Done():
		d.Fatal("no link was mailed")
		return nil, suspend.Token{}
	}
}

// parked waits until the execution is suspended.
func (d *desk) parked(x *client.Execution[suspend.Answer]) {
	d.Helper()
	for {
		s, err := x.Get(d.ctx)
		if err != nil {
			d.Fatal(err)
		}
		if s.State.Public == flowfabric.Suspended {
			return
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (d *desk) get(link string) (int, string) { d.Helper(); return d.read(d.web.Client().Get(link)) }

func (d *desk) post(fields url.Values) (int, string) {
	d.Helper()
	return d.read(d.web.Client().PostForm(d.web.URL+"/answers/here", fields))
}

func (d *desk) read(r *http.Response, err error) (int, string) {
	d.Helper()
	if err != nil {
		d.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		d.Fatal(err)
	}
	return r.StatusCode, string(body)
}

func (d *desk) postJSON(fields map[string]any) (int, string) {
	d.Helper()
	body, err := json.Marshal(fields)
	if err != nil {
		d.Fatal(err)
	}
	return d.read(d.web.Client().Post(d.web.URL+"/answers/here", "application/json", bytes.NewReader(body)))
}

func TestAnApprovalFromLinkToResult(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	x, token := d.ask()
	d.parked(x)
	for range 3 { // whoever scans the mail
		if status, page := d.get(approval.Link(d.web.URL+"/answers/here", token)); status != 200 ||
			!strings.Contains(page, token.Reveal()) {
			t.Fatalf("%d %s", status, page)
		}
	}
	if s, err := x.Get(d.ctx); err != nil || s.State.Public != flowfabric.Suspended {
		t.Fatalf("looking has changed something: %+v, %v", s.State, err)
	}
	_, page := d.get(approval.Link(d.web.URL+"/answers/here", token))
	nonce := regexp.MustCompile(`name="nonce" value="(\w+)"`).FindStringSubmatch(page)[1]
	fields := url.Values{"token": {token.Reveal()}, "nonce": {nonce}, "choice": {"approve"}, "comment": {"ship it"},
		"by": {"Anna"}}
	status, first := d.post(fields)
	if status != 200 || !strings.Contains(first, "Your answer “Approve” was recorded.") {
		t.Fatalf("%d %s", status, first)
	}
	if status, again := d.post(fields); status != 200 || again != first {
		t.Errorf("a double click: %d %s", status, again)
	}
	answer, err := x.Result(d.ctx)
	if err != nil || !reflect.DeepEqual(answer, suspend.Answer{Choice: "approve", Comment: "ship it", By: "Anna"}) {
		t.Errorf("%+v, %v", answer, err)
	}
	fields.Set("choice", "reject") // after the end, too
	if status, late := d.post(fields); status != 200 || !strings.Contains(late,
		"An answer was already recorded: “Approve”. It stands") {
		t.Errorf("another decision: %d %s", status, late)
	}
	if status, late := d.postJSON(map[string]any{"token": token.Reveal(), "payload": 1}); status != 200 ||
		late != `{"status":"closed"}`+"\n" {
		t.Errorf("a signal that is late: %d %s", status, late) // S6
	}
	must.No(t, admin.New(d.client).Purge(d.ctx, x.ID(), 0))
	if status, body := d.postJSON(map[string]any{"token": token.Reveal(), "payload": 1}); status != 401 {
		t.Errorf("after the purge: %d %s", status, body)
	}
}

// An answer that is faster than the handler counts, and a second one does not stand beside it.
func TestAnAnswerBeforeTheHandlerWaits(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	x, token := d.ask()
	if status, page := d.post(url.Values{"token": {token.Reveal()}, "choice": {"reject"}}); status != 200 ||
		!strings.Contains(page, "“Reject” was recorded") {
		t.Fatalf("%d %s", status, page)
	}
	if status, page := d.post(url.Values{"token": {token.Reveal()}, "choice": {"approve"}}); status != 200 ||
		!strings.Contains(page, "already recorded: “Reject”") {
		t.Errorf("%d %s", status, page)
	}
	close(d.goOn)
	if answer, err := x.Result(d.ctx); err != nil || answer.Choice != "reject" {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Who sends at least once gets the same answer each time, also after the end.
func TestACallbackThatIsRepeated(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	x, token := d.ask()
	d.parked(x)
	call := map[string]any{"token": token.Reveal(), "name": "done", "payload": map[string]any{"by": "bank"},
		"idempotency_key": "evt-7"}
	var signal string
	for i := range 4 {
		if i == 2 {
			if answer, err := x.Result(d.ctx); err != nil || answer.By != "bank" {
				t.Fatalf("%+v, %v", answer, err)
			}
		}
		status, body := d.postJSON(call)
		var got struct{ Status, Signal, Effect string }
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
			t.Fatalf("%d %s, %v", status, body, err)
		}
		if signal == "" {
			signal = got.Signal
		}
		if want := map[bool]string{true: "delivered", false: "duplicate"}[i == 0]; got.Status != want ||
			got.Signal != signal || got.Effect != "resume_condition_satisfied" {
			t.Errorf("call %d: %s", i, body)
		}
	}
}

// A post that the handler could not read leaves the waitpoint open, and the answer that comes then is taken.
func TestAPostThatIsRefusedUsesNothingUp(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	x, token := d.ask()
	d.parked(x)
	for what, fields := range map[string]map[string]any{
		"no payload":        {"name": "approve"},
		"nothing":           {},
		"an unknown choice": {"name": "launch", "payload": suspend.Answer{Choice: "launch"}},
	} {
		fields["token"] = token.Reveal()
		if status, body := d.postJSON(fields); status != 400 {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	if s, err := d.client.Execution(x.ID()).Suspension(d.ctx); err != nil || s.Signals != 0 || !s.ClosedAt.IsZero() {
		t.Errorf("%+v, %v", s, err)
	}
	if status, body := d.postJSON(map[string]any{"token": token.Reveal(), "name": "approve",
		"payload": suspend.Answer{Choice: "approve", By: "anna"}}); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if answer, err := x.Result(d.ctx); err != nil ||
		!reflect.DeepEqual(answer, suspend.Answer{Choice: "approve", By: "anna"}) {
		t.Errorf("%+v, %v", answer, err)
	}
}

// Every token that differs in one bit is refused, by its form or by the store, and in the same words.
func TestTokensWithOneBitFlipped(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	x, token := d.ask()
	d.parked(x)
	text, asked := []byte(token.Reveal()), 0
	_, want := d.postJSON(map[string]any{"token": "junk"})
	for i := range text {
		for bit := range 8 {
			text[i] ^= 1 << bit
			flipped, err := suspend.ParseToken(string(text))
			if err == nil {
				asked++
				_, err = d.client.Signal(d.ctx, flipped, true)
				if asked%8 == 0 { // the handler is told the same as the client
					if status, body := d.postJSON(map[string]any{"token": flipped.Reveal(),
						"payload": 1}); status != 401 || body != want {
						t.Errorf("byte %d, bit %d: %d %s", i, bit, status, body)
					}
				}
			}
			if !errors.Is(err, flowfabric.ErrInvalidToken) {
				t.Errorf("byte %d, bit %d: %v", i, bit, err)
			}
			text[i] ^= 1 << bit
		}
	}
	if asked < 100 {
		t.Errorf("the store was asked about %d tokens only", asked)
	}
	if s, err := x.Get(d.ctx); err != nil || s.State.Public != flowfabric.Suspended {
		t.Errorf("%+v, %v", s.State, err)
	}
	if _, err := d.client.Signal(d.ctx, token, suspend.Answer{Choice: "approve"}); err != nil {
		t.Errorf("the right one: %v", err)
	}
}

// Who has no good token cannot find out what there is.
func TestNothingIsToldWithoutAToken(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	x, token := d.ask()
	y, other := d.ask()
	d.parked(x)
	d.parked(y)
	text := strings.Split(token.Reveal(), ".")
	foreign := strings.Split(other.Reveal(), ".")
	nobody := ids.UUID(mint.ID(token.Execution().Partition())).String()
	for what, parts := range map[string][]string{
		"unknown execution": {text[0], nobody, text[2], text[3]},
		"unknown waitpoint": {text[0], text[1], nobody, text[3]},
		"foreign token":     {text[0], text[1], text[2], foreign[3]},
		"foreign waitpoint": {text[0], text[1], foreign[2], foreign[3]}, // S1
		"foreign execution": {foreign[0], foreign[1], text[2], text[3]},
		"unknown partition": {"900", text[1], text[2], text[3]},
		"other kid":         {text[0], text[1], text[2], strings.Replace(text[3], "k1", "k2", 1)},
	} {
		_, want := d.postJSON(map[string]any{"token": "x"})
		if status, body := d.postJSON(map[string]any{"token": strings.Join(parts, "."), "payload": 1}); status != 401 ||
			body != want {
			t.Errorf("%s: %d %s", what, status, body)
		}
		_, want = d.post(url.Values{"token": {"x"}, "choice": {"approve"}})
		if status, body := d.post(url.Values{"token": {strings.Join(parts, ".")}, "choice": {"approve"}}); status !=
			401 || body != want {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	for _, x := range []*client.Execution[suspend.Answer]{x, y} { // #15
		if s, err := d.client.Execution(x.ID()).Suspension(d.ctx); err != nil || s.Signals != 0 ||
			!s.ClosedAt.IsZero() {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// A whole story, logged as loudly as possible, shows no token, digest or secret.
func TestNoLogHasASecret(t *testing.T) {
	var log safeBuffer
	d := newDesk(t, slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug, AddSource: true}))
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
	close(d.goOn)
	x, token := d.ask()
	d.parked(x)
	link := approval.Link(d.web.URL+"/answers/here", token)
	d.get(link)
	d.get(link + "0")
	wrong := []byte(token.Reveal())
	wrong[len(wrong)-1] ^= 1
	d.postJSON(map[string]any{"token": string(wrong), "payload": 1})
	d.postJSON(map[string]any{"token": token.Reveal(), "nonsense": 1})
	d.postJSON(map[string]any{"token": token.Reveal(), "name": "__x"})
	_, unknown := d.client.Signal(d.ctx, token, true, client.SignalName("__x"))
	_, missing := d.client.Signal(d.ctx, suspend.Token{}, true)
	slog.Error("the application", "token", token, "held", struct{ t suspend.Token }{token}, "errors",
		errors.Join(unknown, missing))
	waitpoints, err := d.client.Execution(x.ID()).Waitpoints(d.ctx)
	slog.Info("waitpoints", "list", waitpoints, "error", err)
	fresh, err := admin.New(d.client).ReissueToken(d.ctx, x.ID(), token.Waitpoint(), flowfabric.By("anna"))
	must.No(t, err)
	d.post(url.Values{"token": {token.Reveal()}, "choice": {"approve"}}) // dead now
	d.post(url.Values{"token": {fresh.Reveal()}, "choice": {"approve"}})
	d.post(url.Values{"token": {fresh.Reveal()}, "choice": {"reject"}})
	if _, err := x.Result(d.ctx); err != nil {
		t.Fatal(err)
	}
	history, err := admin.New(d.client).History(d.ctx, x.ID())
	slog.Info("history", "events", history, "error", err)
	listed, err := admin.New(d.client).TokenKeys(d.ctx)
	slog.Info("keys", "list", listed, "error", err)
	rotated, err := admin.New(d.client).RotateTokenKeys(d.ctx, admin.Rotation{Kid: "k1"})
	slog.Info("rotated", "list", rotated, "error", err, "client", d.client)
	d.client.Close()
	d.postJSON(map[string]any{"token": fresh.Reveal(), "payload": 1})

	text := strings.ToLower(log.String())
	if m := regexp.MustCompile(`[0-9a-f]{64}`).FindString(text); m != "" {
		t.Errorf("the log has %s", m)
	}
	for name, secret := range map[string]string{"secret": strings.TrimPrefix(keys, "k1:"), "digest": token.Digest(),
		"new digest": fresh.Digest(), "link": "?token="} {
		if strings.Contains(text, secret) {
			t.Errorf("the log has the %s", name)
		}
	}
	for _, want := range []string{"signal refused", "could not be delivered", "k1:<redacted:len=64>",
		"token reissued"} {
		if !strings.Contains(text, want) {
			t.Errorf("the log lacks %q, so this test has not seen what it must:\n%s", want, text)
		}
	}
}

// What people answer by link is in the audit trail: who, from where and what. What changes nothing is not.
func TestAnswersByLinkAreInTheTrail(t *testing.T) {
	d := newDesk(t, slog.DiscardHandler)
	close(d.goOn)
	trail := func(want ...string) {
		t.Helper()
		page, err := admin.New(d.client).TrailPage(d.ctx, admin.TrailQuery{}, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range page.Items {
			got = append(got, strings.Join([]string{c.Action, c.On, c.Name, c.By, c.From, c.Detail}, "|"))
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("the trail has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	entry := func(x *client.Execution[suspend.Answer], token suspend.Token, by, from, choice string) string {
		return strings.Join([]string{"answer|execution", x.ID().String(), by, from,
			token.Waitpoint().String() + ", " + choice}, "|")
	}
	named, first := d.ask()
	d.parked(named)
	if status, page := d.post(url.Values{"token": {first.Reveal()}, "choice": {"approve"},
		"by": {"anna"}}); status != 200 {
		t.Fatalf("%d %s", status, page)
	}
	want := []string{entry(named, first, "anna", "link 127.0.0.1", "approve")}
	trail(want...)
	d.post(url.Values{"token": {first.Reveal()}, "choice": {"reject"}, "by": {"olga"}}) // it is answered already
	trail(want...)

	program, second := d.ask()
	d.parked(program)
	if status, body := d.postJSON(map[string]any{"token": second.Reveal(), "name": "reject", "source": "ci",
		"payload": map[string]any{"choice": "reject"}}); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	want = append(want, entry(program, second, "ci", "link 127.0.0.1", "reject"))
	trail(want...)

	nobody, third := d.ask()
	d.parked(nobody)
	if _, err := d.client.Signal(d.ctx, third, suspend.Answer{Choice: "approve"}); err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, entry(nobody, third, "", "go "+host, "approve"))
	trail(want...)

	callback, fourth := d.ask() // which is no answer of a person
	d.parked(callback)
	if status, body := d.postJSON(map[string]any{"token": fourth.Reveal(), "payload": 1}); status != 200 {
		t.Fatalf("%d %s", status, body)
	}
	trail(want...)
}
