package gemini

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"time"

	"google.golang.org/genai"

	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/agent/internal/wire"
)

// Config says which model is asked, and where. Only Model is needed.
type Config struct {
	Model string // for example gemini-3-flash
	// Client of the SDK: key or credentials, backend, project, location, and HTTPOptions.BaseURL. What it leaves out
	// comes from the SDK's environment variables, for example GEMINI_API_KEY. A Timeout of its HTTPClient bounds the
	// whole answer; redirects are not followed, and its retries are off.
	Client genai.ClientConfig
	// MaxTokens of an answer whose request sets none, thoughts included; 0 = the service's default.
	MaxTokens int64
	// Configure changes each request, for example ThinkingConfig, to be told of thoughts, or SafetySettings; nil =
	// nothing. It wins over the fields above. It is called by many goroutines at once.
	Configure func(*genai.GenerateContentConfig)
}

// Model is an [agent.Model]. It may be used concurrently.
type Model struct {
	cfg     Config
	client  *genai.Client
	timeout time.Duration
}

var (
	_ agent.Model     = (*Model)(nil)
	_ agent.Described = (*Model)(nil)
)

// Describe names the provider and the model that is asked, for spans.
func (m *Model) Describe() (provider, model string) {
	if m.client.ClientConfig().Backend == genai.BackendVertexAI {
		return "gcp.vertex_ai", m.cfg.Model
	}
	return "gcp.gemini", m.cfg.Model
}

// New makes a model. It fails if cfg has no model, a negative bound, an unusable URL, or a client that the SDK refuses,
// for example one without a key. It does not call the service; the SDK may look for credentials of Vertex AI.
func New(cfg Config) (*Model, error) {
	if cfg.Model == "" {
		return nil, errors.New("gemini: Config.Model is empty; name a model")
	}
	if cfg.MaxTokens < 0 {
		return nil, fmt.Errorf("gemini: Config.MaxTokens is %d; it must be 0 or more", cfg.MaxTokens)
	}
	base := cfg.Client.HTTPOptions.BaseURL
	if u, err := url.Parse(base); base != "" && (err != nil || u.Host == "" ||
		u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("gemini: Config.Client.HTTPOptions.BaseURL is not a URL of http or https")
	}
	if cfg.Client.HTTPClient != nil {
		own := *cfg.Client.HTTPClient
		cfg.Client.HTTPClient = &own
	}
	client, err := genai.NewClient(context.Background(), &cfg.Client)
	if err != nil {
		secrets := wire.Secrets{}
		if key := cfg.Client.APIKey; key != "" {
			secrets = append(secrets, key)
		}
		return nil, errors.New("gemini: " + wire.Excerpt(secrets.Hide(err.Error())))
	}
	sender := client.ClientConfig().HTTPClient // our own copy, or the SDK's
	m := &Model{cfg: cfg, client: client, timeout: sender.Timeout}
	sender.Timeout, sender.Transport = 0, capture{sender.Transport}
	return m, nil
}

// Generate implements [agent.Model]. See the package comment for its errors.
func (m *Model) Generate(ctx context.Context, req agent.Request,
	delta func(agent.Delta) error) (agent.Response, error) {
	contents, config, err := m.params(req)
	if err != nil {
		return agent.Response{}, fmt.Errorf("gemini: %w", err)
	}
	c := &call{ctx: ctx}
	defer c.close()
	if err := c.send(m, contents, config); err != nil {
		return agent.Response{}, err
	}
	answer := &answer{delta: delta}
	lines := bufio.NewScanner(c.res.Body)
	lines.Buffer(nil, wire.MostAnswer)
	var data []byte // of the event
	for lines.Scan() {
		if ctx.Err() != nil {
			return agent.Response{}, context.Cause(ctx)
		}
		if piece, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:")); ok {
			data = append(append(data, piece...), '\n')
		}
		if len(lines.Bytes()) > 0 && len(data) <= wire.MostAnswer {
			continue
		}
		if err := answer.event(data); err != nil {
			return agent.Response{}, c.failure(err)
		}
		data = data[:0]
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return agent.Response{}, c.failure(err)
	} else if err != nil {
		return agent.Response{}, c.broken(err)
	}
	return c.response(answer)
}

// call is one request to the service.
type call struct {
	ctx     context.Context
	end     context.CancelFunc
	res     *http.Response
	secrets wire.Secrets
}

type callKey struct{}

// capture takes the answer of the service away from the SDK, which takes one that was cut for a whole one and does not
// tell which pause the service asks for.
type capture struct{ next http.RoundTripper }

// RoundTrip gives the SDK an empty answer.
func (t capture) RoundTrip(req *http.Request) (*http.Response, error) {
	next := t.next
	if next == nil {
		next = http.DefaultTransport
	}
	c, ok := req.Context().Value(callKey{}).(*call)
	if !ok {
		return next.RoundTrip(req)
	}
	c.secrets.Learn(req.Header)
	res, err := next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	wire.BoundError(res)
	c.res = res
	return &http.Response{StatusCode: http.StatusOK, Proto: res.Proto, ProtoMajor: res.ProtoMajor,
		ProtoMinor: res.ProtoMinor, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// send sends the request and waits for the beginning of the answer.
func (c *call) send(m *Model, contents []*genai.Content, config *genai.GenerateContentConfig) error {
	ctx := context.WithValue(c.ctx, callKey{}, c)
	ctx, c.end = context.WithCancel(ctx)
	if m.timeout > 0 {
		ctx, c.end = context.WithTimeout(ctx, m.timeout)
	}
	var err error
	for _, err = range m.client.Models.GenerateContentStream(ctx, m.cfg.Model, contents, config) {
		if err != nil {
			break
		}
	}
	switch {
	case c.ctx.Err() != nil:
		return context.Cause(c.ctx)
	case c.res == nil && ctx.Err() == nil && !isConnection(err):
		return wire.Refuse(fmt.Errorf("gemini: %s", wire.Excerpt(c.secrets.Hide(fmt.Sprint(err)))))
	case c.res == nil:
		return c.broken(err)
	case c.res.StatusCode >= 400:
		failed := httpError(c.res).hide(c.secrets)
		return agent.StatusError(failed.Status, failed.header, failed)
	case c.res.StatusCode >= 300:
		return wire.Refuse(fmt.Errorf("gemini: the service redirects with status %d; set the BaseURL to its address",
			c.res.StatusCode))
	}
	return nil
}

// isConnection says that an error is of the connection, and not of the SDK that refuses the request.
func isConnection(err error) bool {
	var of *url.Error
	return errors.As(err, &of)
}

// broken is the error of a connection that is not there, or no longer.
func (c *call) broken(err error) error {
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return agent.StatusError(0, nil, fmt.Errorf("gemini: %w", c.secrets.Broken(err)))
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
		return agent.StatusError(said.Status, said.header, said)
	}
	return wire.Malformed(fmt.Errorf("gemini: %s", wire.Excerpt(c.secrets.Hide(err.Error()))))
}

// response is what the events came to.
func (c *call) response(answer *answer) (agent.Response, error) {
	if media, _, _ := mime.ParseMediaType(c.res.Header.Get("Content-Type")); answer.events == 0 &&
		media != "text/event-stream" {
		return agent.Response{}, c.failure(fmt.Errorf("the service sends %q and no event", media))
	}
	response, err := answer.response()
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return agent.Response{}, c.broken(errors.New("the stream ended before the answer did"))
	}
	if err != nil {
		return agent.Response{}, c.failure(err)
	}
	return response, nil
}

func (c *call) close() {
	if c.res != nil {
		c.res.Body.Close()
	}
	if c.end != nil {
		c.end()
	}
}
