package mcp

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
)

// Config describes a server and its callers. The zero value serves stdio.
type Config struct {
	// Name and Version are what clients see of the server. Default flowfabric and 0.
	Name, Version string
	// Title is what people see instead of the name, and Instructions tell models how the tools belong together.
	// Default none.
	Title, Instructions string

	// Authorize says who makes an HTTP request; [Server.HTTP] requires it. httpapi.Tokens.Authorize reads the file of
	// tokens of "flowfabric serve", and httpapi.Open lets everybody do everything, for a loopback address. The role
	// must be producer, operator or admin; producers call tools and have tasks, and the others also answer questions.
	// A caller with namespaces submits into the first. An error that wraps httpapi.ErrForbidden answers 403, any
	// other 401.
	//
	// Tasks belong to the Name, so it must not be given to somebody else later.
	Authorize func(*http.Request) (httpapi.Principal, error)
	// Local is who is served by [Server.Stdio] and [Server.Run]. Default an admin named local.
	Local httpapi.Principal

	// TaskKey signs the ids of tasks, at least 32 bytes. Processes that share it answer for each other's tasks.
	// Default: a random one, so that tasks are not found any more when the process has ended.
	TaskKey []byte
	// Retention is for how long executions are kept after their end, and so tasks and their results, unless the
	// definition or [Submit] says: whole seconds, 1 s..10 years. Default 24 h.
	Retention time.Duration
	// PollInterval is how often clients are told to ask for a task: 10 ms..1 h. Default 1 s.
	PollInterval time.Duration
	// Logger is told of what goes wrong on this side. Default slog.Default().
	Logger *slog.Logger
}

// Server serves kinds as tools. Make it with [New]. Its methods may be called concurrently.
type Server struct {
	client *client.Client
	cfg    Config
	log    *slog.Logger
	sdk    *sdk.Server
	tasks  taskKey
	byName map[string]*Kind
	byKind map[string]*Kind
}

// extension is the name of the Tasks extension.
const extension = "io.modelcontextprotocol/tasks"

// New makes a server of kinds. The client is the caller's to close, after the server has no more requests. Errors
// wrap flowfabric.ErrConfig and name the field or the tool.
func New(c *client.Client, cfg Config, kinds ...Kind) (*Server, error) {
	cfg.Name, cfg.Version = cmp.Or(cfg.Name, "flowfabric"), cmp.Or(cfg.Version, "0")
	cfg.Retention, cfg.PollInterval = cmp.Or(cfg.Retention, 24*time.Hour), cmp.Or(cfg.PollInterval, time.Second)
	if cfg.Local.Name == "" {
		cfg.Local = httpapi.Principal{Name: "local", Role: httpapi.Admin}
	}
	s := &Server{client: c, cfg: cfg, log: cmp.Or(cfg.Logger, slog.Default()), tasks: cfg.TaskKey,
		byName: map[string]*Kind{}, byKind: map[string]*Kind{}}
	switch {
	case c == nil:
		return nil, fmt.Errorf("%w: mcp: a client is missing", flowfabric.ErrConfig)
	case len(cfg.TaskKey) == 0:
		s.tasks = make(taskKey, 32)
		rand.Read(s.tasks)
	case len(cfg.TaskKey) < 32:
		return nil, fmt.Errorf("%w: mcp: TaskKey has %d bytes, want at least 32", flowfabric.ErrConfig,
			len(cfg.TaskKey))
	}
	if cfg.Retention < time.Second || cfg.Retention%time.Second != 0 {
		return nil, fmt.Errorf("%w: mcp: Retention is %s, want whole seconds, 1 s or more", flowfabric.ErrConfig,
			cfg.Retention)
	}
	if cfg.PollInterval < 10*time.Millisecond || cfg.PollInterval > time.Hour {
		return nil, fmt.Errorf("%w: mcp: PollInterval is %s, want 10ms..1h", flowfabric.ErrConfig, cfg.PollInterval)
	}
	capabilities := &sdk.ServerCapabilities{Tools: &sdk.ToolCapabilities{}}
	capabilities.AddExtension(extension, map[string]any{})
	s.sdk = sdk.NewServer(&sdk.Implementation{Name: cfg.Name, Title: cfg.Title, Version: cfg.Version},
		&sdk.ServerOptions{Instructions: cfg.Instructions, Capabilities: capabilities})
	for _, k := range kinds {
		if err := s.add(k); err != nil {
			return nil, fmt.Errorf("%w: mcp: %w", flowfabric.ErrConfig, err)
		}
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.turns != nil }) {
		if err := s.addTurns(); err != nil {
			return nil, fmt.Errorf("%w: mcp: %w", flowfabric.ErrConfig, err)
		}
	}
	for _, add := range []func() error{
		func() error { return sdk.AddReceivingCustomMethod(s.sdk, "tasks/get", s.getTask) },
		func() error { return sdk.AddReceivingCustomMethod(s.sdk, "tasks/update", s.updateTask) },
		func() error { return sdk.AddReceivingCustomMethod(s.sdk, "tasks/cancel", s.cancelTask) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	s.sdk.AddReceivingMiddleware(s.receive)
	return s, nil
}

// SDK is the server of the Go SDK: add prompts, resources and tools of your own to it. Their handlers find the caller
// with [CallerOf].
func (s *Server) SDK() *sdk.Server { return s.sdk }

func (s *Server) add(k Kind) error {
	if err := k.check(); err != nil {
		return err
	}
	if k.input.err != nil {
		return fmt.Errorf("tool %s: input: %w", k.kind, k.input.err)
	}
	if k.output != nil && k.output.err != nil {
		return fmt.Errorf("tool %s: output: %w", k.kind, k.output.err)
	}
	if other := s.byName[k.name]; other != nil {
		return fmt.Errorf("tool %s: %s has the name %q, too; give one of them another with Name", k.kind, other.kind,
			k.name)
	}
	if s.byKind[k.kind] != nil {
		return fmt.Errorf("tool %s: the kind has two tools", k.kind)
	}
	s.byName[k.name], s.byKind[k.kind] = &k, &k
	t := &sdk.Tool{Name: k.name, Title: k.title, Description: k.description, InputSchema: k.input.shown,
		Annotations: k.hints}
	if k.output != nil {
		t.OutputSchema = k.output.shown
	}
	s.sdk.AddTool(t, func(ctx context.Context, q *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return s.call(ctx, q, &k)
	})
	return nil
}

// receive stands before every request: it says who asks, ends the work for those who are gone, and answers calls with
// tasks.
func (s *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, q sdk.Request) (sdk.Result, error) {
		who, ok := ctx.Value(callerKey{}).(caller)
		if !ok {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
				Message: "the server was not started by Server.HTTP, Stdio or Run"}
		}
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(who.gone, func() { cancel(context.Cause(who.gone)) })()
		call, ok := q.(*sdk.CallToolRequest)
		if !ok || !declares(call.Params.GetMeta()) {
			return next(ctx, method, q)
		}
		if k := s.byName[call.Params.Name]; k != nil && k.tasks != TasksNever && call.Params.RequestState == "" {
			return s.createTask(ctx, call, who, k)
		}
		return next(ctx, method, q)
	}
}

// declares tells whether a request says that its client supports tasks.
func declares(meta map[string]any) bool {
	capabilities, _ := meta[sdk.MetaKeyClientCapabilities].(map[string]any)
	extensions, _ := capabilities["extensions"].(map[string]any)
	_, ok := extensions[extension].(map[string]any)
	return ok
}

// errUndeclared refuses those who want tasks and do not say that they support them.
func errUndeclared() error {
	data, _ := json.Marshal(
		map[string]any{"requiredCapabilities": map[string]any{"extensions": map[string]any{extension: struct{}{}}}})
	return &jsonrpc.Error{Code: sdk.CodeMissingRequiredClientCapabilities,
		Message: "this needs a client that declares the capability " + extension, Data: data}
}

// caller is who makes a request, and until when.
type caller struct {
	httpapi.Principal
	gone context.Context // ends when the caller is
}

type callerKey struct{}

// CallerOf returns the caller of the request whose handler got ctx: for tools of your own beside those of kinds.
func CallerOf(ctx context.Context) (httpapi.Principal, bool) {
	who, ok := ctx.Value(callerKey{}).(caller)
	return who.Principal, ok
}

func withCaller(ctx context.Context, p httpapi.Principal) context.Context {
	return context.WithValue(ctx, callerKey{}, caller{Principal: p, gone: ctx})
}

// calls and answers are what a role may: as over the HTTP API, those who answer for others are operators.
func (c caller) calls() bool   { return c.Role == httpapi.Producer || c.answers() }
func (c caller) answers() bool { return c.Role == httpapi.Operator || c.Role == httpapi.Admin }

func (c caller) may(namespace string) bool {
	return len(c.Namespaces) == 0 || slices.Contains(c.Namespaces, namespace)
}

// actor is flowfabric.By.
type actor interface {
	flowfabric.ActOption
	client.ApproveOption
	client.SendOption
}

func (c caller) by() actor { return flowfabric.By(c.Name) }
