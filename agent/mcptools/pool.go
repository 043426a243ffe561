package mcptools

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/handler"
)

// Config is what the servers of a [Pool] have in common. The zero value is good.
type Config struct {
	// Logger is told of sessions that are lost, and of tools that are left out. Default slog.Default().
	Logger *slog.Logger
}

// Pool has the sessions with MCP servers of a process, one for each server, which all runs share. A session begins
// when it is first needed; one that is lost is replaced when it is needed again. Make it with [New], once for a worker,
// and close it after the worker. Its methods may be called concurrently.
type Pool struct {
	log     *slog.Logger
	entries []*entry
	ended   context.Context
	end     context.CancelCauseFunc
	watch   conc.WaitGroup
	close   func()
}

// entry is a server of a pool.
type entry struct {
	Server
	pool  *Pool
	http  *http.Client  // of a server with a URL
	turn  chan struct{} // held by whoever has to do with now
	now   *session
	close func()

	mu   sync.Mutex
	made map[[sha256.Size]byte]agent.Tool // by definition and name
}

var errClosed = errors.New("the pool is closed")

// New makes a pool of servers with different names; it connects to none. Errors wrap flowfabric.ErrConfig and name the
// server and the field.
func New(cfg Config, servers ...Server) (*Pool, error) {
	p := &Pool{log: cmp.Or(cfg.Logger, slog.Default())}
	names := map[string]bool{}
	for _, s := range servers {
		if err := s.validate(); err != nil {
			return nil, err
		}
		if names[s.Name] {
			return nil, s.invalid("another server has the name, too")
		}
		names[s.Name] = true
		e := &entry{Server: s, pool: p, turn: make(chan struct{}, 1), close: func() {},
			made: map[[sha256.Size]byte]agent.Tool{}}
		if s.URL != "" {
			base := s.HTTPClient
			if base == nil {
				own := http.DefaultTransport.(*http.Transport).Clone()
				base, e.close = &http.Client{Transport: own}, own.CloseIdleConnections
			}
			e.http = rewriting(base, s.URL, s.Header)
		}
		p.entries = append(p.entries, e)
	}
	p.ended, p.end = context.WithCancelCause(context.Background())
	p.close = sync.OnceFunc(p.shut)
	return p, nil
}

// Close ends all sessions, and the programs of servers with a Command, and waits for that, which may take some seconds.
// Calls that are under way fail as if their server were away; so do later ones. It may be called again.
func (p *Pool) Close() { p.close() }

func (p *Pool) shut() {
	p.end(errClosed)
	var closing conc.WaitGroup
	for _, e := range p.entries {
		closing.Go(func() {
			e.turn <- struct{}{} // for good
			if e.now != nil {
				e.now.end()
			}
			e.close()
		})
	}
	closing.Wait()
	p.watch.Wait()
}

// session is one connection to a server.
type session struct {
	*sdk.ClientSession
	entry *entry
	gone  chan struct{} // closed when the connection is

	mu      sync.Mutex
	legacy  bool              // tasks of protocol 2025-11-25
	support map[string]string // what tools say of them
	list    []definition      // nil: not known, or not any more
	listed  time.Time
	changes int           // how often the server said that its tools changed
	asking  chan struct{} // held by whoever asks for them
}

// session is that of a server, a new one if there is none or the last one is gone.
func (e *entry) session(ctx context.Context) (*session, error) {
	select {
	case e.turn <- struct{}{}:
	case <-e.pool.ended.Done():
		return nil, errClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	defer func() { <-e.turn }()
	if e.now != nil && !e.now.lost() {
		return e.now, nil
	}
	if e.now != nil {
		e.now.end()
		e.now = nil
	}
	if e.pool.ended.Err() != nil {
		return nil, errClosed
	}
	s, err := e.connect(ctx)
	if err != nil {
		return nil, err
	}
	e.now = s
	return s, nil
}

func (e *entry) connect(ctx context.Context) (*session, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.pool.ended, func() { cancel(errClosed) })()
	t, told, err := e.transport(ctx, e.http)
	if err != nil {
		return nil, err
	}
	s := &session{entry: e, gone: make(chan struct{}), support: map[string]string{}, asking: make(chan struct{}, 1)}
	capabilities := &sdk.ClientCapabilities{}
	if !e.NoTasks {
		capabilities.AddExtension(extension, nil)
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "flowfabric", Version: "1"}, &sdk.ClientOptions{
		Logger:                 slog.New(slog.DiscardHandler), // of the protocol's details
		Capabilities:           capabilities,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { s.forget() },
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
	})
	if err := register(c, s.seen); err != nil {
		return nil, err
	}
	s.ClientSession, err = c.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: e.Protocol})
	if err != nil {
		return nil, fmt.Errorf("connect: %w%s", cmp.Or(context.Cause(ctx), err), told())
	}
	e.pool.watch.Go(func() {
		err := s.Wait()
		close(s.gone)
		if e.pool.ended.Err() == nil {
			e.pool.log.Warn("mcptools: the session is over", "server", e.Name, "error", err)
		}
	})
	return s, nil
}

// lost says that the connection is closed.
func (s *session) lost() bool {
	select {
	case <-s.gone:
		return true
	default:
		return false
	}
}

func (s *session) end() {
	_ = s.Close()
	<-s.gone
}

// seen keeps what the SDK drops.
func (s *session) seen(method string, result json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case "initialize":
		var r struct {
			Capabilities struct {
				Tasks struct {
					Requests struct {
						Tools struct{ Call json.RawMessage }
					}
				}
			}
		}
		s.legacy = json.Unmarshal(result, &r) == nil && len(r.Capabilities.Tasks.Requests.Tools.Call) > 0
	case "tools/list":
		var r struct {
			Tools []struct {
				Name      string
				Execution struct{ TaskSupport string }
			}
		}
		_ = json.Unmarshal(result, &r)
		for _, t := range r.Tools {
			s.support[t.Name] = t.Execution.TaskSupport
		}
	}
}

// forget makes the next call ask for the tools again.
func (s *session) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = nil
	s.changes++
}

// away is the error of a server that cannot be reached.
type away struct {
	server string
	sent   bool // perhaps
	err    error
}

func (a *away) Error() string {
	if a.sent {
		return fmt.Sprintf("the connection to the server %s was lost during the call, which may have happened: %v",
			a.server, a.err)
	}
	return fmt.Sprintf("the server %s cannot be reached: %v", a.server, a.err)
}

func (a *away) Unwrap() error { return a.err }

// errTimeout is the cause of a context that CallTimeout ended.
var errTimeout = errors.New("the server did not answer in time")

// with does something with the session of a server, within CallTimeout. Its errors: outer's cause; errTimeout; an
// [*away]; a *jsonrpc.Error of the server; what do made itself.
func (e *entry) with(outer context.Context, do func(context.Context, *session) error) error {
	ctx, cancel := context.WithTimeoutCause(outer, e.CallTimeout, errTimeout)
	defer cancel()
	for again := false; ; again = true {
		s, err := e.session(ctx)
		reached := err == nil
		if reached {
			err = do(ctx, s)
		}
		var told *jsonrpc.Error
		switch {
		case err == nil:
			return nil
		case outer.Err() != nil:
			return context.Cause(outer)
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case reached && !again && (errors.Is(err, sdk.ErrSessionMissing) || errors.Is(err, sdk.ErrConnectionClosed)):
			// The server has forgotten the session, or the connection was closed before: nothing was done.
			s.end()
		case reached && errors.As(err, &told) && !local(told):
			return told
		case errors.As(err, new(*refusal)):
			return err
		default:
			return &away{server: e.Name, err: err}
		}
	}
}

// local says that an error was made by the SDK's transport and not by the server.
func local(err *jsonrpc.Error) bool { return err.Code >= -32005 && err.Code <= -32003 }

// categoryAway is the category of attempts that fail because of a server.
const categoryAway flowfabric.Category = "mcp_away"

// fails makes an error of a server one that fails the attempt.
func (e *entry) fails(err error) error {
	err = handler.Category(categoryAway, fmt.Errorf("mcptools: %w", err))
	if e.RetryAway > 0 {
		err = handler.RetryAfter(e.RetryAway, err)
	}
	return err
}
