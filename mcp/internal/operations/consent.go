package operations

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// protocolWithRounds is the first version in which the server asks by the answer of the call, which the client then
// repeats. Before, the server asks while the call goes on.
const protocolWithRounds = "2026-07-28"

// maxShown bounds what a person is shown of a change, in bytes.
const maxShown = 4 << 10

// agreed asks a person whether a change may be made. The result is the call's answer if it may not be made, or not
// yet; nil if it may.
func (s *Server) agreed(ctx context.Context, call *sdk.CallToolRequest, who caller, q *request) *sdk.CallToolResult {
	if !showsForms(call.ClientCapabilities()) {
		if q.confirmed {
			return nil
		}
		return refused("confirmation_required", "nothing was done. Tell your user what this would do ("+
			q.summary+", with the arguments of this call). If they agree, call it again with confirm: true")
	}
	form := &sdk.ElicitParams{Mode: "form", Message: question(who, q), RequestedSchema: &jsonschema.Schema{
		Type: "object", Required: []string{argConfirm}, Properties: map[string]*jsonschema.Schema{
			argConfirm: {Type: "boolean", Title: "Make this change"}}}}
	var answer *sdk.ElicitResult
	if call.ProtocolVersion() >= protocolWithRounds {
		state := s.seal(who, q)
		given, ok := call.Params.InputResponses[argConfirm].(*sdk.ElicitResult)
		if !ok || !hmac.Equal([]byte(state), []byte(call.Params.RequestState)) {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{argConfirm: form}, RequestState: state}
		}
		answer = given
	} else {
		var err error
		if answer, err = call.Session.Elicit(ctx, form); err != nil {
			s.cfg.Logger.Warn("mcp: a change was not confirmed", "tool", q.tool, "error", err)
			return refused("not_confirmed", "nothing was done: your user could not be asked")
		}
	}
	if answer.Action != "accept" || answer.Content[argConfirm] != true {
		return refused("declined", "nothing was done: your user did not agree. Do not ask again unless they say so")
	}
	return nil
}

// question is what a person is asked. It shows the arguments as they will be sent.
func question(who caller, q *request) string {
	arguments := map[string]any{}
	for name, value := range q.arguments {
		if q.place[name] != "tool" {
			arguments[name] = value
		}
	}
	text, _ := json.Marshal(arguments) // they were decoded from JSON
	shown := plain(string(text))
	if len(shown) > maxShown {
		shown = fmt.Sprintf("%.*s… (%d bytes in all)", maxShown, shown, len(shown))
	}
	return fmt.Sprintf("%s wants to change FlowFabric: %s.\n%s %s", plain(who.assistant), q.summary, q.tool, shown)
}

// seal binds the question of a call to its caller and its arguments: another call needs another consent.
func (s *Server) seal(who caller, q *request) string {
	text, _ := json.Marshal([]any{who.token, q.tool, q.target, q.query, q.body}) // made of JSON
	mac := hmac.New(sha256.New, s.cfg.Key)
	mac.Write(text)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func showsForms(c *sdk.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}
