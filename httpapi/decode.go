package httpapi

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/internal/integer"
	"github.com/flowfabric/flowfabric-go/internal/misfit"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
)

// body reads the JSON object of a request into a struct. What its schema does not allow and members that are there
// twice are refused with the place where they are. A body without a value is an empty object.
func (c *call) body(into any) error {
	kind, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	text, readErr := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	if readErr != nil {
		c.w.Header().Set("Connection", "close") // what is left of the body is not waited for either
	}
	if readErr != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](readErr); tooLarge {
			return readErr
		}
		return invalid("", "the body could not be read to its end")
	}
	if len(bytes.TrimLeft(text, " \t\r\n")) == 0 {
		text = []byte("{}")
	} else if err != nil || kind != "application/json" {
		return &problem{Status: http.StatusUnsupportedMediaType, Code: "invalid_input", Field: "Content-Type",
			Detail: "want application/json"}
	}
	trusted := slices.Contains(c.route.need, Worker) // what it says must not fail for how it looks
	if text, err = conform(text, bodySchema(reflect.TypeOf(into).Elem()), trusted); err == nil {
		err = json.Unmarshal(text, into, json.RejectUnknownMembers(true))
	}
	return decodeProblem(err)
}

// bodySchemas are the schemas of bodies by their reflect.Type.
var bodySchemas sync.Map

// bodySchema is the schema of a body, as the document has it.
func bodySchema(t reflect.Type) *jsonschema.Schema {
	if s, ok := bodySchemas.Load(t); ok {
		return s.(*jsonschema.Schema)
	}
	s, _ := bodySchemas.LoadOrStore(t, schemaOf(t, true))
	return s.(*jsonschema.Schema)
}

// conform holds a body against its schema: a member that is required and missing, one that the schema lacks, null, a
// text that may not be empty, and a value of another type are refused. It returns the body with whole numbers as Go
// writes them: 1.0 is one. What looks encrypted is refused, unless the sender is trusted.
func conform(text []byte, s *jsonschema.Schema, trusted bool) ([]byte, error) {
	j := judging{in: jsontext.NewDecoder(bytes.NewReader(text)), text: text, trusted: trusted}
	if err := j.value(s); err != nil {
		return nil, err
	}
	if j.out == nil {
		return text, nil
	}
	return append(j.out, text[j.copied:]...), nil
}

type judging struct {
	in     *jsontext.Decoder
	text   []byte
	out    []byte // what replaces the text up to copied; nil: nothing does
	copied int

	trusted bool
}

// jsonTypes are the types of a schema, by the kind of a value.
var jsonTypes = map[jsontext.Kind]string{'n': "null", 't': "boolean", 'f': "boolean", '"': "string", '0': "number",
	'{': "object", '[': "array"}

func (j *judging) value(s *jsonschema.Schema) error {
	is := jsonTypes[j.in.PeekKind()]
	switch {
	case is == "" || s.Type == "": // the decoder says why it is none, or any value will do
		return j.in.SkipValue()
	case s.Type == "integer" && is == "number":
		return j.integer()
	case is != s.Type:
		if err := j.in.SkipValue(); err != nil {
			return err
		}
		return invalid(string(j.in.StackPointer()), "%s", misfit.Type(is, s.Type))
	case is == "object":
		return j.object(s)
	case is == "array":
		return j.array(s)
	}
	v, err := j.in.ReadValue()
	if err == nil && s.MinLength != nil && len(v) == len(`""`) {
		return invalid(string(j.in.StackPointer()), "it is empty: leave it out, or want 1 byte or more")
	}
	if err == nil && !j.trusted && is == "string" && looksSealed(v, s) {
		return invalid(string(j.in.StackPointer()), "it looks like what is encrypted, which nobody may send")
	}
	return err
}

// looksSealed tells whether a text is one that a server with the key would open for whoever reads it.
func looksSealed(v jsontext.Value, s *jsonschema.Schema) bool {
	text, err := jsontext.AppendUnquote(nil, v)
	if err != nil || s.ContentEncoding != "base64" {
		return err == nil && sealed.InText(string(text))
	}
	var begin [6]byte
	n, _ := base64.StdEncoding.Decode(begin[:], text[:min(8, len(text))])
	return sealed.Is(begin[:n])
}

func (j *judging) object(s *jsonschema.Schema) error {
	if _, err := j.in.ReadToken(); err != nil {
		return err
	}
	var there uint64 // which of the required members
	for j.in.PeekKind() == '"' {
		t, err := j.in.ReadToken()
		if err != nil {
			return err
		}
		name := t.String()
		if i := slices.Index(s.Required, name); i >= 0 {
			there |= 1 << i
		}
		member := s.Properties[name]
		if member == nil && s.Properties == nil {
			member = s.AdditionalProperties
		}
		if member == nil {
			return invalid(string(j.in.StackPointer()), misfit.Unknown)
		}
		if err := j.value(member); err != nil {
			return err
		}
	}
	if _, err := j.in.ReadToken(); err != nil {
		return err
	}
	for i, name := range s.Required {
		if there&(1<<i) == 0 {
			return absent(string(j.in.StackPointer().AppendToken(name)))
		}
	}
	return nil
}

func (j *judging) array(s *jsonschema.Schema) error {
	if _, err := j.in.ReadToken(); err != nil {
		return err
	}
	for kind := j.in.PeekKind(); kind != ']' && kind != 0; kind = j.in.PeekKind() {
		if err := j.value(s.Items); err != nil {
			return err
		}
	}
	_, err := j.in.ReadToken()
	return err
}

// integer takes a whole number, however it is written.
func (j *judging) integer() error {
	v, err := j.in.ReadValue()
	if err != nil || !bytes.ContainsAny(v, ".eE") {
		return err
	}
	n, ok := integer.Number(v)
	if !ok {
		return invalid(string(j.in.StackPointer()), "it is %.32s, want a whole number", v)
	}
	end := int(j.in.InputOffset())
	j.out = strconv.AppendInt(append(j.out, j.text[j.copied:end-len(v)]...), n, 10)
	j.copied = end
	return nil
}

// absent is a body without a member that it must have.
func absent(field string) *problem {
	if strings.HasSuffix(field, "/lease") {
		return noLease(field)
	}
	return invalid(field, misfit.Missing)
}

// decodeProblem says what is wrong with a body, if anything is.
func decodeProblem(err error) error {
	if wrong, ok := errors.AsType[*json.SemanticError](err); ok {
		if own := wrong.GoType; own == of[flowfabric.Millis]() || own == of[flowfabric.Retentions]() ||
			own == of[admin.RetentionChange]() {
			return invalid(string(wrong.JSONPointer), "%v", wrong.Err)
		}
		return invalid(string(wrong.JSONPointer), "it is no %s", misfit.Format(wrong.GoType))
	}
	if wrong, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, jsontext.ErrDuplicateName) {
			return invalid(string(wrong.JSONPointer), "the member is there twice")
		}
		return invalid(string(wrong.JSONPointer), "the body is not JSON, at byte %d: %v", wrong.ByteOffset, wrong.Err)
	}
	return err
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
		case i < 0 && !(name == "access_token" && c.route.browser != noBrowser):
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
		return id, invalid("id", "%.80q is not an execution id", c.r.PathValue("id"))
	}
	if len(c.who.Namespaces) > 0 || c.r.Method == http.MethodPost {
		s, err := c.h.client.Execution(id).Get(c.ctx())
		c.acting("", s.Route.Namespace)
		return id, c.unseen(s, err)
	}
	return id, nil
}

// unseen refuses an execution that was looked for and that a bound principal may not see, like one that was never
// created. Of one that was purged nobody knows where it was. A principal that is not bound learns what is wrong
// from the call itself.
func (c *call) unseen(s flowfabric.Snapshot, err error) error {
	switch {
	case len(c.who.Namespaces) == 0:
		return nil
	case errors.Is(err, flowfabric.ErrNotFound), errors.Is(err, flowfabric.ErrResultPurged),
		err == nil && !c.who.may(s.Route.Namespace):
		return &problem{Status: http.StatusNotFound, Code: "execution_not_found",
			Detail: "the execution does not exist: it was never created, or it was purged"}
	}
	return err
}

// existing is the execution that the path names, and what it is now.
func (c *call) existing() (id flowfabric.ExecutionID, s flowfabric.Snapshot, err error) {
	if id, err = c.id(); err == nil {
		s, err = c.h.client.Execution(id).Get(c.ctx())
	}
	return id, s, err
}

// resumed is where a reader of events goes on, behind the name of what says so. A browser that comes back says it in a
// header.
func (c *call) resumed(q *query) (field, text string) {
	if last := c.r.Header.Get("Last-Event-ID"); last != "" {
		return "Last-Event-ID", last
	}
	return "after", q.text("after")
}

// seeAll is unseen for executions that a body names.
func (c *call) seeAll(ids []flowfabric.ExecutionID) error {
	if len(c.who.Namespaces) == 0 {
		return nil
	}
	looking := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(16)
	for _, id := range ids {
		looking.Go(func() error { return c.unseen(c.h.client.Execution(id).Get(c.ctx())) })
	}
	return looking.Wait()
}

// namespace is the one that a request names, or the principal's default; "" is the client's.
func (c *call) namespace(named string) (string, error) {
	if named == "" && len(c.who.Namespaces) > 0 {
		return c.who.Namespaces[0], nil
	}
	if named != "" && !c.who.may(named) {
		return "", &problem{Status: http.StatusForbidden, Code: "forbidden", Field: "namespace",
			Detail: c.who.Name + " may do nothing in this namespace"}
	}
	return named, nil
}
