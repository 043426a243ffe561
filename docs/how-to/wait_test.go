package howto_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Verdict is what the editor decided.
type Verdict struct {
	Approved bool
	By       string
}

var Publish = handler.Define[Draft, Verdict]("publish")

type Publisher struct {
	Mail func(ctx context.Context, to, link string) error
}

func (p *Publisher) Handle(ctx context.Context, t *handler.Task, in Draft) (Verdict, error) {
	token, err := t.Pending(ctx, "editor", 48*time.Hour) // the same token each time the handler runs
	if err != nil {
		return Verdict{}, err
	}
	_, err = handler.Step(ctx, t, "mail", func(ctx context.Context) (bool, error) {
		return true, p.Mail(ctx, "editor@example.com", approval.Link("https://example.com/approve", token))
	})
	if err != nil {
		return Verdict{}, err
	}
	answer, err := handler.Await[suspend.Answer](ctx, t, "editor", suspend.Within(48*time.Hour))
	if err != nil {
		return Verdict{}, err // return it: it suspends the execution, or it says why there is no answer
	}
	return Verdict{Approved: answer.Choice == "approve", By: answer.By}, nil
}

// PublishLate reminds the editor after two days, with the same link, and gives up after another two.
func (p *Publisher) PublishLate(ctx context.Context, t *handler.Task, in Draft) (Verdict, error) {
	token, err := t.Pending(ctx, "editor", 48*time.Hour)
	if err != nil {
		return Verdict{}, err
	}
	ask := suspend.Question{Title: "Publish this article?"}
	for i, subject := range []string{"A new article", "Please decide"} {
		if _, err := handler.Step(ctx, t, fmt.Sprint("mail ", i), func(ctx context.Context) (bool, error) {
			return true, p.Mail(ctx, "editor@example.com",
				subject+": "+approval.Link("https://example.com/approve", token))
		}); err != nil {
			return Verdict{}, err
		}
		answer, err := t.Ask(ctx, fmt.Sprint("editor ", i), ask, suspend.At("editor"),
			suspend.Within(48*time.Hour), suspend.OnTimeout(suspend.Remind))
		if !errors.Is(err, flowfabric.ErrWaitTimeout) {
			return Verdict{Approved: answer.Choice == "approve", By: answer.By}, err
		}
	}
	return Verdict{}, t.CloseWaitpoint(ctx, "editor") // the link is dead
}

// approvals serves the page behind the links. Any process that reaches the store can serve it.
func approvals(c *client.Client) http.Handler {
	return approval.New(approval.Config{
		Deliver: c,
		Question: func(*http.Request, suspend.Token) suspend.Question {
			return suspend.Question{Title: "Publish this article?"}
		},
	})
}

// signedIn serves the page to people who are signed in, in their language.
func signedIn(c *client.Client, user func(*http.Request) (name string, mayApprove bool)) http.Handler {
	return approval.New(approval.Config{
		Deliver: c,
		By: func(r *http.Request) (string, error) {
			name, may := user(r)
			switch {
			case name == "":
				return "", approval.ErrSignIn // 401
			case !may:
				return "", errors.New("not an editor") // 403
			}
			return name, nil // Answer.By, whatever the form says
		},
		Texts: func(r *http.Request) approval.Texts {
			if strings.HasPrefix(r.Header.Get("Accept-Language"), "de") {
				return approval.Texts{Lang: "de", Title: "Ihre Antwort wird gebraucht", Approve: "Genehmigen",
					Reject: "Ablehnen"}
			}
			return approval.Texts{} // English
		},
	})
}

func TestSignedIn(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Release, ReleaseVersion))
	exec, err := client.Submit(ctx, c, Release, "v2")
	must(t, err)
	waiting, err := exec.AwaitSuspension(ctx)
	must(t, err)
	token, err := admin.New(c).ReissueToken(ctx, exec.ID(), waiting.Waitpoints[0].ID, flowfabric.By("test"))
	must(t, err)
	page := signedIn(c, func(r *http.Request) (string, bool) {
		return r.Header.Get("X-User"), r.Header.Get("X-User") == "anna"
	})
	visit := func(user, method, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, approval.Link("/answers", token), strings.NewReader(body))
		r.Header.Set("X-User", user)
		r.Header.Set("Accept-Language", "de-AT")
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		page.ServeHTTP(w, r)
		return w
	}
	if a, b := visit("", "GET", ""), visit("otto", "GET", ""); a.Code != http.StatusUnauthorized ||
		b.Code != http.StatusForbidden {
		t.Errorf("%d, %d", a.Code, b.Code)
	}
	if a := visit("anna", "GET", ""); a.Code != http.StatusOK ||
		!strings.Contains(a.Body.String(), `<html lang="de">`) {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if a := visit("anna", "POST", "choice=ship&by=otto"); a.Code != http.StatusOK {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	_, err = exec.Result(ctx)
	must(t, err)
	if a := visit("anna", "GET", ""); !strings.Contains(a.Body.String(), "<dd>anna</dd>") {
		t.Errorf("the answered link shows %s", a.Body)
	}
}

var Release = handler.Define[string, string]("release")

// ReleaseVersion asks before it ships.
func ReleaseVersion(ctx context.Context, t *handler.Task, version string) (string, error) {
	answer, err := t.Ask(ctx, "ship", suspend.Question{
		Title:    "Ship " + version + "?",
		Text:     "All tests passed.",
		Choices:  []suspend.Choice{{Name: "ship", Label: "Ship it"}, {Name: "hold", Label: "Not yet"}},
		Assignee: "release-team",
	}, suspend.Within(72*time.Hour))
	return answer.Choice, err
}

var Payouts = handler.Define[int, string]("payout")

// Payout asks two people at once, and pays what the first may have changed.
func Payout(ctx context.Context, t *handler.Task, cents int) (string, error) {
	answers, err := t.AskAll(ctx, "payout", []suspend.Question{
		{Key: "amount", Title: fmt.Sprintf("Pay %d cents?", cents), Assignee: "support", Within: 48 * time.Hour,
			Arguments: json.RawMessage(fmt.Sprintf(`{"cents":%d}`, cents)), // which the answer may change
			Schema:    json.RawMessage(`{"type":"object","properties":{"cents":{"type":"integer","maximum":1000}}}`)},
		{Key: "account", Title: "Is the account right?", Assignee: "billing"},
	})
	if err != nil {
		return "", err // return it: it suspends the execution until both are answered or over
	}
	amount, account := answers[0], answers[1]
	if amount.Cause == suspend.CauseTimeout || account.Choice != "approve" {
		return "not paid", nil
	}
	var paid struct{ Cents int }
	if amount.Arguments == nil {
		paid.Cents = cents
	} else if err := json.Unmarshal(amount.Arguments, &paid); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: %d", amount.Choice, paid.Cents), nil
}

// Both are asked at once, and an answer may change what it is about.
func TestAskAll(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Payouts, Payout))
	exec, err := client.Submit(ctx, c, Payouts, 700)
	must(t, err)
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	_, err = exec.Approve(ctx, "account", suspend.Answer{Choice: "approve"}, flowfabric.By("ben"))
	must(t, err)
	_, err = exec.Approve(ctx, "amount", suspend.Answer{Choice: "approve", Arguments: []byte(`{"cents":5000}`)},
		flowfabric.By("anna"))
	if !errors.Is(err, flowfabric.ErrInvalidInput) || !strings.Contains(err.Error(), "cents") {
		t.Error(err)
	}
	open, err := admin.New(c).Approvals(ctx, admin.ApprovalFilter{}, "", 0)
	must(t, err)
	if len(open.Items) != 1 || open.Items[0].Question.Title != "Pay 700 cents?" {
		t.Errorf("%+v", open)
	}
	_, err = exec.Approve(ctx, "amount", suspend.Answer{Choice: "approve", Arguments: []byte(`{"cents":500}`)},
		flowfabric.By("anna"))
	must(t, err)
	said, err := exec.Result(ctx)
	must(t, err)
	if said != "approve: 500" {
		t.Error(said)
	}
}

var Chat = handler.Define[string, int]("chat")

// Converse answers messages until one says bye, or none comes for an hour. It returns how many it answered.
func Converse(ctx context.Context, t *handler.Task, name string) (answers int, err error) {
	for ; ; answers++ {
		text, err := handler.Receive[string](ctx, t, "user", suspend.Within(time.Hour),
			suspend.OnTimeout(suspend.Resume))
		if errors.Is(err, flowfabric.ErrWaitTimeout) || text == "bye" {
			return answers, nil
		}
		if err != nil {
			return answers, err // return it: it suspends the execution until a message comes
		}
		if _, err := handler.Step(ctx, t, fmt.Sprintf("answer-%d", answers), func(ctx context.Context) (bool, error) {
			return true, t.Frame(ctx, "token", name+", you said "+text+". ")
		}); err != nil {
			return answers, err
		}
	}
}

func TestConverse(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Chat, Converse))
	exec, err := client.Submit(ctx, c, Chat, "Ann")
	must(t, err)
	_, err = exec.Send(ctx, "user", "hello", flowfabric.By("ann"), flowfabric.IdempotencyKey("message-1"))
	must(t, err)
	again, err := exec.Send(ctx, "user", "hello", flowfabric.By("ann"), flowfabric.IdempotencyKey("message-1"))
	must(t, err)
	if again.Number != 1 || !again.Duplicate {
		t.Errorf("%+v", again)
	}
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	for _, text := range []string{"make it shorter", "bye"} {
		_, err = exec.Send(ctx, "user", text)
		must(t, err)
	}
	n, err := exec.Result(ctx)
	must(t, err)
	said, err := exec.Transcript(ctx)
	must(t, err)
	if n != 2 || said.Text() != "Ann, you said hello. Ann, you said make it shorter. " {
		t.Errorf("%d answers: %q", n, said.Text())
	}
}

func TestAsk(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Release, ReleaseVersion))
	exec, err := client.Submit(ctx, c, Release, "v2")
	must(t, err)
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	open, err := admin.New(c).Approvals(ctx, admin.ApprovalFilter{Assignee: "release-team"}, "", 0)
	must(t, err)
	if len(open.Items) != 1 || open.Items[0].Question.Title != "Ship v2?" {
		t.Fatalf("%+v", open)
	}
	_, err = exec.Approve(ctx, "ship", suspend.Answer{Choice: "hold"}, flowfabric.By("anna"))
	must(t, err)
	choice, err := exec.Result(ctx)
	must(t, err)
	if choice != "hold" {
		t.Error(choice)
	}
}

func TestWait(t *testing.T) {
	links := make(chan string, 2)
	p := &Publisher{Mail: func(_ context.Context, _, link string) error { links <- link; return nil }}
	ctx, c := start(t, runtime.Config{}, handler.Bind(Publish, p.Handle))
	exec, err := client.Submit(ctx, c, Publish, Draft{"tides"})
	must(t, err)
	link, err := url.Parse(<-links)
	must(t, err)

	// The editor opens the link and approves.
	page := httptest.NewServer(approvals(c))
	defer page.Close()
	answer, err := http.PostForm(page.URL+"?"+link.RawQuery, url.Values{"choice": {"approve"}, "by": {"anna"}})
	must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Error(answer.Status)
	}

	verdict, err := exec.Result(ctx)
	must(t, err)
	if verdict != (Verdict{true, "anna"}) {
		t.Errorf("%+v", verdict)
	}
}

// The link of the first mail still works after the second, and is dead when nobody has answered for four days.
func TestReminders(t *testing.T) {
	for answered, want := range map[bool]Verdict{true: {true, "anna"}, false: {}} {
		var links []string
		p := &Publisher{Mail: func(ctx context.Context, _, link string) error {
			_, link, _ = strings.Cut(link, ": ")
			if links = append(links, link); len(links) == 2 && answered {
				fftest.Tell(ctx, fftest.Approve("editor", suspend.Answer{Choice: "approve"}, flowfabric.By("anna")))
			}
			return nil
		}}
		r := fftest.Run(t, Publish, p.PublishLate, Draft{"tides"})
		if r.Err != nil || r.Result != want || len(links) != 2 || links[0] != links[1] || r.Elapsed < 48*time.Hour {
			t.Errorf("%+v, %v after %v: %q", r.Result, r.Err, r.Elapsed, links)
		}
	}
}

// Poll is what one link of an endless loop is given.
type Poll struct{ Cursor, Seen int }

var Watch = handler.Define[Poll, int]("watch")

// WatchFeed reads one page after the other, for ever. After 500 steps it goes on with another input.
func WatchFeed(ctx context.Context, t *handler.Task, in Poll) (int, error) {
	for page := range 500 {
		n, err := handler.Step(ctx, t, fmt.Sprint("page ", page), func(ctx context.Context) (int, error) {
			return feed(ctx, in.Cursor)
		})
		if err != nil || n == 0 {
			return in.Seen, err
		}
		in.Cursor, in.Seen = in.Cursor+1, in.Seen+n
	}
	return 0, handler.Continue(in)
}

func TestContinue(t *testing.T) {
	r := fftest.Run(t, Watch, WatchFeed, Poll{})
	if r.Err != nil || r.Result != 3*1100 || len(r.Steps) != 101 {
		t.Errorf("%d, %v, %d steps", r.Result, r.Err, len(r.Steps))
	}
}

// feed has 1,100 pages of three.
func feed(_ context.Context, cursor int) (int, error) {
	if cursor >= 1100 {
		return 0, nil
	}
	return 3, nil
}

var Relay = handler.Define[int, int]("relay")

// Whoever has the id follows an execution that goes on with other inputs: its stream, its result, and a cancellation.
func TestFollowsLinks(t *testing.T) {
	ctx, c := start(t, runtime.Config{},
		handler.Bind(Relay, func(ctx context.Context, t *handler.Task, n int) (int, error) {
			if err := t.Frame(ctx, "token", fmt.Sprint(n)); err != nil {
				return 0, err
			}
			switch {
			case n == 7:
				_, err := handler.Await[string](ctx, t, "never")
				return 0, err
			case n < 3 || n > 4:
				return 0, handler.Continue(n + 1)
			}
			return n, nil
		}))
	exec, err := client.Submit(ctx, c, Relay, 1)
	must(t, err)
	n, err := exec.Result(ctx)
	must(t, err)
	s, err := exec.Get(ctx)
	must(t, err)
	if n != 3 || s.Continues != 2 || s.Attempts != 3 {
		t.Errorf("%d after %d links, %d attempts", n, s.Continues, s.Attempts)
	}
	var told []string
	for event, err := range c.Execution(exec.ID()).Tail(ctx) {
		must(t, err)
		switch event.Kind {
		case stream.TailFrame:
			told = append(told, string(event.Frame.Payload))
		case stream.TailAttemptEnd:
			told = append(told, event.Reason)
		}
	}
	if got := strings.Join(told, " "); got != "2 continued 3 attempt_success" { // what is older has gone
		t.Errorf("told %q", got)
	}
	exec, err = client.Submit(ctx, c, Relay, 5)
	must(t, err)
	_, err = exec.AwaitSuspension(ctx)
	must(t, err)
	must(t, exec.Cancel(ctx, flowfabric.Reason("enough")))
	if _, err := exec.Result(ctx); !errors.Is(err, flowfabric.ErrCancelled) {
		t.Errorf("the result of one that was cancelled: %v", err)
	}
}
