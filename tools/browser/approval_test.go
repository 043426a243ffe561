package browser

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/approval"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var release = handler.Define[string, suspend.Answer]("release", flowfabric.Retries(0))

// question is what the page asks, with everything that must be escaped.
var question = suspend.Question{
	Title: "Release v2 <to> everybody?",
	Text:  "Build 1742 passed all 412 tests.\n\nAnna & Otto reviewed it on Monday. After you approve, it goes to 100 % of the machines within an hour.",
	Choices: []suspend.Choice{
		{Name: "approve", Label: "Approve & release"}, {Name: "reject", Label: "Reject"},
	},
}

// site is a worker that asks, and the web server where people answer.
type site struct {
	ctx    context.Context
	client *client.Client
	base   string
	posts  atomic.Int64
	tokens chan suspend.Token
}

func newSite(t *testing.T) *site {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	s := &site{ctx: ctx, tokens: make(chan suspend.Token, 1)}
	silent := slog.New(slog.DiscardHandler)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: silent}, handler.Bind(release,
		func(ctx context.Context, t *handler.Task, version string) (suspend.Answer, error) {
			token, err := t.Pending(ctx, "release", time.Hour)
			if err != nil {
				return suspend.Answer{}, err
			}
			if _, err := handler.Step(ctx, t, "mail",
				func(context.Context) (bool, error) { s.tokens <- token; return true, nil }); err != nil {
				return suspend.Answer{}, err
			}
			return handler.Await[suspend.Answer](ctx, t, "release")
		}))
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() { cancel(); running.Wait() })
	if s.client, err = client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour,
		URL: "embedded://", Logger: silent}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.client.Close)
	page := approval.New(approval.Config{Deliver: s.client, Logger: silent,
		Question: func(*http.Request, suspend.Token) suspend.Question { return question }})
	mux := http.NewServeMux()
	mux.Handle("/answers/", http.StripPrefix("/answers", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			s.posts.Add(1)
		}
		page.ServeHTTP(w, r)
	})))
	mux.HandleFunc("/favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	web := httptest.NewServer(mux)
	t.Cleanup(web.Close)
	s.base = web.URL + "/answers/release"
	return s
}

// ask submits an execution, waits until it is suspended, and returns it with the link that was mailed.
func (s *site) ask(t *testing.T) (*client.Execution[suspend.Answer], string) {
	t.Helper()
	x, err := client.Submit(s.ctx, s.client, release, "v2")
	must.No(t, err)
	var token suspend.Token
	select {
	case token = <-s.tokens:
	case <-s.ctx.Done():
		t.Fatal("no link was mailed")
	}
	for s.state(t, x) != flowfabric.Suspended {
		time.Sleep(5 * time.Millisecond)
	}
	return x, approval.Link(s.base, token)
}

func (s *site) state(t *testing.T, x *client.Execution[suspend.Answer]) flowfabric.PublicState {
	t.Helper()
	snapshot, err := x.Get(s.ctx)
	must.No(t, err)
	return snapshot.State.Public
}

func TestApprovalInABrowser(t *testing.T) {
	s := newSite(t)
	x, link := s.ask(t)
	b, other := openBrowser(t), openBrowser(t) // somebody else has the link, too
	for _, b := range []*tab{b, other} {
		b.do(chromedp.EmulateViewport(1100, 800), chromedp.Navigate(link),
			chromedp.WaitVisible(chromedp.CSS("button[value=reject]")))
	}

	b.want("document.title", question.Title)
	b.want("document.querySelector('h1').innerText", question.Title)
	b.want("document.documentElement.lang", "en")
	b.want("[...document.querySelectorAll('button[name=choice]')].map(b => b.innerText).join('|')",
		"Approve & release|Reject")
	b.want("document.querySelectorAll('.prose p').length", "2") // paragraphs are kept
	b.want("document.scripts.length", "0")
	// the policy lets the style sheet through
	b.want("getComputedStyle(document.querySelector('main')).maxWidth", "576px")
	b.want("[...document.querySelectorAll('textarea, input:not([type=hidden])')].every(f => f.labels.length == 1)",
		"true")
	b.shoot("question")

	// With the keyboard alone, in the order in which it reads.
	var order []string
	for range 4 {
		b.do(chromedp.KeyEvent(kb.Tab))
		order = append(order, b.text("document.activeElement.id || document.activeElement.value"))
	}
	if got := strings.Join(order, " "); got != "comment by approve reject" {
		t.Errorf("Tab goes to %s", got)
	}
	b.shoot("focus")
	b.do(chromedp.SendKeys(chromedp.CSS("#comment"), "Ship it"), chromedp.SendKeys(chromedp.CSS("#by"), "Zoë"),
		chromedp.SendKeys(chromedp.CSS("#by"), kb.Enter))
	b.want("document.querySelector('#by').value", "Zoë") // Enter has not sent anything
	if s.posts.Load() != 0 || s.state(t, x) != flowfabric.Suspended {
		t.Fatalf("looking and typing did %d posts", s.posts.Load())
	}

	b.do(chromedp.Click(chromedp.CSS("button[value=approve]")), chromedp.WaitVisible(chromedp.CSS("[role=status]")))
	b.want("document.querySelector('h1').innerText", "Thank you")
	b.want("document.querySelector('[role=status]').innerText",
		"Your answer “Approve & release” was recorded. You can close this page.")
	b.want("location.href.replace(/\\?$/, '')", s.base) // the token has left the address
	b.shoot("recorded")
	answer, err := x.Result(s.ctx)
	if err != nil || !reflect.DeepEqual(answer, suspend.Answer{Choice: "approve", Comment: "Ship it", By: "Zoë"}) {
		t.Errorf("the handler got %+v, %v", answer, err)
	}

	other.do(chromedp.Click(chromedp.CSS("button[value=reject]")), chromedp.WaitVisible(chromedp.CSS("[role=status]")))
	other.want("document.querySelector('h1').innerText", "Already answered")
	other.want("document.querySelector('[role=status]').innerText",
		"An answer was already recorded: “Approve & release”. It stands, and yours was not recorded.")
	other.shoot("already")
	if s.posts.Load() != 2 {
		t.Errorf("%d posts, want one for each click", s.posts.Load())
	}

	// The link shows the answer from now on.
	b.do(chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("dl")))
	b.want("document.title", question.Title)
	b.want("document.querySelector('[role=status]').innerText", "This was answered. The answer stands.")
	b.want(
		"[...document.querySelectorAll('dt')].map(e => e.innerText + '=' + e.nextElementSibling.innerText.replace(/^20.*UTC$/, 'then')).join('|')",
		"Answer=Approve & release|By=Zoë|At=then|Comment=Ship it")
	b.want("document.querySelectorAll('form, button, input, textarea').length", "0")
	b.want("Date.parse(document.querySelector('time').dateTime) > Date.now() - 600000", "true")
	b.shoot("answered")
	b.quiet()
	other.quiet()
}

// The application's login says who answers, and its language what the page says.
func TestApprovalWithALoginInAnotherLanguage(t *testing.T) {
	s := newSite(t)
	signed := approval.New(approval.Config{Deliver: s.client, Logger: slog.New(slog.DiscardHandler),
		By: func(*http.Request) (string, error) { return "زوي", nil },
		Texts: func(*http.Request) approval.Texts {
			return approval.Texts{Lang: "ar", Dir: "rtl", Approve: "موافق", Reject: "رفض", AnsweringAs: "{name}",
				ThankYou: "شكرا"}
		}})
	web := httptest.NewServer(signed)
	t.Cleanup(web.Close)
	x, link := s.ask(t)
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(1100, 800), chromedp.Navigate(web.URL+link[strings.Index(link, "?"):]),
		chromedp.WaitVisible(chromedp.CSS("button[value=reject]")))
	b.want("document.documentElement.lang + document.documentElement.dir", "arrtl")
	b.want("document.querySelectorAll('#by').length", "0")
	b.want("getComputedStyle(document.querySelector('.choices')).direction", "rtl")
	b.shoot("rtl")
	// a post of the page's own site passes
	b.do(chromedp.Click(chromedp.CSS("button[value=approve]")), chromedp.WaitVisible(chromedp.CSS("[role=status]")))
	b.want("document.querySelector('h1').innerText", "شكرا")
	if answer, err := x.Result(s.ctx); err != nil || answer.By != "زوي" {
		t.Errorf("the handler got %+v, %v", answer, err)
	}
	b.quiet()
}

func TestApprovalOnAPhoneInTheDark(t *testing.T) {
	s := newSite(t)
	_, link := s.ask(t)
	b := openBrowser(t)
	dark := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "dark"}}}
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateScale(2)),
		chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
			_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, dark)
			return err
		}),
		chromedp.Navigate(link), chromedp.WaitVisible(chromedp.CSS("button[value=reject]")))
	b.want("document.documentElement.scrollWidth <= 360", "true") // nothing to scroll sideways
	b.want("[...document.querySelectorAll('button[name=choice]')].every(b => b.getBoundingClientRect().height >= 44)",
		"true")
	b.want("getComputedStyle(document.querySelector('main')).backgroundColor", "rgb(25, 31, 34)")
	b.shoot("phone")
	b.quiet()
}

// A link that opens nothing says so, and where to get another.
func TestALinkThatDoesNotWork(t *testing.T) {
	s := newSite(t)
	_, link := s.ask(t)
	b := openBrowser(t)
	b.do(chromedp.EmulateViewport(1100, 800), chromedp.Navigate(link[:len(link)-1]),
		chromedp.WaitVisible(chromedp.CSS("[role=status]")))
	b.want("document.querySelector('h1').innerText", "This link does not work")
	b.shoot("refused")
}
