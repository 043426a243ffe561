package mcptools

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK decodes a result into its own type and drops what that does not have: tasks, and what tools and servers say
// of them. A method that the SDK does not know has a result type of ours. So requests whose result is wanted whole have
// a name with this prefix for the SDK, and lose it where they leave the process.
const unknown = "flowfabric/"

// whole is a result as the server wrote it.
type whole struct {
	sdk.ResultBase
	text json.RawMessage
}

// UnmarshalJSON keeps everything.
func (w *whole) UnmarshalJSON(text []byte) error {
	w.text = slices.Clone(text)
	return nil
}

// params are those of tools/call and of tasks.
type params struct {
	sdk.ParamsBase
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Task      *taskParams     `json:"task,omitempty"`
	TaskID    string          `json:"taskId,omitempty"`
}

// asWhole are the methods of the SDK whose result the session reads before the SDK does.
var asWhole = map[string]func() sdk.Result{
	"initialize": func() sdk.Result { return new(sdk.InitializeResult) },
	"tools/list": func() sdk.Result { return new(sdk.ListToolsResult) },
}

// register makes a client send requests under their names with the prefix.
func register(c *sdk.Client, seen func(method string, result json.RawMessage)) error {
	for _, method := range []string{"initialize", "tools/list", "tools/call", "tasks/get", "tasks/result",
		"tasks/cancel"} {
		if err := sdk.AddSendingCustomMethod[*params, *whole](c, unknown+method); err != nil {
			return err
		}
	}
	c.AddSendingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, q sdk.Request) (sdk.Result, error) {
			into, ok := asWhole[method]
			if !ok {
				return next(ctx, method, q)
			}
			r, err := next(ctx, unknown+method, q)
			if err != nil {
				return nil, err
			}
			text := r.(*whole).text
			result := into()
			if err := json.Unmarshal(text, result); err != nil {
				return nil, fmt.Errorf("the result of %s: %w", method, err)
			}
			seen(method, text)
			return result, nil
		}
	})
	return nil
}

// renaming takes the prefix off on a transport that is a stream.
type renaming struct{ sdk.Transport }

// Connect connects.
func (r renaming) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := r.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return renamingConnection{c}, nil
}

type renamingConnection struct{ sdk.Connection }

// Write writes a message.
func (c renamingConnection) Write(ctx context.Context, m jsonrpc.Message) error {
	if q, ok := m.(*jsonrpc.Request); ok && strings.HasPrefix(q.Method, unknown) {
		renamed := *q
		renamed.Method = strings.TrimPrefix(q.Method, unknown)
		m = &renamed
	}
	return c.Connection.Write(ctx, m)
}

// rewriting is a client that takes the prefix off requests, adds headers and bounds answers.
func rewriting(c *http.Client, endpoint string, header func(context.Context) (http.Header, error)) *http.Client {
	own := *c
	base := own.Transport
	if base == nil {
		base = http.DefaultTransport
	}
	to, _ := url.Parse(endpoint)
	own.Transport = &rewriter{base: base, to: to, header: header}
	return &own
}

type rewriter struct {
	base   http.RoundTripper
	to     *url.URL
	header func(context.Context) (http.Header, error)
}

// RoundTrip makes a request.
func (r *rewriter) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	if err := r.prepare(q); err != nil {
		if q.Body != nil {
			_ = q.Body.Close()
		}
		return nil, err
	}
	answer, err := r.base.RoundTrip(q)
	if err == nil && !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		answer.Body = &bounded{answer.Body, maxMessage}
	}
	return answer, err
}

func (r *rewriter) prepare(q *http.Request) error {
	if r.header != nil && r.to != nil && q.URL.Scheme == r.to.Scheme && q.URL.Host == r.to.Host {
		header, err := r.header(q.Context())
		if err != nil {
			return fmt.Errorf("the function Header: %w", err)
		}
		for name, values := range header {
			q.Header[http.CanonicalHeaderKey(name)] = values
		}
	}
	if q.Method != http.MethodPost || q.Body == nil {
		return nil
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return err
	}
	_ = q.Body.Close()
	if bytes.Contains(body, []byte(unknown)) {
		if body, err = renamed(body, q.Header); err != nil {
			return err
		}
	}
	q.ContentLength = int64(len(body))
	q.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	q.Body, err = q.GetBody()
	return err
}

// renamed takes the prefix off a request, and sets the headers that proxies route by.
func renamed(body []byte, header http.Header) ([]byte, error) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id,omitempty"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params,omitempty"`
	}
	if json.Unmarshal(body, &m) != nil || !strings.HasPrefix(m.Method, unknown) {
		return body, nil
	}
	m.Method = strings.TrimPrefix(m.Method, unknown)
	var about struct{ Name, TaskID string }
	_ = json.Unmarshal(m.Params, &about)
	if header.Get("Mcp-Method") != "" {
		header.Set("Mcp-Method", m.Method)
		if name := about.Name + about.TaskID; name != "" {
			header.Set("Mcp-Name", headerText(name))
		}
	}
	return json.Marshal(m)
}

// headerText is a text as the value of a header.
func headerText(text string) string {
	plain := !strings.HasPrefix(text, "=?") && strings.TrimSpace(text) == text
	for i := range len(text) {
		plain = plain && text[i] >= ' ' && text[i] <= '~'
	}
	if plain {
		return text
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(text)) + "?="
}

var errTooLong = errors.New("the answer has more than 16 MiB")

// bounded is a body that fails beyond a number of bytes.
type bounded struct {
	io.ReadCloser
	left int
}

// Read reads.
func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}
