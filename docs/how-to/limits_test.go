package howto_test

import (
	"context"
	"errors"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/handler/middleware"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// budget gives a tenant a million tokens a month. All work in its namespace counts towards it.
func budget(ctx context.Context, a *admin.Admin, tenant string) error {
	err := a.PutGate(ctx, admission.Gate{
		Name:   tenant,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}}, // 0 is no limit
		OnHard: admission.HardBlock,
		Reset:  flowfabric.Millis(30 * 24 * time.Hour),
	})
	if err != nil {
		return err
	}
	return a.AttachGates(ctx, admission.Scope{Namespace: tenant}, []flowfabric.Gate{flowfabric.Gate(tenant)})
}

var Generate = handler.Define[Draft, Article]("generate")

var Shorten = handler.Define[string, string]("shorten")

// brief has a page shortened for at most 5,000 tokens of its own budget.
func brief(ctx context.Context, t *handler.Task, page string) (string, error) {
	set := flow.Children("pages")
	short := flow.Child(set, "page", Shorten, page, flow.Share(map[string]int64{"tokens": 5_000}))
	if err := t.WaitChildren(ctx, set); err != nil {
		return "", err
	}
	return handler.ChildResult(ctx, t, short)
}

// A child spends its share, and a set without room for its shares is not made.
func TestShare(t *testing.T) {
	for limit, want := range map[int64]error{6_000: nil, 4_999: flowfabric.ErrOverBudget} {
		purse := admission.Gate{Name: "purse", Limits: map[string]admission.Limit{"tokens": {Hard: limit}}}
		r := fftest.Run(t, handler.Define[string, string]("brief"), brief, "a page", fftest.Gates(purse),
			fftest.Also(func(*fftest.Effects) []handler.Binding {
				return []handler.Binding{handler.Bind(Shorten,
					func(ctx context.Context, t *handler.Task, page string) (string, error) {
						if err := t.Spend(ctx, "tokens", 5_001); !errors.Is(err, flowfabric.ErrOverBudget) {
							return "", err
						}
						return page[:1], t.Spend(ctx, "tokens", 4_000)
					})}
			}))
		if want == nil && (r.Result != "a" || r.Used["purse"]["tokens"] != 4_000) || (r.Err == nil) != (want == nil) {
			t.Errorf("limit %d: %q, %v, %v", limit, r.Result, r.Err, r.Used)
		}
	}
}

// maxTokens is the most that a call of the model may use.
const maxTokens = 4000

func generate(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	text, err := handler.Step(ctx, t, "text", func(ctx context.Context) (string, error) {
		r, err := t.Reserve(ctx, map[string]int64{"tokens": maxTokens})
		if err != nil {
			return "", err // there is no room: the call is not made
		}
		text, used, err := complete(ctx, in.Topic, maxTokens)
		if err != nil {
			return "", err // it may have been paid: what is not settled is charged in full
		}
		return text, r.Settle(ctx, map[string]int64{"tokens": used})
	})
	if err != nil {
		return Article{}, err
	}
	_, err = handler.Step(ctx, t, "upload", func(ctx context.Context) (int64, error) {
		sent, err := upload(ctx, text)
		return sent, errors.Join(err, t.Spend(ctx, "bytes", sent))
	})
	return Article{text}, err
}

func complete(_ context.Context, topic string, _ int64) (text string, used int64, err error) {
	return "all about " + topic, 3, nil
}

func upload(_ context.Context, text string) (sent int64, err error) { return int64(len(text)), nil }

// family puts a budget of a company above that of a team: what a team uses counts for the company, too.
func family(ctx context.Context, a *admin.Admin) error {
	err := a.PutGate(ctx, admission.Gate{Name: "company", OnHard: admission.HardBlock,
		Limits: map[string]admission.Limit{"tokens": {Hard: 5_000_000}}})
	if err != nil {
		return err
	}
	return a.PutGate(ctx, admission.Gate{Name: "research", Parent: "company", OnHard: admission.HardBlock,
		Limits: map[string]admission.Limit{"tokens": {Hard: 2_000_000}}})
}

// calls is a gate for an API that takes 600 calls a minute, and 20 at once.
func calls(ctx context.Context, a *admin.Admin) error {
	return a.PutGate(ctx, admission.Gate{Name: "llm", Rate: 580, Window: flowfabric.Millis(time.Minute),
		Concurrency: 20})
}

// model is a gate for the calls of a model whose account has 500 requests and 200,000 tokens a minute.
func model(ctx context.Context, a *admin.Admin) error {
	return a.PutGate(ctx, admission.Gate{Name: "openai/gpt-5", Service: &admission.Service{
		PerMinute: map[string]int64{"requests": 500, "tokens": 200_000},
		Calls:     20,                        // at once
		Weights:   map[string]int{"acme": 3}, // other namespaces have 1
	}})
}

// tooMany is what a client of a model returns when that answers 429, with its Retry-After.
type tooMany struct{ after time.Duration }

func (*tooMany) Error() string { return "too many requests" }

var Summarize = handler.Define[Draft, Article]("summarize")

func summarize(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	text, err := handler.Step(ctx, t, "summary", func(ctx context.Context) (string, error) {
		p, err := t.Acquire(ctx, "openai/gpt-5", map[string]int64{"tokens": maxTokens})
		if err != nil {
			return "", err // also when it waits: return it
		}
		text, used, err := complete(ctx, in.Topic, maxTokens)
		if refused, ok := errors.AsType[*tooMany](err); ok { // status 429
			return "", errors.Join(err, p.Refused(ctx, refused.after))
		}
		return text, errors.Join(err, p.Settle(ctx, map[string]int64{"tokens": used}))
	})
	return Article{text}, err
}

// each tenant may run two at once and start 100 a minute, whatever the others do.
func submit(ctx context.Context, c *client.Client, tenant string, in Draft) (*client.Execution[Article], error) {
	return client.Submit(ctx, c, Generate, in,
		flowfabric.LimitKey(tenant, flowfabric.Limit{Concurrency: 2, Rate: 100, Per: time.Minute}))
}

// careful lets this worker send 10 mails a second, and keeps work from a mail server that fails.
func careful() []handler.Middleware {
	mails := middleware.Kinds("mail", "newsletter") // they use the same server
	return []handler.Middleware{
		middleware.CircuitBreaker(middleware.Breaker{Failures: 5, Open: 30 * time.Second, Key: mails}),
		middleware.RateLimit(middleware.Rate{Starts: 10, Per: time.Second, Key: mails}),
	}
}

func TestLocalLimits(t *testing.T) {
	mail := handler.Define[Draft, Article]("mail", flowfabric.Retries(0))
	ctx, c := start(t, runtime.Config{Middleware: careful()}, handler.Bind(mail,
		func(context.Context, *handler.Task, Draft) (Article, error) { return Article{"sent"}, nil }))
	exec, err := client.Submit(ctx, c, mail, Draft{"tides"})
	must(t, err)
	got, err := exec.Result(ctx)
	must(t, err)
	if got.Text != "sent" {
		t.Errorf("%+v", got)
	}
}

func TestLimits(t *testing.T) {
	ctx, c := start(t, runtime.Config{Namespaces: []string{"acme", "default"}}, handler.Bind(Generate, generate))
	a := admin.New(c)
	must(t, budget(ctx, a, "acme"))
	must(t, calls(ctx, a))
	exec, err := client.Submit(ctx, c, Generate, Draft{"tides"}, flowfabric.Namespace("acme"), flowfabric.Gates("llm"))
	must(t, err)
	_, err = exec.Result(ctx)
	must(t, err)
	exec, err = submit(ctx, c, "tenant-7", Draft{"tides"})
	must(t, err)
	_, err = exec.Result(ctx)
	must(t, err)
	info, err := a.GetGate(ctx, "acme")
	must(t, err)
	if left, limited := info.Headroom["tokens"]; left != 1_000_000-3 || !limited || info.Reserved["tokens"] != 0 {
		t.Errorf("%d tokens are left, %d reserved", left, info.Reserved["tokens"])
	}
	if sent := info.Used["bytes"]; sent != int64(len("all about tides")) {
		t.Errorf("%d bytes", sent)
	}
}

// A call passes the gate of its service, and what it used is counted there.
func TestServices(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Summarize, summarize))
	a := admin.New(c)
	must(t, model(ctx, a))
	exec, err := client.Submit(ctx, c, Summarize, Draft{"tides"})
	must(t, err)
	got, err := exec.Result(ctx)
	must(t, err)
	g, err := a.GetGate(ctx, "openai/gpt-5")
	must(t, err)
	if got.Text != "all about tides" || g.State.UnderWay != 0 || g.State.Share != 1000 {
		t.Errorf("%+v, %+v", got, g.State)
	}
}

// What a team uses counts for the company.
func TestGateAbove(t *testing.T) {
	ctx, c := start(t, runtime.Config{}, handler.Bind(Generate, generate))
	a := admin.New(c)
	must(t, family(ctx, a))
	exec, err := client.Submit(ctx, c, Generate, Draft{"tides"}, flowfabric.Gates("research"))
	must(t, err)
	_, err = exec.Result(ctx)
	must(t, err)
	for _, name := range []string{"research", "company"} {
		info, err := a.GetGate(ctx, name)
		must(t, err)
		if info.Used["tokens"] != 3 || info.Reserved["tokens"] != 0 {
			t.Errorf("%s: %d used, %d reserved", name, info.Used["tokens"], info.Reserved["tokens"])
		}
	}
}
