package mcp

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/slowbody"
)

// maxBody bounds a request: an input of 1 MiB, and what is around it.
const maxBody = 2 << 20

// Stdio serves the process that started this one, over standard input and output, until that ends the connection or
// ctx ends. Nothing else may write to standard output. It returns nil when the client has left.
func (s *Server) Stdio(ctx context.Context) error { return s.Run(ctx, &sdk.StdioTransport{}) }

// Run serves one client over any transport of the SDK, as [Config.Local].
func (s *Server) Run(ctx context.Context, t sdk.Transport) error {
	serving, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	err := s.sdk.Run(withCaller(serving, s.cfg.Local), &leaving{Transport: t, left: func() { leave(errLeft) }})
	if errors.Is(err, io.EOF) || context.Cause(serving) == errLeft {
		return nil
	}
	return err
}

// errLeft ends the calls of a client that has left.
var errLeft = errors.New("the client has left")

// leaving is a transport that tells when the client has left: handlers wait for executions, and the SDK waits for
// handlers.
type leaving struct {
	sdk.Transport
	left func()
}

func (l *leaving) Connect(ctx context.Context) (sdk.Connection, error) {
	c, err := l.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &leavingConn{c, l.left}, nil
}

type leavingConn struct {
	sdk.Connection
	left func()
}

// Read also answers what the SDK would take for another request, see [listensToTasks], and what it cannot decode, see
// [wrongParams].
func (c *leavingConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			c.left()
			return nil, err
		}
		q, ok := m.(*jsonrpc.Request)
		if !ok || !q.IsCall() {
			return m, nil
		}
		refused := error(nil)
		if wrong := wrongParams(q.Method, q.Params); wrong != nil {
			refused = wrong
		} else if q.Method == "subscriptions/listen" && listensToTasks(q.Params) {
			refused = errUndeclared()
		} else {
			return m, nil
		}
		if err := c.Connection.Write(ctx, &jsonrpc.Response{ID: q.ID, Error: refused}); err != nil {
			c.left()
			return nil, err
		}
	}
}

// HTTP is the server as streamable HTTP: mount it anywhere, with or without http.StripPrefix. It keeps no sessions,
// so any process behind one address answers any request. Requests of other sites' pages are refused. A call lasts as
// long as its execution, so the http.Server must have no WriteTimeout; it needs a ReadHeaderTimeout; a ReadTimeout
// ends no call. A body has 30 s to come. TLS is the business of the proxy in front. To stop, end the context that its
// BaseContext gives, and then Shutdown does not wait for executions. Errors wrap flowfabric.ErrConfig.
func (s *Server) HTTP() (http.Handler, error) {
	if s.cfg.Authorize == nil {
		return nil, fmt.Errorf("%w: mcp: Authorize is missing", flowfabric.ErrConfig)
	}
	streams := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s.sdk },
		&sdk.StreamableHTTPOptions{Stateless: true, MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true})
	return slowbody.Handler(
		http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
			who, err := s.cfg.Authorize(q)
			switch {
			case errors.Is(err, httpapi.ErrForbidden), err == nil && !(caller{Principal: who}).calls():
				http.Error(w, "forbidden: this caller may not call tools", http.StatusForbidden)
				return
			case err != nil || who.Name == "":
				s.log.Debug("mcp: refused", "error", err)
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "unauthorized: a bearer token is missing or not known", http.StatusUnauthorized)
				return
			}
			if refused := checkRequest(w, q); refused != nil {
				refused.write(w)
				return
			}
			streams.ServeHTTP(w, q.WithContext(withCaller(q.Context(), who)))
		}))), nil
}

// refusal is a JSON-RPC error that is answered before the SDK sees the request.
type refusal struct {
	id     json.RawMessage
	status int
	err    error
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": r.id, "error": r.err})
}

// checkRequest refuses parameters that the SDK cannot decode, and holds requests for tasks to what the extension says
// of them and the SDK does not know: the header that names the task, by which proxies route, must agree with the body.
func checkRequest(w http.ResponseWriter, q *http.Request) *refusal {
	if q.Method != http.MethodPost {
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, maxBody))
	q.Body = io.NopCloser(io.MultiReader(bytes.NewReader(body), failing{err}))
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err != nil || json.Unmarshal(body, &m) != nil || len(m.ID) == 0 {
		return nil // the SDK says so
	}
	if wrong := wrongParams(m.Method, m.Params); wrong != nil {
		return &refusal{m.ID, http.StatusOK, wrong}
	}
	if q.Header.Get("Mcp-Method") != m.Method {
		return nil // the SDK says so
	}
	switch m.Method {
	default:
		return nil
	case "subscriptions/listen":
		if listensToTasks(m.Params) {
			return &refusal{m.ID, http.StatusBadRequest, errUndeclared()}
		}
		return nil
	case "tasks/get", "tasks/update", "tasks/cancel":
	}
	var p struct {
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(m.Params, &p)
	if name := headerText(q.Header.Get("Mcp-Name")); name != p.TaskID {
		return &refusal{m.ID, http.StatusBadRequest,
			&jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: "the header Mcp-Name is not params.taskId"}}
	}
	return nil
}

// failing is the end of a body that could not be read.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) {
	if f.err == nil {
		return 0, io.EOF
	}
	return 0, f.err
}

// headerText is the value of a header that may be encoded (SEP-2243).
func headerText(value string) string {
	inner, ok := strings.CutPrefix(value, "=?base64?")
	inner, closed := strings.CutSuffix(inner, "?=")
	if text, err := base64.StdEncoding.DecodeString(inner); ok && closed && err == nil {
		return string(text)
	}
	return value
}

// listensToTasks tells whether a subscription asks for tasks without saying that its client supports them. The SDK
// drops the tasks: a client that does say so is told that it is subscribed to none, which the extension allows, and
// goes on asking.
func listensToTasks(params json.RawMessage) bool {
	var p struct {
		Meta          map[string]any `json:"_meta"`
		Notifications struct {
			TaskIDs []string `json:"taskIds"`
		} `json:"notifications"`
	}
	return json.Unmarshal(params, &p) == nil && len(p.Notifications.TaskIDs) > 0 && !declares(p.Meta)
}
