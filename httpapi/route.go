package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/words"
)

// route is one operation: how it is called, who may, what it takes and answers, and what does it. The mux and the
// OpenAPI document are made of the same table.
type route struct {
	method, path string // the path may end in an action: /v1/executions/{id}:cancel
	name         string // operationId
	summary      string
	need         need
	query        []param
	headers      []param
	body         reflect.Type // nil: none
	answers      []answer
	shared       bool    // an answer may be given to others who ask the same a moment later
	costly       bool    // … and the longer it took the later
	browser      browser // which tokens of browsers, for the execution of the path, will do, too
	handle       func(*call) error
}

// browser is which tokens of browsers a route takes.
type browser string

const (
	noBrowser     browser = ""
	browserReads  browser = "read" // those that write as well
	browserWrites browser = "write"
)

// globals are where the paths of what belongs to no namespace begin.
var globals = []string{"/v1/gates", "/v1/gated", "/v1/limits", "/v1/doctor", "/v1/partitions",
	"/v1/token-keys",
	"/v1/schedule-owners", "/v1/settings", "/v1/workers/{session}:mark-dead"}

// global tells whether a token that is bound to namespaces is refused.
func (r *route) global() bool {
	return slices.ContainsFunc(globals, func(p string) bool { return strings.HasPrefix(r.path, p) })
}

// param is a parameter of a query, or a header.
type param struct {
	name, text string
	kind       string // of JSON Schema: string, integer, boolean
	list       bool   // may be there more than once
}

// answer is one that is no problem.
type answer struct {
	status int
	text   string
	body   reflect.Type // nil: none
	media  string       // default application/json
	also   []string     // other media types, whose content is text
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

func ok[T any](text string) []answer {
	return []answer{{status: http.StatusOK, text: text, body: of[T]()}}
}

// done is the answer of a change.
var done = []answer{{status: http.StatusNoContent, text: "Done (idempotent)."}}

// gone is the answer of a removal.
var gone = []answer{{status: http.StatusNoContent, text: "It is removed. A repeat answers 404."}}

// reasoned is the query of a change that has no body.
var reasoned = []param{{name: "reason", text: "The audit trail keeps 1 KiB of it", kind: "string"}}

// get reads what do returns.
func get[Answer any](path, name, summary, text string, do func(*call) (Answer, error)) *route {
	return &route{method: http.MethodGet, path: path, name: name, summary: summary, need: viewer,
		answers: ok[Answer](text), handle: func(c *call) error {
			answer, err := do(c)
			return c.answerOr(err, answer)
		}}
}

// about reads what do returns of one execution.
func about[Answer any](part, name, summary, text string,
	do func(*call, flowfabric.ExecutionID) (Answer, error)) *route {
	return get("/v1/executions/{id}"+part, name, summary, text, func(c *call) (none Answer, err error) {
		id, err := c.id()
		if err != nil {
			return none, err
		}
		return do(c, id)
	})
}

// post makes a change: do is given the body, and what it returns is answered, unless that is nothing.
func post[Body, Answer any](path, name, summary string, who need, text string,
	do func(*call, *Body) (Answer, error)) *route {
	r := &route{method: http.MethodPost, path: path, name: name, summary: summary, need: who, body: of[Body](),
		answers: done}
	silent := of[Answer]() == of[nothing]()
	if !silent {
		r.answers = ok[Answer](text)
	}
	r.handle = func(c *call) error {
		var body Body
		if err := c.body(&body); err != nil {
			return err
		}
		answer, err := do(c, &body)
		if silent {
			return c.nothingToSay(err)
		}
		return c.answerOr(err, answer)
	}
	return r
}

// change is a post that answers nothing.
func change[Body any](path, name, summary string, who need, do func(*call, *Body) error) *route {
	return post(path, name, summary, who, "",
		func(c *call, b *Body) (nothing, error) { return nothing{}, do(c, b) })
}

// act is a change of one execution.
func act[Body any](action, name, summary string, who need,
	do func(*call, flowfabric.ExecutionID, *Body) error) *route {
	return change("/v1/executions/{id}:"+action, name, summary, who, func(c *call, b *Body) error {
		id, err := c.id()
		if err != nil {
			return err
		}
		return do(c, id, b)
	})
}

// onFlow is a change of one flow.
func onFlow[Body, Answer any](action, name, summary string, who need, text string,
	do func(*call, *client.Flow, *Body) (Answer, error)) *route {
	return post("/v1/flows/{id}"+action, name, summary, who, text, func(c *call, b *Body) (none Answer, err error) {
		f, _, err := c.flowOf()
		if err != nil {
			return none, err
		}
		return do(c, f, b)
	})
}

// asking adds parameters of the query.
func (r *route) asking(query ...param) *route {
	r.query = query
	return r
}

// writable lets pages with a token that writes ask, if its maker may.
func (r *route) writable() *route {
	r.browser = browserWrites
	return r
}

// keyed lets a header have the idempotency key of the body.
func (r *route) keyed() *route {
	r.headers = keyParam
	return r
}

// putting makes a change one that may be repeated.
func (r *route) putting() *route {
	r.method = http.MethodPut
	return r
}

// by says whose role may ask, where not every viewer may.
func (r *route) by(who need) *route {
	r.need = who
	return r
}

// sharing lets answers be given to others.
func (r *route) sharing() *route {
	r.shared, r.headers = true, sharedHeader
	return r
}

// sparing is sharing for answers that take long to make: one may be given for a hundred times as long as it took, at
// most a minute.
func (r *route) sparing() *route {
	r.costly, r.shared = true, true
	r.headers = []param{{name: "Cache-Control",
		text: "max-age=<seconds>: an answer that somebody else got will do, at most a minute old", kind: "string"}}
	return r
}

// operates tells whether the reader may see what words keep for operators.
func (c *call) operates() bool { return c.who.Role == Operator || c.who.Role == Admin }

// answerOr sends what was read, or says why it was not.
func (c *call) answerOr(err error, v any) error {
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, v)
}

// answerJSON sends a JSON document, without what the reader may not see of its words.
func (c *call) answerJSON(status int, v any) error {
	if c.broken != nil {
		return c.broken
	}
	if !c.operates() {
		v = words.Blanked(v, "operator")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}

// nothing is the body of a change that needs none.
type nothing struct{}
