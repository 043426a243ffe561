package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/httpapi"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/roundtrip"
)

// maxAnswer bounds an answer of the API: a page of a thousand executions with their tags is far below it.
const maxAnswer = 64 << 20

// door asks the HTTP API: that of a process that serves it, or its handler in this process, over the store that --url
// names.
type door struct {
	base   string
	token  string
	send   http.RoundTripper
	client *client.Client // of the store; nil with a process that serves
	close  func()
	status int    // of the last answer
	prefer string // how long the next answer may take

	silence time.Duration // after which events are asked for again
}

// door opens the door that --url leads to.
func (a *app) door(ctx context.Context, first boots) (*door, error) {
	url, err := a.location()
	if err != nil {
		return nil, err
	}
	if served(url) {
		if a.by != "" {
			return nil, usage("--by goes with the URL of a store: a process that serves knows you by your token")
		}
		transport := http.DefaultTransport.(*http.Transport).Clone()
		token := cmp.Or(a.chosen.Token, os.Getenv("FLOWFABRIC_TOKEN"))
		return &door{base: strings.TrimRight(url, "/"), token: token, send: transport,
			close: transport.CloseIdleConnections, silence: silence}, nil
	}
	by, err := a.who()
	if err != nil {
		return nil, err
	}
	c, err := a.client(ctx, first)
	if err != nil {
		return nil, err
	}
	handler, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Logger: slog.New(slog.DiscardHandler),
		Authorize: func(*http.Request) (httpapi.Principal, error) {
			return httpapi.Principal{Name: by, Role: httpapi.Admin}, nil
		}})
	if err != nil {
		c.Close()
		return nil, err
	}
	return &door{base: "http://here", send: roundtrip.To{Handler: handler}, client: c, close: func() {
		handler.Close()
		c.Close()
	}}, nil
}

// served tells whether a URL is that of a process that serves the API, not of a store.
func served(url string) bool {
	return strings.HasPrefix(url, "http://") || strings.HasPrefix(url, "https://")
}

// request makes one request. A refusal is a [refusal].
func (d *door) request(ctx context.Context, method, path string, query url.Values, content io.Reader,
	header http.Header) (*http.Response, error) {
	at := d.base + path
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, method, at, content)
	if err != nil {
		return nil, usage("%v", err)
	}
	request.Header = header
	if d.token != "" {
		header.Set("Authorization", "Bearer "+d.token)
	}
	reply, err := d.send.RoundTrip(request)
	if err != nil && ctx.Err() != nil { // not the fault of whoever was asked
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", flowfabric.ErrTransport, err)
	}
	if d.status = reply.StatusCode; d.status < http.StatusMultipleChoices { // a redirection leads away from the API
		return reply, nil
	}
	defer reply.Body.Close()
	no := &refusal{ended: ctx.Err()}
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil || json.Unmarshal(text, &no.Problem) != nil || no.Code == "" {
		// somebody else answered, such as a proxy
		return nil, fmt.Errorf("%w: %s %s: %s", flowfabric.ErrTransport, method, path, reply.Status)
	}
	return nil, no
}

// of checks that an answer is of the API.
func (d *door) of(reply *http.Response, media string) error {
	if is := reply.Header.Get("Content-Type"); !strings.HasPrefix(is, media) {
		return fmt.Errorf("%w: %s: the answer is %q, not of the API", flowfabric.ErrTransport, reply.Request.URL.Path,
			is)
	}
	return nil
}

// ask makes one request and reads its answer into a value, which may be nil.
func (d *door) ask(ctx context.Context, method, path string, query url.Values, body, into any) error {
	header, content := http.Header{}, io.Reader(nil)
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		content = bytes.NewReader(text)
		header.Set("Content-Type", "application/json")
	}
	if d.prefer != "" {
		header.Set("Prefer", d.prefer)
	}
	reply, err := d.request(ctx, method, path, query, content, header)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%w: %w", flowfabric.ErrTransport, err)
	}
	if len(text) > 0 {
		if err := d.of(reply, "application/json"); err != nil {
			return err
		}
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = bytes.TrimSpace(text)
		return nil
	}
	if into == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s: the server's answer is not understood by this version: %w", method, path, err)
	}
	return nil
}

// refusal is what the API answers when it does not do something, as an error of its code.
type refusal struct {
	apiv1.Problem
	ended error // of the context, if that is why
}

func (e *refusal) Error() string {
	at := strings.TrimPrefix(e.Field, "/")
	if at == "" || strings.Contains(e.Detail, ": "+at+" ") {
		return e.Detail
	}
	return at + ": " + e.Detail
}

// Unwrap is the error of the library that has the code; what the API alone refuses is what it is like.
func (e *refusal) Unwrap() []error {
	like := error(denied.New("", e.Code))
	if denied.ClassOf(like) == fault.Bug {
		switch {
		case e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden:
			like = flowfabric.ErrAuth
		case e.Status == http.StatusNotFound:
			like = flowfabric.ErrNotFound
		case e.Status < http.StatusInternalServerError:
			like = errRefused
		}
	}
	if e.ended != nil {
		return []error{like, e.ended}
	}
	return []error{like}
}

// errRefused is what the API refuses for a reason of its own.
var errRefused = errors.New("refused")
