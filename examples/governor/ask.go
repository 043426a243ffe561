package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/flowfabric/flowfabric-go/examples/governor/model"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Prompt is the input of an execution.
type Prompt struct {
	Service string // the name of the service's gate; "" asks none
	URL     string // of the model
	Tenant  string
	Tokens  int64 // that the answer may have
}

// Ask is what producers and workers share.
var Ask = handler.Define[Prompt, int64]("governor-ask", handler.Retry(10, time.Second, 5*time.Second))

// Caller handles Ask. The service behind its client is [model.Service].
type Caller struct{ client *http.Client }

// NewCaller is the constructor given to runtime.Provide.
func NewCaller(client *http.Client) *Caller { return &Caller{client} }

// Handle calls the model once its turn has come, and tells the gate how it went. The call is a step, so that it is not
// made again.
func (c *Caller) Handle(ctx context.Context, t *handler.Task, in Prompt) (int64, error) {
	return handler.Step(ctx, t, "ask", func(ctx context.Context) (int64, error) {
		if in.Service == "" {
			used, pause, err := c.ask(ctx, in)
			return used, handler.RetryAfter(pause, err)
		}
		permit, err := t.Acquire(ctx, in.Service, map[string]int64{"tokens": in.Tokens})
		if err != nil {
			return 0, err // also when it waits without a slot
		}
		used, pause, err := c.ask(ctx, in)
		if pause > 0 {
			return 0, errors.Join(handler.RetryAfter(pause, err), permit.Refused(ctx, pause))
		}
		return used, errors.Join(err, permit.Settle(ctx, map[string]int64{"tokens": used}))
	})
}

// ask makes one call. pause is when the service wants to be asked again, of one that it refused.
func (c *Caller) ask(ctx context.Context, in Prompt) (used int64, pause time.Duration, err error) {
	body, err := json.Marshal(model.Question{Tenant: in.Tenant, MaxTokens: in.Tokens})
	if err != nil {
		return 0, 0, handler.Permanent(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, in.URL, bytes.NewReader(body))
	if err != nil {
		return 0, 0, handler.Permanent(err)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		seconds, _ := strconv.Atoi(res.Header.Get("Retry-After"))
		return 0, time.Duration(seconds) * time.Second, fmt.Errorf("the model answers %s", res.Status)
	}
	var answer model.Answer
	return answer.Tokens, 0, json.NewDecoder(res.Body).Decode(&answer)
}
