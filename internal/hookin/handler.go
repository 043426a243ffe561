package hookin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// remembered is for how long a repeated event is known at least; the longest retries of senders take three days.
const remembered = 7 * 24 * time.Hour

// Handler answers POST /v1/hooks/{name}. It is safe for concurrent use.
type Handler struct {
	Hooks  Hooks
	Client *client.Client
	Logger *slog.Logger
	now    func() time.Time // nil: the clock of this machine
}

// answer is what a sender is told.
type answer struct {
	status    int
	Status    string `json:"status"` // accepted, duplicate, late, ignored, refused, failed
	Detail    string `json:"detail,omitempty"`
	Execution string `json:"execution,omitempty"`
	Challenge string `json:"challenge,omitempty"` // of Slack, when it checks the address
}

func refused(status int, detail string) answer {
	return answer{status: status, Status: "refused", Detail: detail}
}

// ServeHTTP takes one event.
func (h *Handler) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	a := h.take(w, q)
	level := slog.LevelDebug
	switch {
	case a.status >= 422:
		level = slog.LevelWarn
	case a.status >= 400 || a.Status == "late":
		level = slog.LevelInfo
	}
	h.Logger.Log(q.Context(), level, "flowfabric: webhook", "hook", q.PathValue("name"), "status", a.Status, "code",
		a.status, "detail", a.Detail, "execution", a.Execution)
	switch a.status { // the log says more
	case http.StatusUnauthorized:
		a.Detail = "the signature is missing, wrong or too old"
	case http.StatusServiceUnavailable:
		a.Detail = "try again later"
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if a.status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "5")
	}
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a)
}

func (h *Handler) take(w http.ResponseWriter, q *http.Request) answer {
	hook := h.Hooks[q.PathValue("name")]
	if hook == nil {
		return refused(http.StatusNotFound, "there is no such hook")
	}
	now := time.Now
	if h.now != nil {
		now = h.now
	}
	claim, err := hook.scheme.Read(q.Header, now(), time.Duration(hook.Tolerance))
	if err != nil {
		return refused(http.StatusUnauthorized, err.Error())
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, q.Body, limits.MaxPayload))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return refused(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit))
	}
	if err != nil {
		return refused(http.StatusBadRequest, "the body did not come")
	}
	if err := hook.scheme.Check(claim, hook.secrets, raw); err != nil {
		return refused(http.StatusUnauthorized, err.Error())
	}
	e, err := hook.read(q.Header, raw)
	if err != nil {
		return refused(http.StatusBadRequest, err.Error())
	}
	if hook.Scheme == "slack" && e.text("/type") == "url_verification" {
		return answer{status: http.StatusOK, Status: "accepted", Challenge: e.text("/challenge")}
	}
	rule := hook.rule(e)
	if rule == nil {
		return answer{status: http.StatusOK, Status: "ignored"}
	}
	a, err := h.apply(q.Context(), hook, rule, e)
	return judged(a, err)
}

// errMapping is a body that a rule does not fit.
var errMapping = errors.New("the rule does not fit the body")

// judged is the answer that follows from an error. What a repeat cannot change is told as such; of everything else the
// sender tries again.
func judged(a answer, err error) answer {
	is := func(list ...error) bool {
		for _, one := range list {
			if errors.Is(err, one) {
				return true
			}
		}
		return false
	}
	switch {
	case err == nil:
		a.status = http.StatusOK
	case is(flowfabric.ErrWaitpointClosed, flowfabric.ErrTerminal, flowfabric.ErrTokenExpired):
		a.status, a.Status, a.Detail = http.StatusOK, "late", err.Error()
	case is(errMapping, flowfabric.ErrInvalidInput, flowfabric.ErrPayloadTooLarge, flowfabric.ErrNotFound,
		flowfabric.ErrInvalidToken, flowfabric.ErrResultPurged):
		a.status, a.Status, a.Detail = http.StatusUnprocessableEntity, "failed", err.Error()
	default:
		a.status, a.Status, a.Detail = http.StatusServiceUnavailable, "failed", err.Error()
	}
	return a
}

// apply does what a rule says.
func (h *Handler) apply(ctx context.Context, hook *hook, r *Rule, e *event) (answer, error) {
	input, err := e.at(r.Input)
	if err != nil {
		return answer{}, fmt.Errorf("%w: input: %w", errMapping, err)
	}
	at := &mapping{e: e}
	switch {
	case r.Submit != nil:
		return h.submit(ctx, hook, r.Submit, at, input)
	case r.Signal != nil:
		return h.signal(ctx, hook, r.Signal, at, input)
	}
	id, mailbox := at.value("message.execution", r.Message.Execution), at.value("message.mailbox", r.Message.Mailbox)
	x, err := h.execution(ctx, hook, at, id)
	if err != nil {
		return answer{}, err
	}
	sent, err := x.Send(ctx, mailbox, input, flowfabric.IdempotencyKey(hook.key(e)),
		flowfabric.By("webhook:"+hook.name))
	return done(sent.Duplicate, id), err
}

func done(duplicate bool, execution string) answer {
	if duplicate {
		return answer{Status: "duplicate", Execution: execution}
	}
	return answer{Status: "accepted", Execution: execution}
}

// mapping takes values from an event, and keeps the first thing that is wrong.
type mapping struct {
	e   *event
	err error
}

func (m *mapping) value(field, text string) string {
	value, err := m.e.value(text)
	if err != nil && m.err == nil {
		m.err = fmt.Errorf("%w: %s: %w", errMapping, field, err)
	}
	return value
}

// execution is one that a body names. It must be in the namespace of the hook.
func (h *Handler) execution(ctx context.Context, hook *hook, m *mapping,
	text string) (*client.Execution[[]byte], error) {
	if m.err != nil {
		return nil, m.err
	}
	id, err := flowfabric.ParseExecutionID(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errMapping, err)
	}
	x := h.Client.Execution(id)
	s, err := x.Get(ctx)
	if err == nil && s.Namespace != hook.Namespace {
		err = fmt.Errorf("execution %s: %w: it is not in the namespace of the hook", id, flowfabric.ErrNotFound)
	}
	return x, err
}

func (h *Handler) submit(ctx context.Context, hook *hook, s *Submit, m *mapping,
	input json.RawMessage) (answer, error) {
	tags := map[string]string{}
	for key, text := range s.Tags {
		tags[key] = m.value("submit.tags."+key, text)
	}
	if m.err != nil {
		return answer{}, m.err
	}
	options := []client.SubmitOption{flowfabric.Namespace(hook.Namespace), flowfabric.Tags(tags),
		flowfabric.Creator("webhook:" + hook.name), flowfabric.Priority(s.Priority),
		flowfabric.Key{Text: hook.key(m.e), Window: remembered}}
	if s.Lane != "" {
		options = append(options, flowfabric.Lane(s.Lane))
	}
	x, err := client.Submit(ctx, h.Client, handler.Define[json.RawMessage, json.RawMessage](s.Kind, handler.NoSchema()),
		input, options...)
	if errors.Is(err, flowfabric.ErrConflict) { // the same event, written in other bytes
		return done(true, ""), nil
	}
	if err != nil {
		return answer{}, err
	}
	return done(x.Duplicate(), x.ID().String()), nil
}

func (h *Handler) signal(ctx context.Context, hook *hook, s *Signal, m *mapping,
	input json.RawMessage) (answer, error) {
	options := []client.SignalOption{flowfabric.IdempotencyKey(hook.key(m.e)),
		client.SignalDetails(suspend.SentSignal{DedupTTL: remembered})}
	if name := m.value("signal.name", s.Name); name != "" {
		options = append(options, client.SignalName(name))
	}
	if s.Token != "" {
		token, err := suspend.ParseToken(m.value("signal.token", s.Token))
		if m.err != nil || err != nil {
			return answer{}, errors.Join(m.err, err)
		}
		d, err := h.Client.Signal(ctx, token, input, append(options, client.SignalSource("webhook", hook.name))...)
		return done(d.Duplicate, token.Execution().String()), err
	}
	id, waitpoint := m.value("signal.execution", s.Execution), m.value("signal.waitpoint", s.Waitpoint)
	x, err := h.execution(ctx, hook, m, id)
	if err != nil {
		return answer{}, err
	}
	approve := []client.ApproveOption{flowfabric.By("webhook:" + hook.name)}
	for _, o := range options {
		approve = append(approve, o)
	}
	d, err := x.Approve(ctx, waitpoint, input, approve...)
	return done(d.Duplicate, id), err
}
