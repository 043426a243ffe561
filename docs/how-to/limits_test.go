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
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/handler/middleware"
	"github.com/flowfabric/flowfabric-go/runtime"
)

// budget gives a tenant a million tokens a month. All work in its namespace counts towards it.
func budget(ctx context.Context, a *admin.Admin, tenant string) error {
	err := a.PutBudget(ctx, admission.Budget{
		Name:   tenant,
		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}}, // 0 is no limit
		OnHard: admission.HardBlock,
		Reset:  flowfabric.Millis(30 * 24 * time.Hour),
	})
	if err != nil {
		return err
	}
	return a.AttachGates(ctx, admission.Scope{Namespace: tenant}, []flowfabric.Gate{flowfabric.BudgetGate(tenant)})
}

var Generate = handler.Define[Draft, Article]("generate")

func generate(ctx context.Context, t *handler.Task, in Draft) (Article, error) {
	text, err := handler.Step(ctx, t, "text", func(ctx context.Context) (string, error) {
		text, tokens, err := complete(ctx, in.Topic)
		return text, errors.Join(err, t.Spend(ctx, "tokens", tokens))
	})
	return Article{text}, err
}

func complete(_ context.Context, topic string) (text string, tokens int64, err error) {
	return "all about " + topic, 3, nil
}

// quota is for an API that takes 600 calls a minute, and 20 at once.
func quota(ctx context.Context, a *admin.Admin) error {
	return a.PutQuota(ctx, admission.Quota{Name: "llm", Rate: 580, Window: flowfabric.Millis(time.Minute), Cap: 20})
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
	must(t, quota(ctx, a))
	exec, err := client.Submit(ctx, c, Generate, Draft{"tides"}, flowfabric.Namespace("acme"), flowfabric.Quotas("llm"))
	must(t, err)
	_, err = exec.Result(ctx)
	must(t, err)
	exec, err = submit(ctx, c, "tenant-7", Draft{"tides"})
	must(t, err)
	_, err = exec.Result(ctx)
	must(t, err)
	info, err := a.GetBudget(ctx, "acme")
	must(t, err)
	if left, limited := info.Headroom["tokens"]; left != 1_000_000-3 || !limited {
		t.Errorf("%d tokens are left", left)
	}
}
