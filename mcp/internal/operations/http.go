package operations

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/flowfabric/flowfabric-go/internal/slowbody"
)

const (
	maxBody = 2 << 20 // of a request
	// idle is after which silence a session is forgotten; the client then begins another one.
	idle = 30 * time.Minute
)

// HTTP serves over streamable HTTP. Each request needs a bearer token that the door takes, and a session belongs to
// the token that opened it. With open the door lets everybody in, and no token is wanted.
//
// Clients of versions before 2026-07-28 have sessions: only so their name is known, and they can be asked. Requests of
// later versions say both themselves.
func (s *Server) HTTP(open bool) http.Handler {
	choose := func(q *http.Request) *sdk.Server { return q.Context().Value(serverKey{}).(*sdk.Server) }
	sessions := sdk.NewStreamableHTTPHandler(choose, &sdk.StreamableHTTPOptions{SessionTimeout: idle,
		MaxRequestBodyBytes: maxBody})
	single := sdk.NewStreamableHTTPHandler(choose, &sdk.StreamableHTTPOptions{Stateless: true,
		MaxRequestBodyBytes: maxBody, PropagateRequestCancellation: true})
	var h http.Handler = http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Mcp-Session-Id") == "" && q.Header.Get("Mcp-Protocol-Version") >= protocolWithRounds {
			single.ServeHTTP(w, q)
			return
		}
		sessions.ServeHTTP(w, q)
	})
	if !open {
		h = auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			sum := sha256.Sum256([]byte(token))
			return &auth.TokenInfo{UserID: hex.EncodeToString(sum[:]), Extra: map[string]any{"token": token}}, nil
		}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(h)
	}
	return slowbody.Handler(http.NewCrossOriginProtection().Handler(http.HandlerFunc(
		func(w http.ResponseWriter, q *http.Request) {
			kind, token, _ := strings.Cut(q.Header.Get("Authorization"), " ")
			if open {
				token = ""
			} else if !strings.EqualFold(kind, "bearer") || token == "" {
				w.Header().Set("WWW-Authenticate", "Bearer")
				http.Error(w, "unauthorized: a bearer token is missing", http.StatusUnauthorized)
				return
			}
			server, err := s.rights(q.Context(), token)
			if p, ok := errors.AsType[*problem](err); ok {
				if p.Status == http.StatusUnauthorized {
					w.Header().Set("WWW-Authenticate", "Bearer")
				}
				http.Error(w, p.Error(), p.Status)
				return
			}
			if err != nil {
				s.cfg.Logger.Warn("mcp: cannot learn what a token may do", "error", err)
				http.Error(w, "the API does not answer", http.StatusBadGateway)
				return
			}
			h.ServeHTTP(w, q.WithContext(context.WithValue(q.Context(), serverKey{}, server)))
		})))
}

// Close ends the sessions of callers over HTTP. Call it when no more requests come.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, server := range s.byRights {
		for session := range server.Sessions() {
			_ = session.Close()
		}
	}
}

type serverKey struct{}

// rights is the server with the tools that a token may use. There are few: one for each set of operations.
func (s *Server) rights(ctx context.Context, token string) (*sdk.Server, error) {
	may, err := s.cfg.Door.operations(ctx, caller{token: token})
	if err != nil {
		return nil, err
	}
	key := strings.Join(may, " ")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byRights[key] == nil {
		s.byRights[key] = s.serverFor("", may)
	}
	return s.byRights[key], nil
}

// tokenOf is the token of a request over HTTP, or else that of the whole connection.
func tokenOf(call *sdk.CallToolRequest, local string) string {
	if call.Extra != nil && call.Extra.TokenInfo != nil {
		local, _ = call.Extra.TokenInfo.Extra["token"].(string)
	}
	return local
}
