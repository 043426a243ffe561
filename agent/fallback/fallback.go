// Package fallback is an [agent.Model] that asks other models in order, until one can answer.
//
//	model, err := fallback.New(claude, gpt, local)
//
// The next model is asked if one is overloaded, wants fewer requests or cannot be reached: its error has the category
// model_overloaded or model_rate_limited, as [agent.StatusError] and all adapters make it. Any other error is returned
// at once. A request that a service refuses would mostly be refused by the next one, too, and a wrong key must show.
//
// Once a piece of an answer was handed on, no other model is asked, because what was shown cannot be taken back within
// an attempt. The error fails the attempt then; the execution's retry policy begins the answer again, with the first
// model, and tells readers what is repeated.
//
// Which model answered is in [agent.Response].Model, which is recorded with the answer: as the service names it, or as
// the model describes itself if the service does not. A recorded answer is never asked for again, whichever model
// could answer now. Each answer asks the first model first; earlier failures do not count. Reasoning of an adapter in
// Message.Private is not sent by others.
package fallback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// New makes a model that asks the models in their order. It fails if there is none, or if one is nil. The model may be
// used concurrently if they may, and is [agent.Described] as the first one.
//
// If none can answer, the error is that of the model that asks for the shortest pause, or of the first one that asks
// for none, with the others in its text.
func New(models ...agent.Model) (agent.Model, error) {
	if len(models) == 0 {
		return nil, errors.New("fallback: there is no model; name one or more")
	}
	for i, m := range models {
		if m == nil {
			return nil, fmt.Errorf("fallback: model %d is nil", i)
		}
	}
	return chain(append([]agent.Model(nil), models...)), nil
}

type chain []agent.Model

// Describe names the model that is asked first.
func (c chain) Describe() (provider, model string) {
	if d, ok := c[0].(agent.Described); ok {
		return d.Describe()
	}
	return "", ""
}

// Generate implements [agent.Model].
func (c chain) Generate(ctx context.Context, req agent.Request, delta func(agent.Delta) error) (agent.Response, error) {
	var chosen error
	var others string
	shortest := time.Duration(0)
	for i, m := range c {
		begun := false
		response, err := m.Generate(ctx, req, func(d agent.Delta) error {
			begun = true
			return delta(d)
		})
		if err == nil {
			if d, ok := m.(agent.Described); ok && response.Model == "" {
				_, response.Model = d.Describe()
			}
			return response, nil
		}
		pause, busy := unavailable(ctx, err)
		if begun || !busy || ctx.Err() != nil {
			return agent.Response{}, err
		}
		switch {
		case i == 0:
			chosen, shortest = err, pause
		case pause < shortest:
			others += "; " + chosen.Error()
			chosen, shortest = err, pause
		default:
			others += "; " + err.Error()
		}
	}
	if others == "" {
		return agent.Response{}, chosen
	}
	return agent.Response{}, fmt.Errorf("fallback: none of %d models can answer: %w%s", len(c), chosen, others)
}

// unavailable says that an error is of a service that cannot answer now, and which pause it asks for, 0 for none.
func unavailable(ctx context.Context, err error) (pause time.Duration, ok bool) {
	failure := handler.Classify(ctx, nil, err).Failure
	ok = !failure.Permanent && (failure.Category == "model_overloaded" || failure.Category == "model_rate_limited")
	return *cmp.Or(failure.RetryAfter, new(time.Duration)), ok
}
