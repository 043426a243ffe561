// Package scene fills a store with the work of an invented publisher, so that every page of the dashboard has
// something to show: articles that are written by a model, releases that people approve, invoices that fail, flows,
// schedules, gates.
package scene

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/schedule"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Keys are the token keys of the scene.
const Keys = "k1:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

// Draft is what an article is written about.
type Draft struct {
	Topic string `json:"topic"`
	Words int    `json:"words"`
}

// Article is what was written.
type Article struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

// Invoice is to be sent.
type Invoice struct {
	Customer string `json:"customer"`
	Cents    int    `json:"cents"`
}

// The kinds of work.
var (
	Write   = handler.Define[Draft, Article]("write-article", handler.Retry(3, 200*time.Millisecond, time.Second))
	Release = handler.Define[string, suspend.Answer]("release", flowfabric.Retries(0))
	Send    = handler.Define[Invoice, string]("send-invoice", handler.Retry(2, 100*time.Millisecond, time.Second))
	Resize  = handler.Define[string, string]("resize-image")
	Fetch   = handler.Define[string, string]("fetch-sources")
	Check   = handler.Define[string, string]("check-facts")
	Publish = handler.Define[string, string]("publish")
	Report  = handler.Define[string, string]("nightly-report")
	Slow    = handler.Define[int, string]("narrate", flowfabric.Retries(0)) // so many words, one every 40 ms
	// answers messages to the mailbox user until one says bye
	Chat = handler.Define[string, int]("chat", flowfabric.Retries(0))
	// counts down to 0, one execution that continues with what is left
	Tally  = handler.Define[int, int]("tally")
	Family = handler.Define[string, string]("family")           // waits for two children, which resize
	Never  = handler.Define[string, string]("transcribe-audio") // no worker serves it
)

// Scene is a store with work, and a worker.
type Scene struct {
	Client *client.Client
	Admin  *admin.Admin

	Written, Suspended, Failed, Narrated, Callback flowfabric.ExecutionID // one of each
	Flow, BrokenFlow                               flowfabric.FlowID

	stop    context.CancelFunc
	working conc.WaitGroup
}

const prose = "The tide rises and falls twice a day because the Moon pulls at the water of the Earth. Where the sea is shallow and the coast is narrow, the difference between high and low water is many metres. Sailors wrote tables of it long before anybody could say why. "

func write(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	if _, err := handler.Step(ctx, t, "outline", func(ctx context.Context) (string, error) {
		return "why; where; who noticed", pause(ctx, 30*time.Millisecond)
	}); err != nil {
		return Article{}, err
	}
	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
		var b strings.Builder
		for i, word := range strings.SplitAfter(strings.Repeat(prose, 2), " ") {
			if i >= in.Words {
				break
			}
			b.WriteString(word)
			if err := t.Frame(ctx, "token", word); err != nil {
				return "", err
			}
			if err := pause(ctx, 4*time.Millisecond); err != nil {
				return "", err
			}
		}
		return b.String(), nil
	})
	if err != nil {
		return Article{}, err
	}
	if _, err := handler.Step(ctx, t, "review", func(ctx context.Context) (bool, error) {
		if strings.HasPrefix(in.Topic, "moon") && t.Attempt() == 1 {
			return false, errors.New("the model is overloaded (529)")
		}
		return true, pause(ctx, 20*time.Millisecond)
	}); err != nil {
		return Article{}, err
	}
	return Article{"On " + in.Topic, text}, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func release(ctx context.Context, t *handler.Task, version string) (suspend.Answer, error) {
	if _, err := handler.Step(ctx, t, "build", func(ctx context.Context) (string, error) {
		return version + "-rc1", pause(ctx, 40*time.Millisecond)
	}); err != nil {
		return suspend.Answer{}, err
	}
	answer, err := t.Ask(ctx, "approval",
		suspend.Question{Title: "Release " + version + " to everybody?", Assignee: "release-team",
			Text:    "All 412 tests passed.\nAnna and Otto reviewed it on Monday. After you approve, it goes to every machine within an hour.",
			Choices: []suspend.Choice{{Name: "approve", Label: "Approve"}, {Name: "reject", Label: "Send it back"}}},
		suspend.Within(72*time.Hour))
	if err != nil {
		return answer, err
	}
	_, err = handler.Step(ctx, t, "roll out", func(ctx context.Context) (string, error) {
		return answer.Choice, pause(ctx, 30*time.Millisecond)
	})
	return answer, err
}

func tally(ctx context.Context, t *handler.Task, left int) (int, error) {
	if err := t.Frame(ctx, "line", fmt.Sprintf("%d left\n", left)); err != nil || left == 0 {
		return 0, err
	}
	return 0, handler.Continue(left - 1)
}

func family(ctx context.Context, t *handler.Task, name string) (string, error) {
	set := flow.Children("pictures")
	for _, size := range []string{"small", "large"} {
		flow.Child(set, size, Resize, name+" "+size)
	}
	return name, t.WaitChildren(ctx, set)
}

func chat(ctx context.Context, t *handler.Task, name string) (answers int, err error) {
	for ; ; answers++ {
		text, err := handler.Receive[string](ctx, t, "user")
		if err != nil || text == "bye" {
			return answers, err
		}
		if _, err := handler.Step(ctx, t, fmt.Sprintf("answer %d", answers+1), func(ctx context.Context) (bool, error) {
			return true, t.Frame(ctx, "token", fmt.Sprintf("%s, you said %s. ", name, text))
		}); err != nil {
			return answers, err
		}
	}
}

// after is a handler that takes a while and succeeds.
func after(d time.Duration) func(context.Context, *handler.Task, string) (string, error) {
	return func(ctx context.Context, _ *handler.Task, in string) (string, error) {
		return "done: " + in, pause(ctx, d)
	}
}

// Start connects to a store and runs a worker there until Stop.
func Start(ctx context.Context, url string) (*Scene, error) {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Connect(ctx, client.Config{URL: url, TokenKeys: Keys, Creator: "web", Logger: quiet})
	if err != nil {
		return nil, err
	}
	w, err := runtime.New(runtime.Config{URL: url, AppVersion: "2.7", TokenKeys: Keys, Worker: "writers",
		Instance: "writer-1", Lanes: []string{"default", "mail", "images"}, Concurrency: 24, LeaseTTL: 2 * time.Second,
		Logger: quiet},
		handler.Bind(Write, write), handler.Bind(Release, release), handler.Bind(Chat, chat),
		handler.Bind(Tally, tally), handler.Bind(Family, family),
		handler.Bind(Send, func(_ context.Context, _ *handler.Task, in Invoice) (string, error) {
			if in.Cents <= 0 {
				return "", handler.Permanent(fmt.Errorf("invoice for %s over %d cents: the amount must be positive",
					in.Customer, in.Cents))
			}
			return "", errors.New("mail server: 451 try again later")
		}),
		handler.Bind(Resize, after(5*time.Millisecond)), handler.Bind(Fetch, after(60*time.Millisecond)),
		handler.Bind(Check, func(ctx context.Context, t *handler.Task, in string) (string, error) {
			if strings.Contains(in, "wrong") {
				return "", handler.Permanent(errors.New("two sources contradict each other"))
			}
			return "checked", pause(ctx, 50*time.Millisecond)
		}),
		handler.Bind(Publish, after(40*time.Millisecond)), handler.Bind(Report, after(20*time.Millisecond)),
		handler.Bind(Slow, func(ctx context.Context, t *handler.Task, n int) (string, error) {
			for i := range n {
				if err := t.Frame(ctx, "word", fmt.Sprintf("word-%d ", i)); err != nil {
					return "", err
				}
				if err := pause(ctx, 40*time.Millisecond); err != nil {
					return "", err
				}
			}
			return "told", nil
		}))
	if err != nil {
		c.Close()
		return nil, err
	}
	s := &Scene{Client: c, Admin: admin.New(c)}
	ctx, s.stop = context.WithCancel(ctx)
	s.working.Go(func() { _ = w.Run(ctx) })
	return s, nil
}

// Stop ends the worker and the connection.
func (s *Scene) Stop() {
	s.stop()
	s.working.Wait()
	s.Client.Close()
}

// Fill submits the work. It returns when what is to have happened has.
func (s *Scene) Fill(ctx context.Context) error {
	for _, f := range []func(context.Context) error{s.gates, s.plans, s.articles, s.flows, s.people, s.waiting} {
		if err := f(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scene) gates(ctx context.Context) error {
	err := errors.Join(
		s.Admin.PutGate(ctx, admission.Gate{Name: "llm-tokens", Scope: "all models", OnHard: admission.HardBlock,
			Reset:  flowfabric.Millis(24 * time.Hour),
			Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}, "cents": {Hard: 5_000}},
			Rate:   600, Window: flowfabric.Millis(time.Minute), Concurrency: 20}),
		s.Admin.PutGate(ctx, admission.Gate{Name: "mail", Scope: "the mail provider", Rate: 100,
			Window: flowfabric.Millis(time.Minute), Concurrency: 10}))
	if err != nil {
		return err
	}
	_, err = s.Admin.ReportUsage(ctx, admission.Usage{Gate: "llm-tokens",
		Amounts: map[string]int64{"tokens": 862_140, "cents": 1_204}, Key: "scene"})
	return err
}

func (s *Scene) plans(ctx context.Context) error {
	_, one := client.Schedule(ctx, s.Client, "nightly-report", schedule.Cron("30 2 * * *", "Europe/Berlin"), Report,
		"yesterday")
	_, two := client.Schedule(ctx, s.Client, "refresh-sources", schedule.Every(15*time.Minute, time.Time{}), Fetch,
		"feeds")
	return errors.Join(one, two, s.Admin.PauseSchedule(ctx, "refresh-sources", flowfabric.By("anna")))
}

func (s *Scene) articles(ctx context.Context) error {
	written, err := client.Submit(ctx, s.Client, Write, Draft{"moon phases", 60},
		flowfabric.Tags(map[string]string{"desk.name": "science"}))
	if err != nil {
		return err
	}
	s.Written = written.ID()
	for _, topic := range []string{"tides", "lighthouses", "whales"} {
		if _, err := client.Submit(ctx, s.Client, Write, Draft{topic, 40},
			flowfabric.Tags(map[string]string{"desk.name": "science", "issue.month": "may"})); err != nil {
			return err
		}
	}
	failed, err := client.Submit(ctx, s.Client, Send, Invoice{"Acme", -5}, flowfabric.Lane("mail"))
	if err != nil {
		return err
	}
	s.Failed = failed.ID()
	if _, err := client.Submit(ctx, s.Client, Send, Invoice{"Globex", 4200}, flowfabric.Lane("mail"),
		flowfabric.Gates("mail")); err != nil {
		return err
	}
	images := make([]string, 40)
	for i := range images {
		images[i] = fmt.Sprintf("cover-%02d.png", i)
	}
	if _, err := client.SubmitMany(ctx, s.Client, Resize, images, flowfabric.Lane("images")); err != nil {
		return err
	}
	narrated, err := client.Submit(ctx, s.Client, Slow, 6)
	if err != nil {
		return err
	}
	s.Narrated = narrated.ID()
	_, err = written.Result(ctx)
	_, bad := failed.Result(ctx)
	if _, failed := errors.AsType[*client.OutcomeError](bad); failed {
		bad = nil
	}
	return errors.Join(err, bad)
}

func (s *Scene) flows(ctx context.Context) error {
	for _, topic := range []string{"tides", "wrong tides"} {
		f := flow.New("publish-article")
		sources := flow.Add(f, "sources", Fetch, topic)
		draft := flow.Add(f, "draft", Write, Draft{topic, 20}, flow.After(sources))
		facts := flow.Add(f, "facts", Check, topic, flow.After(draft))
		image := flow.Add(f, "image", Resize, "tides.png", flow.After(sources), flowfabric.Lane("images"))
		out := flow.Add(f, "publish", Publish, topic, flow.After(facts), flow.After(image))
		flow.Add(f, "report", Report, topic, flow.After(out))
		flow.Add(f, "tidy", Report, topic, flow.After(draft, image, out), flow.AllEnded())
		flow.Add(f, "alert", Report, topic, flow.After(out), flow.AnyFailed())
		submitted, err := client.SubmitFlow(ctx, s.Client, f)
		if err != nil {
			return err
		}
		if topic == "tides" {
			s.Flow = submitted.ID()
		} else {
			s.BrokenFlow = submitted.ID()
		}
		for state := flowfabric.FlowState(""); !state.Terminal(); {
			record, err := submitted.Describe(ctx)
			if err != nil {
				return err
			}
			state = record.State
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scene) people(ctx context.Context) error {
	for i, version := range []string{"v2.4.0", "v2.4.1", "v3.0.0-beta"} {
		x, err := client.Submit(ctx, s.Client, Release, version, flowfabric.Tags(map[string]string{"app.name": "web"}))
		if err != nil {
			return err
		}
		if i == 0 {
			s.Suspended = x.ID()
		}
		for {
			seen, err := x.Get(ctx)
			if err != nil {
				return err
			}
			if seen.State.Public == flowfabric.Suspended {
				break
			}
			if err := pause(ctx, 10*time.Millisecond); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Scene) waiting(ctx context.Context) error {
	for i := range 6 {
		if _, err := client.Submit(ctx, s.Client, Never, fmt.Sprintf("interview-%d.wav", i), flowfabric.Lane("audio"),
			flowfabric.Priority(i*100)); err != nil {
			return err
		}
	}
	_, err := client.Submit(ctx, s.Client, Write, Draft{"winter", 30}, flowfabric.Delay(6*time.Hour))
	if err != nil {
		return err
	}
	x, err := client.Submit(ctx, s.Client, Never, "held.wav", flowfabric.Lane("audio"))
	if err != nil {
		return err
	}
	return s.Admin.Hold(ctx, x.ID(), flowfabric.By("anna"), flowfabric.Reason("the recording is being replaced"))
}
