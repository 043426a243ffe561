package openai

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// Config says which model is asked, and where. Only Model is needed.
type Config struct {
	Model  string // the model's name at the service
	APIKey string // "" = the environment variable OPENAI_API_KEY; none is needed for most local servers
	// of the API, for example http://localhost:11434/v1; "" = the environment variable OPENAI_BASE_URL, or else
	// OpenAI
	BaseURL string
	// nil = a client of its own, which waits up to 10 minutes for the first byte; a Timeout of a client bounds the
	// whole answer
	HTTPClient *http.Client

	MaxTokens       int64 // of an answer whose request sets none; 0 = the service's default
	LegacyMaxTokens bool  // sends the bound as max_tokens, for services that do not know max_completion_tokens

	// ReturnReasoning keeps the model's reasoning in Message.Private and sends it back with the conversation. Some
	// reasoning models that use tools demand it, others refuse it. See also [NewResponses].
	ReturnReasoning bool

	// Options of the SDK for every request, for example option.WithHeader, option.WithJSONSet("temperature", 0), or
	// option.WithJSONDel("stream_options") for a service that refuses to be asked for usage. They win over the fields
	// above, but retries stay off.
	Options []option.RequestOption
}

// Model is an [agent.Model]. It may be used concurrently.
type Model struct {
	cfg       Config
	client    sdk.Client
	responses bool // it speaks the Responses API
}

// assembler puts the events of an answer together.
type assembler interface {
	event(data []byte) (done bool, err error)
	count() int // of events
	response() (agent.Response, error)
}

var (
	_ agent.Model     = (*Model)(nil)
	_ agent.Described = (*Model)(nil)
)

// Describe names the provider and the model that is asked, for spans.
func (m *Model) Describe() (provider, model string) { return "openai", m.cfg.Model }

// New makes a model. It fails if cfg has no model, a negative bound or an unusable URL; it does not call the service.
func New(cfg Config) (*Model, error) {
	if cfg.Model == "" {
		return nil, errors.New("openai: Config.Model is empty; name a model")
	}
	if cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("openai: Config.MaxTokens is %d; it must be 0 or more", cfg.MaxTokens)
	}
	if u, err := url.Parse(cfg.BaseURL); cfg.BaseURL != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("openai: Config.BaseURL is not a URL of http or https")
	}
	options := []option.RequestOption{}
	if cfg.APIKey != "" {
		options = append(options, option.WithAPIKey(cfg.APIKey))
	}
	if cfg.BaseURL != "" {
		options = append(options, option.WithBaseURL(cfg.BaseURL))
	}
	if cfg.HTTPClient != nil {
		options = append(options, option.WithHTTPClient(cfg.HTTPClient))
	}
	options = append(append(options, cfg.Options...), option.WithMaxRetries(0))
	return &Model{cfg: cfg, client: sdk.NewClient(options...)}, nil
}

// Generate implements [agent.Model]. See the package comment for its errors.
func (m *Model) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	c := &call{ctx: ctx}
	defer c.close()
	stream, answer, err := m.open(c, req, delta)
	if err != nil {
		return agent.Response{}, err
	}
	for stream.Next() {
		if ctx.Err() != nil {
			return agent.Response{}, context.Cause(ctx)
		}
		done, err := answer.event(stream.Event().Data)
		if err != nil {
			return agent.Response{}, c.failure(err)
		}
		if done {
			return c.response(answer)
		}
	}
	if err := stream.Err(); errors.Is(err, bufio.ErrTooLong) {
		return agent.Response{}, c.failure(err)
	} else if err != nil {
		return agent.Response{}, c.broken(err)
	}
	return c.response(answer)
}

// open sends the request.
func (m *Model) open(c *call, req agent.Request, delta func(agent.Delta) error) (ssestream.Decoder, assembler, error) {
	// The SDK's stream takes an answer that ends without its mark for a whole one, so that its events are read here.
	options := []option.RequestOption{option.WithResponseInto(&c.res), option.WithMiddleware(c.watch)}
	if m.responses {
		params, err := m.responseParams(req)
		if err != nil {
			return nil, nil, fmt.Errorf("openai: %w", err)
		}
		stream, err := c.events(m.client.Responses.NewStreaming(c.ctx, params, options...).Err())
		return stream, newResponseAnswer(delta, m.cfg.ReturnReasoning), err
	}
	params, err := m.params(req)
	if err != nil {
		return nil, nil, fmt.Errorf("openai: %w", err)
	}
	stream, err := c.events(m.client.Chat.Completions.NewStreaming(c.ctx, params, options...).Err())
	return stream, newAnswer(delta, m.cfg.ReturnReasoning), err
}

// call is one request to the service.
type call struct {
	ctx     context.Context
	res     *http.Response
	secrets wire.Secrets
}

// events are those of the answer to a request that was sent with err.
func (c *call) events(err error) (ssestream.Decoder, error) {
	if err == nil {
		return ssestream.NewDecoder(c.res), nil
	}
	if c.ctx.Err() != nil {
		return nil, context.Cause(c.ctx)
	}
	if c.res == nil || c.res.StatusCode < 400 {
		return nil, c.broken(err)
	}
	failed := httpError(c.res, c.secrets)
	return nil, agent.StatusError(failed.Status, c.res.Header, failed)
}

// watch sees the request as it is sent.
func (c *call) watch(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	c.secrets.Learn(req.Header)
	res, err := next(req)
	wire.BoundError(res)
	return res, err
}

// broken is the error of a connection that is not there, or no longer.
func (c *call) broken(err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return agent.StatusError(0, nil, fmt.Errorf("openai: %w", c.secrets.Broken(err)))
}

// failure is the error of an event, or of delta.
func (c *call) failure(err error) error {
	var said *Error
	var of deltaError
	switch {
	case errors.As(err, &of):
		return of.error
	case errors.As(err, &said):
		said.hide(c.secrets)
		return agent.StatusError(said.Status, nil, said)
	}
	return wire.Malformed(fmt.Errorf("openai: %s", wire.Excerpt(c.secrets.Hide(err.Error()))))
}

// response is what the events came to.
func (c *call) response(answer assembler) (agent.Response, error) {
	if media, _, _ := mime.ParseMediaType(c.res.Header.Get("Content-Type")); answer.count() == 0 &&
		media != "text/event-stream" {
		return agent.Response{}, c.failure(fmt.Errorf("the service sends %q and no event", media))
	}
	response, err := answer.response()
	if errors.Is(err, errCut) {
		return agent.Response{}, c.broken(err)
	}
	if err != nil {
		return agent.Response{}, c.failure(err)
	}
	return response, nil
}

func (c *call) close() {
	if c.res != nil && c.res.Body != nil {
		c.res.Body.Close()
	}
}
