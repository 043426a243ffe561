package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/codes"
)

// What a call is taken to use before it is made.
const (
	bytesPerToken = 4 // of the request as JSON
	imageTokens   = 1500
	fileTokens    = 100_000 // of a file, at most
	leastAnswer   = 256     // tokens of an answer
	remembered    = 4       // answers of which the longest is the next one's estimate
)

// permit lets the model be called once. nil is that of a run without Config.Governor.
type permit struct {
	task *handler.Task
	p    *handler.Permit
}

// acquire waits for the turn of a model call, if the service has a gate.
func (r *run) acquire(ctx context.Context, req Request) (*permit, error) {
	if r.cfg.Governor == "" {
		return nil, nil
	}
	p, err := r.task.Acquire(ctx, r.cfg.Governor, r.estimate(req))
	if err != nil {
		return nil, err
	}
	return &permit{r.task, p}, nil
}

// estimate is what a call may use: a token for every four bytes that are sent, 1,500 for an image, at most 100,000 for
// a file, and an answer as long as the longest of the last four, but at least 256 tokens and at most Config.MaxOutput.
func (r *run) estimate(req Request) map[string]int64 {
	shown := int64(0)
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages {
		req.Messages[i].Parts = slices.Clone(m.Parts)
		for j := range m.Parts {
			p := &req.Messages[i].Parts[j]
			p.Data = nil
			if p.Type == PartImage {
				shown += imageTokens
			} else if p.Type == PartFile {
				shown += min(max(0, p.Size/bytesPerToken), fileTokens)
			}
		}
	}
	data, _ := json.Marshal(req) // what does not encode, Generate refuses
	out := slices.Max(append(slices.Clone(r.sizes[max(0, len(r.sizes)-remembered):]), leastAnswer))
	if req.MaxTokens > 0 {
		out = min(out, req.MaxTokens)
	}
	return amounts(Usage{Input: shown + int64(len(data)+bytesPerToken-1)/bytesPerToken, Output: out})
}

const inputTokens = "input_tokens" // a dimension of a service

func amounts(u Usage) map[string]int64 {
	return map[string]int64{"tokens": u.Total(), inputTokens: u.Input, "output_tokens": u.Output}
}

// notMade gives the turn back.
func (p *permit) notMade(ctx context.Context) error {
	if p == nil {
		return nil
	}
	return p.p.Release(ctx)
}

// made tells the gate what came of the call. An error of that is for the end of the run, which says it again.
func (p *permit) made(ctx context.Context, u Usage, err error) {
	if p == nil {
		return
	}
	pause, refused := p.refusal(ctx, err)
	switch {
	case refused:
		_ = p.p.Refused(ctx, pause)
	case err == nil || u != Usage{}:
		_ = p.p.Settle(ctx, amounts(u))
	case handler.Classify(ctx, p.task, err).Failure.Category == categoryRefused: // it read the request, and no more
		_ = p.p.Settle(ctx, map[string]int64{})
	default: // nobody knows what it used
		_ = p.p.Settle(ctx, nil)
	}
}

// busy marks the error of a service that refused a call because it has too many.
type busy struct{ error }

func (b busy) Unwrap() error { return b.error }

// refusal reports an error that says that the service has too many calls, and the pause that it asks for.
func (p *permit) refusal(ctx context.Context, err error) (pause time.Duration, ok bool) {
	if err == nil {
		return 0, false
	}
	out := handler.Classify(ctx, p.task, err)
	_, marked := errors.AsType[busy](err)
	if out.Kind != codes.OutcomeFail || !marked && out.Failure.Category != categoryRateLimited {
		return 0, false
	}
	if out.Failure.RetryAfter != nil {
		pause = *out.Failure.RetryAfter
	}
	return pause, true
}
