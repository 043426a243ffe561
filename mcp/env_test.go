package mcp_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/mcp"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var quiet = slog.New(slog.DiscardHandler)

// Topic and Article are what most tools here take and give.
type Topic struct {
	Topic string `json:"topic" jsonschema:"what to write about"`
	Words int    `json:"words,omitempty"`
}
type Article struct {
	Title string `json:"title"`
	Text  string `json:"text"`
}

type Sign struct {
	Name string `json:"name"`
	Sure bool   `json:"sure"`
}

var (
	write   = handler.Define[Topic, Article]("write-article", flowfabric.Retries(0))
	shout   = handler.Define[string, string]("shout.loud", flowfabric.Retries(0))
	publish = handler.Define[Topic, string]("publish", flowfabric.Retries(0))
	sign    = handler.Define[struct{}, Sign]("sign", flowfabric.Retries(0))
	duo     = handler.Define[struct{}, []string]("duo", flowfabric.Retries(0))
	note    = handler.Define[struct{}, string]("note", flowfabric.Retries(0))
	broken  = handler.Define[string, string]("broken", flowfabric.Retries(0))
	chat    = handler.Define[struct{}, string]("chat", flowfabric.Retries(0))
	stuck   = handler.Define[struct{}, string]("stuck", flowfabric.Retries(0))
)

var errBroken = errors.New("the printer is out of paper")

// bindings are handlers of the kinds above.
func bindings() []handler.Binding {
	return []handler.Binding{
		handler.Bind(write, func(ctx context.Context, t *handler.Task, in Topic) (Article, error) {
			for _, word := range []string{"all", "about", in.Topic} {
				if err := t.Frame(ctx, "token", word); err != nil {
					return Article{}, err
				}
			}
			return Article{Title: in.Topic, Text: "all about " + in.Topic}, t.Frame(ctx, "log", "not for the client")
		}),
		handler.Bind(shout, handler.Plain(func(_ context.Context, in string) (string, error) { return in + "!", nil })),
		handler.Bind(publish, func(ctx context.Context, t *handler.Task, in Topic) (string, error) {
			answer, err := t.Ask(ctx, "approval", suspend.Question{Title: "Publish " + in.Topic + "?"})
			return cmp.Or(answer.Choice+" by "+answer.By+": "+answer.Comment, "-"), err
		}),
		handler.Bind(sign, func(ctx context.Context, t *handler.Task, _ struct{}) (Sign, error) {
			return handler.Await[Sign](ctx, t, "signature")
		}),
		handler.Bind(note, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			return handler.Await[string](ctx, t, "note")
		}),
		handler.Bind(duo, func(ctx context.Context, t *handler.Task, _ struct{}) ([]string, error) {
			r, err := t.Wait(ctx, "both", suspend.AllOf(suspend.Signal("first"), suspend.Signal("second")))
			var answers []string
			for _, s := range r.Signals {
				answers = append(answers, s.WaitpointKey+"="+string(s.Payload))
			}
			return answers, err
		}),
		handler.Bind(chat, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			var said string
			for {
				word, err := handler.Receive[string](ctx, t, "turn")
				if err != nil || word == "bye" {
					return said, err
				}
				said += word + " "
			}
		}),
		handler.Bind(broken, func(_ context.Context, _ *handler.Task, how string) (string, error) {
			switch how {
			case "panic":
				panic("a secret detail")
			case "category":
				return "", handler.Category("out_of_paper", errBroken)
			case "cancel":
				return "", handler.Cancel("not today")
			}
			return "", errBroken
		}),
		handler.Bind(stuck, func(ctx context.Context, t *handler.Task, _ struct{}) (string, error) {
			err := t.Progress(ctx, 10, "digging")
			<-ctx.Done()
			return "", errors.Join(err, context.Cause(ctx))
		}),
	}
}

func kinds() []mcp.Kind {
	return []mcp.Kind{
		mcp.Tool(write, "Writes an article about a topic."),
		mcp.Tool(shout, "Says it louder.", mcp.Tasks(mcp.TasksNever)),
		mcp.Tool(publish, "Publishes an article after somebody has agreed.", mcp.Title("Publish")),
		mcp.Tool(sign, "Collects a signature.", mcp.Waitpoint[Sign]("signature", "Please sign.")),
		mcp.Tool(note, "Takes a note."),
		mcp.Tool(duo, "Asks two things.", mcp.Waitpoint[string]("first", "First?"),
			mcp.Waitpoint[int]("second", "Second?")),
		mcp.Tool(chat, "Talks until somebody says bye."),
		mcp.Tool(broken, "Fails."),
		mcp.Tool(stuck, "Takes its time."),
	}
}

// env is a worker, a client, and what a test makes of them.
type env struct {
	ctx    context.Context
	client *client.Client
}

// start runs a worker on the embedded server and connects a client, until the test ends.
func start(t *testing.T, more ...handler.Binding) *env {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	c, err := client.Connect(ctx, client.Config{CallTimeout: time.Hour, SubmitTimeout: time.Hour, URL: "embedded://",
		Logger: quiet})
	must.No(t, err)
	worker, err := runtime.New(runtime.Config{URL: "embedded://", Logger: quiet,
		Namespaces: []string{"acme", "globex"}}, append(bindings(), more...)...)
	must.No(t, err)
	var running conc.WaitGroup
	running.Go(func() { _ = worker.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		running.Wait()
		c.Close()
	})
	return &env{ctx: ctx, client: c}
}

// principals are whom the test's Authorize knows, by bearer token.
var principals = map[string]httpapi.Principal{
	"ada":    {Name: "ada", Role: httpapi.Operator},
	"grace":  {Name: "grace", Role: httpapi.Operator},
	"pat":    {Name: "pat", Role: httpapi.Producer},
	"viewer": {Name: "viewer", Role: httpapi.Viewer},
	"acme":   {Name: "acme", Role: httpapi.Operator, Namespaces: []string{"acme"}},
}

func authorize(q *http.Request) (httpapi.Principal, error) {
	p, ok := principals[q.Header.Get("Authorization")[min(len("Bearer "), len(q.Header.Get("Authorization"))):]]
	if !ok {
		return p, errors.New("not known")
	}
	return p, nil
}

func (e *env) server(t *testing.T, cfg mcp.Config, kinds ...mcp.Kind) *mcp.Server {
	t.Helper()
	cfg.Logger = cmp.Or(cfg.Logger, quiet)
	s, err := mcp.New(e.client, cfg, kinds...)
	must.No(t, err)
	return s
}

// serve serves over HTTP and returns the address.
func (e *env) serve(t *testing.T, s *mcp.Server) string {
	t.Helper()
	h, err := s.HTTP()
	must.No(t, err)
	return e.listen(t, h)
}

func (e *env) listen(t *testing.T, h http.Handler) string {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	return web.URL
}

// bearer adds a token to requests.
type bearer string

func (b bearer) RoundTrip(q *http.Request) (*http.Response, error) {
	q = q.Clone(q.Context())
	q.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(q)
}

// connect is the SDK's own client over HTTP.
func (e *env) connect(t *testing.T, url, token string, opts *sdk.ClientOptions) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts)
	session, err := c.Connect(e.ctx, &sdk.StreamableClientTransport{Endpoint: url,
		HTTPClient: &http.Client{Transport: bearer(token)}, MaxRetries: -1}, nil)
	must.No(t, err)
	t.Cleanup(func() { _ = session.Close(); http.DefaultTransport.(*http.Transport).CloseIdleConnections() })
	return session
}

// beside is the SDK's own client in this process, as over stdio; version is the protocol's.
func (e *env) beside(t *testing.T, s *mcp.Server, opts *sdk.ClientOptions, version string) *sdk.ClientSession {
	t.Helper()
	ours, theirs := sdk.NewInMemoryTransports()
	var serving conc.WaitGroup
	serving.Go(func() { _ = s.Run(e.ctx, ours) })
	session, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, opts).Connect(e.ctx, theirs,
		&sdk.ClientSessionOptions{ProtocolVersion: version})
	must.No(t, err)
	t.Cleanup(func() { _ = session.Close(); serving.Wait() })
	return session
}

// until waits for a condition.
func (e *env) until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		if e.ctx.Err() != nil {
			t.Fatal("waited too long: " + what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func text(r *sdk.CallToolResult) string {
	for _, c := range r.Content {
		if t, ok := c.(*sdk.TextContent); ok {
			return t.Text
		}
	}
	return ""
}
