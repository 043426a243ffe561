package httpapi

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// body reads the JSON object of a request into a struct: members that it does not know, members that are there twice and values of another
// type are refused with the place where they are. An empty body is an empty object.
func (c *call) body(into any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	control := http.NewResponseController(c.w)
	_ = control.SetReadDeadline(time.Now().Add(c.h.slow)) // not every writer knows how
	text, readErr := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if readErr == nil {
		_ = control.SetReadDeadline(time.Time{}) // or it would end what lasts longer
	} else {
		c.w.Header().Set("Connection", "close") // what is left of the body is not waited for either
	}
	if readErr != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](readErr); tooLarge {
			return readErr
		}
		return invalid("", "the body could not be read to its end")
	}
	if len(text) == 0 {
		return nil
	}
	if err != nil || kind != "application/json" {
		return &problem{Status: http.StatusUnsupportedMediaType, Code: "invalid_input", Field: "Content-Type", Detail: "want application/json"}
	}
	if err := json.Unmarshal(text, into, json.RejectUnknownMembers(true)); err != nil {
		return decodeProblem(err)
	}
	return nil
}

func decodeProblem(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		field := string(wrong.JSONPointer)
		if errors.Is(err, json.ErrUnknownName) {
			return invalid(field, "there is no such member")
		}
		want := "another type"
		if wrong.GoType != nil {
			want = kindName(wrong.GoType.Kind().String())
		}
		return invalid(field, "it is a JSON %s, want %s", wrong.JSONKind, want)
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return invalid(string(wrong.JSONPointer), "the member is there twice")
		}
		return invalid(string(wrong.JSONPointer), "the body is not JSON, at byte %d: %v", wrong.ByteOffset, wrong.Err)
	}
	return invalid("", "the body is not JSON")
}

// kindName is a kind of Go in words of JSON.
func kindName(kind string) string {
	switch {
	case strings.HasPrefix(kind, "int"), strings.HasPrefix(kind, "uint"):
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "string":
		return "a string"
	case kind == "bool":
		return "true or false"
	case kind == "slice":
		return "an array"
	}
	return "an object"
}

// query reads the parameters of a request. The first mistake counts.
type query struct {
	values url.Values
	err    error
}

// query checks that every parameter is one that the route has, and that none but a list is there twice.
func (c *call) query() *query {
	q := &query{}
	if len(c.r.URL.RawQuery) > 8<<10 {
		q.err = invalid("", "the query has more than 8192 bytes")
		return q
	}
	var err error
	if q.values, err = url.ParseQuery(c.r.URL.RawQuery); err != nil {
		q.err = invalid("", "the query is not well formed")
		return q
	}
	for name, values := range q.values {
		i := slices.IndexFunc(c.route.query, func(p param) bool { return p.name == name })
		switch {
		case i < 0 && !(name == "access_token" && c.route.streamToken):
			q.wrong(name, "there is no such parameter")
		case len(values) > 1 && (i < 0 || !c.route.query[i].list):
			q.wrong(name, "the parameter is there %d times", len(values))
		case len(values) > 100:
			q.wrong(name, "the parameter is there %d times, want at most 100", len(values))
		}
	}
	return q
}

func (q *query) wrong(name, format string, args ...any) {
	if q.err == nil {
		q.err = invalid(name, format, args...)
	}
}

func (q *query) text(name string) string { return q.values.Get(name) }

func (q *query) list(name string) []string { return q.values[name] }

func (q *query) flag(name string) bool {
	switch text := q.values.Get(name); text {
	case "", "false":
		return false
	case "true":
		return true
	default:
		q.wrong(name, "it is %.32q, want true or false", text)
	}
	return false
}

// number is a whole number within bounds; without it the default.
func (q *query) number(name string, least, most, usual uint64) uint64 {
	text := q.values.Get(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n < least || n > most {
		q.wrong(name, "it is %.32q, want %d..%d", text, least, most)
	}
	return n
}

func (q *query) instant(name string) time.Time {
	text := q.values.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.wrong(name, "it is %.64q, want a time like 2026-01-31T17:00:00Z", text)
	}
	return t
}

// tags are given as tag=key=value.
func (q *query) tags(name string) map[string]string {
	tags := map[string]string{}
	for _, pair := range q.values[name] {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			q.wrong(name, "it is %.64q, want key=value", pair)
		}
		tags[key] = value
	}
	return tags
}

// id is the execution that the path names, if the principal may see it.
func (c *call) id() (flowfabric.ExecutionID, error) {
	id, err := flowfabric.ParseExecutionID(c.r.PathValue("id"))
	if err != nil {
		return id, invalid("id", "%.80q is no id of an execution", c.r.PathValue("id"))
	}
	if len(c.who.Namespaces) > 0 || c.r.Method == http.MethodPost {
		s, err := c.h.client.Get(c.ctx(), id)
		c.acting("", s.Route.Namespace)
		switch {
		case len(c.who.Namespaces) == 0: // whoever changes it is told what is wrong
		case errors.Is(err, flowfabric.ErrResultPurged), err == nil && !c.who.may(s.Route.Namespace): // nobody knows where that was
			return id, &problem{Status: http.StatusNotFound, Code: "execution_not_found", Detail: "the execution does not exist: it was never created, or it was purged"}
		case err != nil:
			return id, err
		}
	}
	return id, nil
}

// namespace is the one that a request names, or the principal's default; "" is the client's.
func (c *call) namespace(named string) (string, error) {
	if named == "" && len(c.who.Namespaces) > 0 {
		return c.who.Namespaces[0], nil
	}
	if named != "" && !c.who.may(named) {
		return "", &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "namespace", Detail: c.who.Name + " may do nothing in this namespace"}
	}
	return named, nil
}
