package crash

import (
	"context"
	"log/slog"
	"time"

	"github.com/cschleiden/go-workflows/backend"
	workflows "github.com/cschleiden/go-workflows/backend/redis"
	wfclient "github.com/cschleiden/go-workflows/client"
	"github.com/cschleiden/go-workflows/worker"
	"github.com/cschleiden/go-workflows/workflow"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
)

var goWorkflows = system{
	name:  "go-workflows",
	serve: redisServer, talk: respDialect, work: workWorkflows, open: openWorkflows,
	version: func() string { return driver.ModuleVersion("github.com/cschleiden/go-workflows") },
}

// openBackend connects one with shorter locks than the default.
func openBackend(url string) (backend.Backend, *redis.Client, error) {
	c := redis.NewClient(&redis.Options{Network: "unix", Addr: socket(url)})
	b, err := workflows.NewRedisBackend(c, workflows.WithBlockTimeout(500*time.Millisecond),
		workflows.WithBackendOptions(backend.WithLogger(slog.New(slog.DiscardHandler)),
			backend.WithWorkflowLockTimeout(time.Second), backend.WithActivityLockTimeout(time.Second)))
	return b, c, err
}

// converse is the workflow.
func converse(ctx workflow.Context, messages []message) (string, error) {
	var a *activities
	for !over(messages) {
		m, err := workflow.ExecuteActivity[message](ctx, workflow.DefaultActivityOptions, a.Next, messages).Get(ctx)
		if err != nil {
			return "", err
		}
		messages = append(messages, m)
	}
	return messages[len(messages)-1].Text, nil
}

// activities are what the workflow does outside.
type activities struct {
	service string
	redis   *redis.Client
}

// Next is a model call or the call of the tool.
func (a *activities) Next(ctx context.Context, messages []message) (message, error) {
	return next(ctx, a.service, messages, func(token string) error {
		return a.redis.XAdd(ctx, &redis.XAddArgs{Stream: keyTokens, Values: []string{field, token}}).Err()
	})
}

func workWorkflows(ctx context.Context, url, service string) error {
	b, c, err := openBackend(url)
	if err != nil {
		return err
	}
	o := worker.DefaultOptions
	o.WorkflowPollers, o.ActivityPollers = 1, 1
	o.WorkflowHeartbeatInterval, o.ActivityHeartbeatInterval = 300*time.Millisecond, 300*time.Millisecond
	w := worker.New(b, &o)
	if err := w.RegisterWorkflow(converse); err != nil {
		return err
	}
	if err := w.RegisterActivity(&activities{service: service, redis: c}); err != nil {
		return err
	}
	if err := w.Start(ctx); err != nil {
		return err
	}
	return w.WaitForCompletion()
}

type workflowCaller struct {
	own      *redis.Client
	client   *wfclient.Client
	instance *workflow.Instance
	redis    rueidis.Client
}

func openWorkflows(_ context.Context, s driver.Server) (caller, error) {
	b, own, err := openBackend(s.URL())
	if err != nil {
		return nil, err
	}
	out := &workflowCaller{own: own, client: wfclient.New(b)}
	out.redis, err = dialRedis(s.URL())
	return out, err
}

func (c *workflowCaller) submit(ctx context.Context) (err error) {
	c.instance, err = c.client.CreateWorkflowInstance(ctx, wfclient.WorkflowInstanceOptions{InstanceID: "run"},
		converse, []message{question})
	return err
}

func (c *workflowCaller) result(ctx context.Context) (string, error) {
	return wfclient.GetWorkflowResult[string](ctx, c.client, c.instance, time.Hour)
}

func (c *workflowCaller) pass(context.Context) error { return nil } // the locks of a second

func (c *workflowCaller) shown(ctx context.Context) ([]string, int, error) {
	tokens, err := readTokens(ctx, c.redis, keyTokens, func(f map[string]string) string { return f[field] })
	return tokens, 0, err
}

func (c *workflowCaller) close() {
	_ = c.own.Close()
	c.redis.Close()
}
