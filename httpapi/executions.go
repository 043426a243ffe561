package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/stream"
)

// submission asks for an execution.
type submission struct {
	Kind      string          `json:"kind"`
	Input     json.RawMessage `json:"input,omitempty" jsonschema:"any JSON value, at most 1 MiB; the input of the handler. Default null"`
	Namespace string          `json:"namespace,omitempty"`
	starting
	terms
	IdempotencyKey string `json:"idempotency_key,omitempty" jsonschema:"a second submission with an equal key and input is answered with the first execution"`
	UniqueKey      string `json:"unique_key,omitempty" jsonschema:"only one execution has it until it has ended"`
	KeyWindowMs    int64  `json:"key_window_ms,omitempty" jsonschema:"the key stays taken for so long at least"`
	DebounceKey    string `json:"debounce_key,omitempty" jsonschema:"further submissions replace the input of an execution that was never claimed, and put it off by delay_ms again"`
	DebounceMaxMs  int64  `json:"debounce_max_ms,omitempty" jsonschema:"it may run at the latest so long after its creation"`
}

type submitted struct {
	ID        string `json:"id"`
	Duplicate bool   `json:"duplicate" jsonschema:"its key led to an execution that existed"`
	Replaced  bool   `json:"replaced,omitempty" jsonschema:"its debounce key replaced the input of that execution"`
}

func ms(n int64) time.Duration { return times(n, time.Millisecond) }

// times is n units, or the longest duration, which every bound refuses: a product that overflows could be a legal one.
func times(n int64, unit time.Duration) time.Duration {
	most := math.MaxInt64 / int64(unit)
	switch {
	case n > most:
		return math.MaxInt64
	case n < -most:
		return math.MinInt64
	}
	return time.Duration(n) * unit
}

// options are what the body says, and the definition that goes with them.
func (s *submission) options(c *call) (*handler.Definition[[]byte, []byte], []client.SubmitOption, error) {
	namespace, err := c.namespace(s.Namespace)
	if err != nil {
		return nil, nil, err
	}
	opts := []client.SubmitOption{flowfabric.Creator(c.who.Name)}
	add := func(o client.SubmitOption) { opts = append(opts, o) }
	if namespace != "" {
		add(flowfabric.Namespace(namespace))
	}
	when, err := s.starting.options("", &s.terms)
	switch {
	case err != nil:
		return nil, nil, err
	case s.DebounceKey != "" && s.DelayMs == 0:
		return nil, nil, invalid("/delay_ms", "a debounce_key needs it")
	case s.DebounceKey == "" && s.DebounceMaxMs != 0:
		return nil, nil, invalid("/debounce_max_ms", "there is no debounce_key")
	case s.DebounceKey != "":
		when = when[1:] // the delay is that of the key
		add(flowfabric.Debounce(s.DebounceKey, ms(s.DelayMs)))
	}
	for _, o := range when {
		add(o)
	}
	for _, o := range s.terms.options() {
		add(o)
	}
	if s.IdempotencyKey != "" {
		add(flowfabric.IdempotencyKey(s.IdempotencyKey))
	}
	if s.UniqueKey != "" {
		add(flowfabric.Unique(s.UniqueKey))
	}
	if s.KeyWindowMs != 0 {
		add(flowfabric.KeyWindow(ms(s.KeyWindowMs)))
	}
	if s.DebounceMaxMs != 0 {
		add(flowfabric.DebounceMax(ms(s.DebounceMaxMs)))
	}
	return handler.Define[[]byte, []byte](s.Kind), opts, nil
}

// create makes the execution.
func (s *submission) create(c *call) (submitted, error) {
	if s.Kind == "" {
		return submitted{}, invalid("/kind", "it is missing")
	}
	definition, opts, err := s.options(c)
	if err != nil {
		return submitted{}, err
	}
	if s.Input == nil {
		s.Input = json.RawMessage("null")
	}
	x, err := client.Submit(c.ctx(), c.h.client, definition, []byte(s.Input), opts...)
	if err != nil {
		return submitted{}, unknownOutcome(err)
	}
	return submitted{x.ID().String(), x.Duplicate(), x.Replaced()}, nil
}

// unknownOutcome says what a caller can do about a submission that was not answered.
func unknownOutcome(err error) error {
	if unknown, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
		p := problemOf(err)
		p.Detail = "the submission may still happen, as " + unknown.ID.String() + "; with a key it is safe to repeat"
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
	if err := c.keyed(&s.IdempotencyKey); err != nil {
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

func (c *call) submitBatch() error {
	var b batch
	if err := c.body(&b); err != nil {
		return err
	}
	if len(c.r.Header.Values("Idempotency-Key")) > 0 {
		return invalid("Idempotency-Key", "it would be that of all items: give each item an idempotency_key of its own")
	}
	if len(b.Items) < 1 || len(b.Items) > maxBatch {
		return invalid("/items", "there are %d, want 1..%d", len(b.Items), maxBatch)
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
	return c.answerJSON(http.StatusOK, batchAnswer{out})
}

// filter reads what a list, or a bulk action, is of.
func (c *call) filter(q *query) (admin.Filter, error) {
	f := admin.Filter{Lane: q.text("lane"), Kind: q.text("kind"), Categories: q.list("category"),
		Since: q.instant("since"), Until: q.instant("until"), ErrorText: q.text("error"), Tags: q.tags("tag"),
		HeldBy: q.text("held_by"), Newest: q.flag("newest"), WithTags: true, WithReasons: true}
	for _, state := range q.list("state") {
		f.States = append(f.States, flowfabric.PublicState(state))
	}
	if text := q.text("flow"); text != "" {
		id, err := flowfabric.ParseFlowID(text)
		if err != nil {
			q.wrong("flow", "%.80q is no id of a flow", text)
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

func (c *call) list() error {
	q := c.query()
	n := int(q.number("limit", 1, maxPage, defaultPage))
	f, err := c.filter(q)
	if err != nil {
		return err
	}
	said := ""
	if c.h.cfg.Redact != nil { // else the filter would tell what is not shown
		said, f.ErrorText, f.WithReasons = strings.ToLower(f.ErrorText), "", true
	}
	page, err := c.h.admin.ListPage(c.ctx(), f, q.text("cursor"), n)
	if err != nil {
		return err
	}
	out := executionPage{Items: make([]admin.Listed, 0, len(page.Items)), NextCursor: page.Cursor}
	for _, x := range page.Items {
		if x.ID.IsZero() || c.who.may(x.Route.Namespace) {
			x.Failure.Message = c.redactorOf(x.ID, x.Route).text("failure", x.Failure.Message)
			if strings.Contains(strings.ToLower(x.Failure.Message), said) {
				out.Items = append(out.Items, x)
			}
		}
	}
	return c.answerJSON(http.StatusOK, out)
}

func (c *call) get() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	s, err := c.h.client.Get(c.ctx(), id)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, c.redactorOf(id, s.Route).snapshot(s))
}

func (c *call) input() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	raw, err := c.h.client.RawInput(c.ctx(), id)
	if err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, shown.payload("input", raw))
}

// result is how an execution ended.
type result struct {
	State    string              `json:"state" jsonschema:"completed, failed, cancelled, expired or skipped"`
	Output   *payload            `json:"output,omitempty" jsonschema:"what the handler returned, if it completed"`
	Failure  *flowfabric.Failure `json:"failure,omitempty"`
	By       string              `json:"by,omitempty" jsonschema:"who cancelled it: a person or token, if one was named"`
	Source   string              `json:"source,omitempty" jsonschema:"what kind of source cancelled it: operator_override, owner (its worker), flow_cascade or system_timeout_policy"`
	Reason   string              `json:"reason,omitempty" jsonschema:"why it was cancelled"`
	Attempts uint32              `json:"attempts,omitempty"`
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
		raw, err = c.h.client.RawResult(ctx, id)
		cancel()
		if c.ctx().Err() == nil && ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
			raw, err = c.h.client.RawResultNow(c.ctx(), id)
		}
		c.w.Header().Set("Preference-Applied", "wait="+strconv.Itoa(int(wait.Seconds())))
	} else {
		raw, err = c.h.client.RawResultNow(c.ctx(), id)
	}
	if errors.Is(err, denied.NotTerminal) {
		s, err := c.h.client.Get(c.ctx(), id)
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

type history struct {
	Items []entry `json:"items"`
}

type entry struct {
	At      *time.Time `json:"at,omitempty"`
	Kind    string     `json:"kind"`
	Attempt uint32     `json:"attempt,omitempty" jsonschema:"1 for the first"`
	Worker  string     `json:"worker,omitempty"`
	By      string     `json:"by,omitempty" jsonschema:"the person or token that asked for it"`
	Source  string     `json:"source,omitempty" jsonschema:"of a cancellation and an end what kind of source cancelled it, as in the result; of a resumption the type of the signal's source, message, operator or auto_resume"`
	From    string     `json:"from,omitempty" jsonschema:"from where, if that is known"`
	Detail  string     `json:"detail,omitempty"`
	Reason  string     `json:"reason,omitempty" jsonschema:"of an end, a revocation, a cancellation, a hold or a replay; of a suspension the name under which the handler waits, and of its end the name of the signal, which is the choice that a person made"`
	Until   *time.Time `json:"until,omitempty"`
	Text    string     `json:"text" jsonschema:"the same in a sentence"`
}

func (c *call) history() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	events, err := c.h.admin.History(c.ctx(), id)
	if err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	out := history{Items: make([]entry, 0, len(events))}
	for _, e := range events {
		e = shown.past(e)
		out.Items = append(out.Items, entry{utc(e.At), e.Kind, e.Attempt, instance(e.Session), e.By, e.Source, e.From,
			e.Detail, e.Reason, utc(e.Until), e.String()})
	}
	return c.answerJSON(http.StatusOK, out)
}

type explanation struct {
	State    string     `json:"state,omitempty"`
	Reason   string     `json:"reason" jsonschema:"the stable name of the explanation"`
	Sentence string     `json:"sentence"`
	Next     string     `json:"next" jsonschema:"what moves it"`
	At       *time.Time `json:"at,omitempty" jsonschema:"when that happens by itself, at the latest"`
	Serving  *int       `json:"serving,omitempty" jsonschema:"live workers that take its kind from its lane"`
	Ahead    *int       `json:"ahead,omitempty" jsonschema:"how many are before it in its queue"`
}

func (c *call) why() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	e, err := c.explained(id)
	if err != nil {
		return err
	}
	known := func(n int) *int {
		if n < 0 {
			return nil
		}
		return &n
	}
	return c.answerJSON(http.StatusOK,
		explanation{string(e.State), e.Reason, e.Sentence, e.Next, utc(e.At), known(e.Serving), known(e.Ahead)})
}

func (c *call) summary() error {
	id, err := c.id()
	if err != nil {
		return err
	}
	s, err := c.h.client.Summary(c.ctx(), id)
	if err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	s.Document = shown.document("summary", s.Document)
	return c.answerJSON(http.StatusOK, s)
}

type framePage struct {
	Items      []frame `json:"items"`
	NextCursor string  `json:"next_cursor,omitempty" jsonschema:"absent when there are no more now"`
}

func (c *call) frames() error {
	q := c.query()
	attempt, n := q.number("attempt", 1, 1<<32-1, 1), int(q.number("limit", 1, maxPage, defaultPage))
	var after stream.Cursor
	if text := q.text("after"); text != "" {
		var err error
		if after, err = stream.ParseCursor(text); err != nil {
			q.wrong("after", "it is no cursor")
		}
	}
	if q.err != nil {
		return q.err
	}
	id, err := c.id()
	if err != nil {
		return err
	}
	frames, err := c.h.client.Frames(c.ctx(), id, uint32(attempt), after, n)
	if err != nil {
		return err
	}
	shown, err := c.redactor(id)
	if err != nil {
		return err
	}
	out := framePage{Items: make([]frame, 0, len(frames))}
	for _, f := range frames {
		out.Items = append(out.Items, newFrame(shown.frame(f)))
	}
	if len(frames) > 0 {
		out.NextCursor = frames[len(frames)-1].ID.String()
	}
	return c.answerJSON(http.StatusOK, out)
}
