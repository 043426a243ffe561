package anthropic

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/ssestream"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

const (
	defaultMaxTokens = 8192
	mostPauses       = 10 // requests of one call, when the service pauses
	headerTimeout    = 10 * time.Minute
)

// Config says which model is asked, and where. Only Model is needed.
type Config struct {
	Model string // for example claude-sonnet-5
	// "" = the environment variable ANTHROPIC_API_KEY, or the SDK's other sources of credentials
	APIKey string
	// of the service, without /v1; "" = the environment variable ANTHROPIC_BASE_URL, or else Anthropic
	BaseURL string
	// nil = a client of its own, which follows no redirects and waits up to 10 minutes for the first byte; a Timeout
	// of a client bounds the whole answer
	HTTPClient *http.Client
	MaxTokens  int64 // of an answer whose request sets none, thinking included; 0 = 8192

	// Options of the SDK for every request, for example option.WithHeader, or option.WithJSONSet for features that
	// have no field here. They win over the fields above, but retries stay off.
	Options []option.RequestOption
}

// Model is an [agent.Model]. It may be used concurrently.
type Model struct {
	cfg    Config
	client sdk.Client
}

var (
	_ agent.Model     = (*Model)(nil)
	_ agent.Described = (*Model)(nil)
)

// Describe names the provider and the model that is asked, for spans.
func (m *Model) Describe() (provider, model string) { return "anthropic", m.cfg.Model }

// New makes a model. It fails if cfg has no model, a negative bound or an unusable URL; it does not call the service.
func New(cfg Config) (*Model, error) {
	if cfg.Model == "" {
		return nil, errors.New("anthropic: Config.Model is empty; name a model")
	}
	if cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("anthropic: Config.MaxTokens is %d; it must be 0 or more", cfg.MaxTokens)
	}
	if u, err := url.Parse(cfg.BaseURL); cfg.BaseURL != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("anthropic: Config.BaseURL is not a URL of http or https")
	}
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = newClient()
	}
	options := []option.RequestOption{option.WithHTTPClient(cfg.HTTPClient)}
	if cfg.APIKey != "" {
		// A token of the environment would go out beside the key.
		options = append(options, option.WithAPIKey(cfg.APIKey), option.WithHeaderDel("Authorization"))
	}
	if cfg.BaseURL != "" {
		options = append(options, option.WithBaseURL(cfg.BaseURL))
	}
	options = append(append(options, cfg.Options...), option.WithMaxRetries(0))
	return &Model{cfg: cfg, client: sdk.NewClient(options...)}, nil
}

// newClient follows no redirects: net/http would hand the header with the key to another host.
func newClient() *http.Client {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone()
		t.ResponseHeaderTimeout = headerTimeout
		client.Transport = t
	}
	return client
}

// Generate implements [agent.Model]. See the package comment for its errors.
func (m *Model) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	params, err := m.params(req)
	if err != nil {
		return agent.Response{}, fmt.Errorf("anthropic: message: %w", err)
	}
	answer := newAnswer(delta)
	for range mostPauses {
		if err := m.stream(ctx, params, answer); err != nil {
			return agent.Response{}, err
		}
		soFar := answer.soFar()
		if !answer.paused() || len(soFar) == 0 {
			break
		}
		params.Messages = append(params.Messages, sdk.NewAssistantMessage(soFar...))
	}
	return answer.response(), nil
}

// stream makes one request and adds what comes back to the answer.
func (m *Model) stream(ctx context.Context, params sdk.MessageNewParams, answer *answer) error {
	c := &call{ctx: ctx}
	defer c.close()
	stream, err := c.open(m.client, params)
	if err != nil {
		return err
	}
	answer.begin()
	for stream.Next() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		e := stream.Event()
		if done, err := answer.event(e.Type, e.Data); err != nil {
			return c.failure(err)
		} else if done {
			return nil
		}
	}
	if err := stream.Err(); errors.Is(err, bufio.ErrTooLong) {
		return c.failure(err)
	} else if err != nil {
		return c.broken(err)
	}
	if media, _, _ := mime.ParseMediaType(c.res.Header.Get("Content-Type")); answer.events == 0 &&
		media != "text/event-stream" {
		return c.failure(fmt.Errorf("the service sends %q and no event", media))
	}
	return c.broken(errors.New("the stream ended before the answer did"))
}

// call is one request to the service.
type call struct {
	ctx     context.Context
	res     *http.Response
	secrets wire.Secrets
}

// open sends the request and returns the events of the answer.
func (c *call) open(client sdk.Client, params sdk.MessageNewParams) (ssestream.Decoder, error) {
	// The SDK's stream takes an answer that ends without its mark for a whole one, so that its events are read here.
	err := client.Messages.NewStreaming(c.ctx, params, option.WithResponseInto(&c.res),
		option.WithMiddleware(c.watch)).Err()
	switch {
	case err == nil && c.res.StatusCode < 300:
		return ssestream.NewDecoder(c.res), nil
	case c.ctx.Err() != nil:
		return nil, context.Cause(c.ctx)
	case err == nil:
		return nil, wire.Refuse(
			fmt.Errorf("anthropic: message: the service redirects with status %d; set Config.BaseURL to its address",
				c.res.StatusCode))
	case c.res == nil || c.res.StatusCode < 400:
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
	return agent.StatusError(0, nil, fmt.Errorf("anthropic: message: %w", c.secrets.Broken(err)))
}

// failure is the error of an event, or of delta.
func (c *call) failure(err error) error {
	var said *Error
	var of deltaError
	switch {
	case errors.As(err, &of):
		return of.error
	case errors.As(err, &said):
		said.RequestID = c.res.Header.Get("Request-Id")
		said.hide(c.secrets)
		return agent.StatusError(said.Status, nil, said)
	}
	return wire.Malformed(fmt.Errorf("anthropic: message: %s", wire.Excerpt(c.secrets.Hide(err.Error()))))
}

func (c *call) close() {
	if c.res != nil && c.res.Body != nil {
		c.res.Body.Close()
	}
}
