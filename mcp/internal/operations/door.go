package operations

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// Door is where the HTTP API is: a process that serves it, or its handler in this process.
type Door struct {
	Base string            // such as https://flows.example.com, without a slash at its end
	Send http.RoundTripper // that of net/http, or of internal/roundtrip
}

// caller is on whose behalf a request is made.
type caller struct {
	token     string // "": the door needs none
	assistant string // as it calls itself; "": the server itself asks
}

// maxAnswer bounds an answer of the API, which is kept in memory: the input of an execution in base64 fits.
const maxAnswer = 8 << 20

// problem is an answer that refuses.
type problem struct {
	Status int    `json:"status"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Field  string `json:"field"`
}

func (p *problem) Error() string {
	at, text := strings.TrimPrefix(p.Field, "/"), p.Detail
	if at != "" && !strings.Contains(text, ": "+at+" ") {
		text = at + ": " + text
	}
	return p.Code + ": " + text
}

// ask makes one request and returns the answer. A refusal is a *problem; any other error means that nothing is known
// of what was done.
func (d Door) ask(ctx context.Context, who caller, method, path string, query url.Values, body any) ([]byte, error) {
	at := d.Base + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	q, err := http.NewRequestWithContext(ctx, method, at, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		q.Header.Set("Content-Type", "application/json")
	}
	if who.token != "" {
		q.Header.Set("Authorization", "Bearer "+who.token)
	}
	if who.assistant != "" {
		q.Header.Set("X-Assistant", who.assistant)
	}
	reply, err := d.Send.RoundTrip(q)
	if err != nil {
		return nil, fmt.Errorf("the API does not answer: %w", err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer of the API: %w", err)
	}
	if reply.StatusCode >= http.StatusMultipleChoices {
		refused := &problem{}
		if json.Unmarshal(text, refused) != nil || refused.Code == "" {
			return nil, fmt.Errorf("the answer is not of the API: status %d", reply.StatusCode)
		}
		return nil, refused
	}
	if len(text) > maxAnswer {
		return nil, errors.New("the answer has more than 8 MiB: ask for less")
	}
	return text, nil
}

// operations are the names of the operations that a caller may use.
func (d Door) operations(ctx context.Context, who caller) ([]string, error) {
	text, err := d.ask(ctx, who, http.MethodGet, "/v1/me", nil, nil)
	if err != nil {
		return nil, err
	}
	var me struct {
		Operations []string `json:"operations"`
	}
	if err := json.Unmarshal(text, &me); err != nil || len(me.Operations) == 0 {
		return nil, errors.New("the API does not say what this token may do: it is of another version")
	}
	return me.Operations, nil
}
