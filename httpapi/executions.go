package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/failed"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/narrow"
	"github.com/flowfabric/flowfabric-go/stream"
)

// submission asks for an execution.
type submission struct {
	flowfabric.Start `for:"submit"`
	keys
	given
}

type (
	submitted = apiv1.Submitted
	result    = apiv1.Result
)

// create makes the execution.
func (s *submission) create(c *call) (submitted, error) {
	key, err := s.key()
	if err = cmp.Or(c.whole(&s.Start, ""), err, s.check("")); err != nil {
		return submitted{}, err
	}
	s.Key = key
	x, err := client.Submit(c.ctx(), c.h.client, handler.Define[[]byte, []byte](s.Kind), s.input(),
		flowfabric.StartWith(s.Start))
	if err != nil {
		return submitted{}, unknownOutcome(err)
	}
	return submitted{ID: x.ID().String(), Duplicate: x.Duplicate(), Replaced: x.Replaced()}, nil
}

// unknownOutcome says what a caller can do about a submission that was not answered.
func unknownOutcome(err error) error {
	if unknown, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
		p := problemOf(err)
		p.Execution = unknown.ID.String()
		p.Detail = "the submission may still happen, as " + p.Execution + "; with a key it is safe to repeat"
		return p
	}
	return err
}

// header is a key that stands in a header, maybe in quotes.
func (c *call) keyHeader() (string, error) {
	values := c.r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := values[0]
	if strings.HasPrefix(key, `"`) && strings.HasSuffix(key, `"`) && len(key) > 1 {
		key = key[1 : len(key)-1]
	}
	if len(values) > 1 || key == "" {
		return "", invalid("Idempotency-Key", "want one key of 1..256 bytes")
	}
	return key, nil
}

// keyed puts the key of the header where that of the body is; of two keys neither is chosen.
func (c *call) keyed(key *string) error {
	given, err := c.keyHeader()
	switch {
	case err != nil || given == "":
		return err
	case *key != "" && *key != given:
		return invalid("Idempotency-Key", "the body has another idempotency_key")
	}
	*key = given
	return nil
}

// keyParam is the header of routes whose body has an idempotency key.
var keyParam = []param{{name: "Idempotency-Key",
	text: "The idempotency_key, if the body has none; with or without quotes. Another one than that of the body is refused", kind: "string"}}

func (c *call) submit() error {
	var s submission
	if err := c.body(&s); err != nil {
		return err
	}
	if err := s.keyed(c); err != nil {
		return err
	}
	made, err := s.create(c)
	if err != nil {
		return err
	}
	c.w.Header().Set("Location", "/v1/executions/"+made.ID)
	if made.Duplicate {
		return c.answerJSON(http.StatusOK, made)
	}
	return c.answerJSON(http.StatusCreated, made)
}

// batch is many submissions, each of which is judged on its own.
type batch struct {
	Items []submission `json:"items" jsonschema:"1..1000"`
}

type batchAnswer struct {
	Items []batchItem `json:"items"`
}

type batchItem struct {
	ID        string   `json:"id,omitempty"`
	Duplicate bool     `json:"duplicate,omitempty"`
	Problem   *problem `json:"problem,omitempty" jsonschema:"why it was refused; the others are not affected"`
}

func (c *call) submitBatch(b *batch) (batchAnswer, error) {
	if len(c.r.Header.Values("Idempotency-Key")) > 0 {
		return batchAnswer{}, invalid("Idempotency-Key",
			"a batch cannot share one key: give each item its own idempotency_key")
	}
	if len(b.Items) < 1 || len(b.Items) > maxBatch {
		return batchAnswer{}, invalid("/items", "there are %d, want 1..%d", len(b.Items), maxBatch)
	}
	out := make([]batchItem, len(b.Items))
	work := pool.New().WithMaxGoroutines(100) // they share the calls to the store
	for i := range b.Items {
		work.Go(func() {
			made, err := b.Items[i].create(c)
			if err != nil {
				p := *problemOf(err)
				p.Type, p.Title, p.Request = "about:blank", http.StatusText(p.Status), identityOf(c.r).id
				out[i].Problem = &p
				return
			}
			out[i].ID, out[i].Duplicate = made.ID, made.Duplicate
		})
	}
	work.Wait()
	return batchAnswer{out}, nil
}

// filter reads what a list, or a bulk action, is of.
func (c *call) filter(q *query) (admin.Filter, error) {
	f := admin.Filter{Lane: q.text("lane"), Kind: q.text("kind"), Since: q.instant("since"),
		Until: q.instant("until"), ErrorText: q.text("error"), Tags: q.tags("tag"),
		HeldBy: q.text("held_by"), Newest: q.flag("newest"), WithTags: true, WithReasons: true}
	for _, category := range q.list("category") {
		f.Categories = append(f.Categories, flowfabric.Category(category))
	}
	for _, state := range q.list("state") {
		f.States = append(f.States, flowfabric.PublicState(state))
	}
	more := narrow.Filter{Shape: q.text("shape"), Version: q.text("version")}
	for name, want := range map[string]string{"version": "the version of an application",
		"shape": "the shape or the key of a group; without a message it is " + failed.NoMessage} {
		if said := q.list(name); len(said) > 0 && said[0] == "" {
			q.wrong(name, "it is empty, want %s", want)
		}
	}
	if len(more.Version) > limits.MaxName {
		q.wrong("version", "it has %d bytes, want at most %d", len(more.Version), limits.MaxName)
	}
	c.narrow(more)
	if text := q.text("flow"); text != "" {
		id, err := flowfabric.ParseFlowID(text)
		if err != nil {
			q.wrong("flow", "%.80q is not a flow id", text)
		}
		f.Flow = id
	}
	if q.err != nil {
		return f, q.err
	}
	var err error
	if named := q.text("namespace"); named == "*" && len(c.who.Namespaces) == 0 {
		f.Namespace = admin.AllNamespaces
	} else {
		f.Namespace, err = c.namespace(named)
	}
	return f, err
}

// narrow adds conditions to the lists and bulk actions of this call.
func (c *call) narrow(f narrow.Filter) { c.r = c.r.WithContext(narrow.With(c.ctx(), f)) }

type executionPage admin.Page[admin.Listed]

func (c *call) list() (out executionPage, err error) {
	q := c.query()
	n := int(q.number("limit", 1, maxPage, defaultPage))
	f, err := c.filter(q)
	if err != nil {
		return out, err
	}
	said, shape := "", ""
	if c.h.cfg.Redact != nil { // else the filter would tell what is not shown
		said, f.ErrorText, f.WithReasons = strings.ToLower(f.ErrorText), "", true
		shape = narrow.Of(c.ctx()).Shape
		c.narrow(narrow.Filter{Version: narrow.Of(c.ctx()).Version})
	}
	page, err := c.h.admin.ListPage(c.ctx(), f, q.text("cursor"), n)
	out.Items, out.Cursor = make([]admin.Listed, 0, len(page.Items)), page.Cursor
	for _, x := range page.Items {
		if x.ID.IsZero() || c.who.may(x.Route.Namespace) {
			x.Failure.Message = c.redactorOf(x.ID, x.Route).text("failure", x.Failure.Message)
			if strings.Contains(strings.ToLower(x.Failure.Message), said) &&
				(shape == "" || failed.Matches(shape, x.Route.Kind, x.Failure)) {
				out.Items = append(out.Items, x)
			}
		}
	}
	return out, err
}

func (c *call) get(id flowfabric.ExecutionID) (s flowfabric.Snapshot, err error) {
	if s, err = c.h.client.Execution(id).Get(c.ctx()); err != nil {
		return s, err
	}
	return c.redactorOf(id, s.Route).snapshot(s), nil
}

func (c *call) input(id flowfabric.ExecutionID) (flowfabric.Payload, error) {
	raw, err := c.h.client.Execution(id).Input(c.ctx())
	if err != nil {
		return nil, err
	}
	shown, err := c.redactor(id)
	return shown.payload("input", raw), err
}

type unfinished struct {
	State string `json:"state"`
}

// wait is how long the caller prefers to wait.
func (c *call) prefers() (time.Duration, error) {
	for _, preference := range strings.Split(strings.Join(c.r.Header.Values("Prefer"), ","), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(preference), "=")
		if !strings.EqualFold(name, "wait") {
			continue
		}
		seconds, err := strconv.ParseUint(value, 10, 16)
		if err != nil {
			return 0, invalid("Prefer", "wait=%.16q, want seconds", value)
		}
		return min(time.Duration(seconds)*time.Second, maxWait), nil
	}
	return 0, nil
}

func (c *call) result() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	wait, err := c.prefers()
	if err != nil {
		return err
	}
	var raw []byte
	if wait > 0 {
		ctx, cancel := context.WithTimeout(c.ctx(), wait)
		raw, err = c.h.client.Execution(id).Result(ctx)
		cancel()
		if c.ctx().Err() == nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			raw, err = c.h.client.Execution(id).ResultNow(c.ctx())
		}
		c.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	} else {
		raw, err = c.h.client.Execution(id).ResultNow(c.ctx())
	}
	if errors.Is(err, denied.NotTerminal) {
		s, err := c.h.client.Execution(id).Get(c.ctx())
		if err != nil {
			return err
		}
		return c.answerJSON(http.StatusAccepted, unfinished{string(s.State.Public)})
	}
	shown, failed := c.redactor(id)
	if failed != nil {
		return failed
	}
	if end, ok := errors.AsType[*client.OutcomeError](err); ok {
		end.Reason = shown.ended(end.Source, end.Reason)
		out := result{State: string(end.State), By: end.By, Source: end.Source, Attempts: end.Attempts}
		if end.Source != "" {
			out.Reason = end.Reason
		} else if end.Category != "" {
			out.Failure = &flowfabric.Failure{Category: end.Category, Message: end.Reason}
		}
		return c.answerJSON(http.StatusOK, out)
	}
	if err != nil {
		return err
	}
	p := shown.payload("result", raw)
	return c.answerJSON(http.StatusOK, result{State: string(flowfabric.Completed), Output: &p})
}

type history admin.Page[flowfabric.Event]

func (c *call) history(id flowfabric.ExecutionID) (history, error) {
	events, err := c.h.admin.History(c.ctx(), id)
	if err != nil {
		return history{}, err
	}
	shown, err := c.redactor(id)
	for i, e := range events {
		events[i] = shown.past(e)
	}
	return history{Items: events}, err
}

func (c *call) summary(id flowfabric.ExecutionID) (s stream.Summary, err error) {
	if s, err = c.h.client.Execution(id).Summary(c.ctx()); err != nil {
		return s, err
	}
	shown, err := c.redactor(id)
	s.Document = shown.document("summary", s.Document)
	return s, err
}

// framePage is followed by another one as long as it has a frame.
type framePage admin.Page[stream.Frame]

func (c *call) frames(id flowfabric.ExecutionID) (out framePage, err error) {
	q := c.query()
	attempt, n := q.number("attempt", 1, 1<<32-1, 1), int(q.number("limit", 1, maxPage, defaultPage))
	in := stream.Range{Limit: n}
	for name, at := range map[string]*stream.Cursor{"after": &in.After, "until": &in.Until} {
		if text := q.text(name); text != "" {
			if at.UnmarshalText([]byte(text)) != nil {
				q.wrong(name, "it is no cursor")
			}
		}
	}
	if q.err != nil {
		return out, q.err
	}
	frames, err := c.h.client.Execution(id).Frames(c.ctx(), uint32(attempt), in)
	if err != nil {
		return out, err
	}
	shown, err := c.redactor(id)
	out.Items = make([]stream.Frame, len(frames))
	for i, f := range frames {
		out.Items[i], out.Cursor = shown.frame(f), f.ID.String()
	}
	return out, err
}
