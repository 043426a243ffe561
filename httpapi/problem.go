package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

type problem = apiv1.Problem

// invalid is a request that is wrong in a field.
func invalid(field, format string, args ...any) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "invalid_input", Field: field,
		Detail: fmt.Sprintf(format, args...)}
}

func notFound(format string, args ...any) *problem {
	return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: fmt.Sprintf(format, args...)}
}

// statuses are those of errors that their class does not tell.
var statuses = []struct {
	err    error
	status int
}{
	{denied.NoExecution, http.StatusNotFound}, {denied.NoFlow, http.StatusNotFound},
	{denied.NoSchedule, http.StatusNotFound},
	{denied.NoGate, http.StatusNotFound}, {denied.NoStream, http.StatusNotFound},
	{denied.StreamGone, http.StatusGone}, {denied.StreamConflict, http.StatusConflict},
	{denied.NoWorker, http.StatusNotFound},
	{denied.NoSession, http.StatusNotFound}, {denied.NoWaitpoint, http.StatusNotFound},
	{flowfabric.ErrResultPurged, http.StatusGone}, {flowfabric.ErrTokenExpired, http.StatusGone},
	{denied.Token, http.StatusForbidden},
	{denied.PayloadTooLarge, http.StatusRequestEntityTooLarge},
	{denied.SummaryTooLarge, http.StatusRequestEntityTooLarge},
	{denied.Idempotency, http.StatusConflict}, {denied.ReplayNotAllowed, http.StatusConflict},
	{denied.FlowConflict, http.StatusConflict},
	{denied.GateConflict, http.StatusConflict},
	{denied.StepConflict, http.StatusConflict},
	{flowfabric.ErrAuth, http.StatusServiceUnavailable}, {flowfabric.ErrDraining, http.StatusServiceUnavailable},
	{flowfabric.ErrTransport, http.StatusServiceUnavailable}, {client.ErrClosed, http.StatusServiceUnavailable},
	{flowfabric.ErrOutOfMemory, http.StatusServiceUnavailable}, {denied.TooManyRoutes, http.StatusConflict},
	{context.DeadlineExceeded, http.StatusServiceUnavailable},
}

// classes are the statuses of everything else.
var classes = map[fault.Class]int{
	fault.Caller: http.StatusBadRequest, fault.Stop: http.StatusConflict,
	fault.Info: http.StatusConflict, fault.Retry: http.StatusServiceUnavailable,
	fault.Bug: http.StatusInternalServerError,
}

// problemOf is the document for an error.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &problem{Status: http.StatusRequestEntityTooLarge, Code: "payload_too_large",
			Detail: fmt.Sprintf("the body has more than %d bytes", tooLarge.Limit)}
	}
	p := &problem{Detail: inMembers(err.Error()), Code: codeOf(err)}
	if wrong, ok := errors.AsType[*kindschema.Misfit](err); ok && wrong.Node == "" {
		p.Field = "/input" + wrong.Pointer
	} else if m := ofMember.FindStringSubmatch(p.Detail); m != nil {
		p.Field = "/" + m[1]
	}
	if some, ok := errors.AsType[*admin.PartitionsError](err); ok {
		p.Failed, p.Total = some.Failed, some.Total
	}
	for _, s := range statuses {
		if errors.Is(err, s.err) {
			p.Status = s.status
			break
		}
	}
	if p.Status == 0 {
		p.Status = classes[denied.ClassOf(err)]
	}
	if p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	p.Retry = p.Status == http.StatusServiceUnavailable
	return p
}

// members are the options of package flowfabric as bodies and queries have them.
var members = map[string]string{"Priority": "priority", "Lane": "lane", "Timeout": "timeout_ms",
	"AttemptTimeout": "timeout_ms", "Deadline": "deadline_ms", "DeadlineAt": "deadline_at", "Delay": "delay_ms",
	"DelayUntil": "delay_until", "Retry.MaxRetries": "retries", "Key.Window": "key_window_ms",
	"Key.Debounce": "debounce_ms", "Key.DebounceMax": "debounce_max_ms",
	"Concurrency": "concurrency", "Rate": "rate", "Per": "per_ms", "Filter.States": "state", "Filter.HeldBy": "held_by",
	"HeldBy": "held_by", "Filter.Since": "since", "Until": "until", "States": "state",
	"Filter.Flow": "flow", "Filter.ErrorText": "error",
	"Filter.Categories": "category", "FlowQuery.States": "state", "ApprovalFilter.Assignee": "assignee",
	"FromScratch": "from_scratch", "FromStep": "from_step"}

// inMembers writes the options in an error as members.
var inMembers = prose.Renamer(members)

// ofMember is the detail of what is wrong with one member of a submission or a schedule, or with a parameter of a list.
// A node of a flow is told by its name, a limit by its key.
var ofMember = regexp.MustCompile(`^(?:submit [^: ]+|schedule "[^"]*"|list): (?:[^:]+: ){2}(` +
	strings.Join(slices.Sorted(maps.Values(members)), "|") + `)\b`)

// codeOf is the code of an error of ours.
func codeOf(err error) string {
	if code := flowfabric.CodeOf(err); code != "" {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, client.ErrClosed) {
		return flowfabric.CodeOf(flowfabric.ErrTransport)
	}
	return "internal"
}

// fail answers with a problem document.
func (h *Handler) fail(w http.ResponseWriter, q *http.Request, err error) {
	p := *problemOf(err)
	p.Type, p.Title, p.Request = "about:blank", http.StatusText(p.Status), identityOf(q).id
	if p.Status >= http.StatusInternalServerError && !p.Retry {
		h.cfg.Logger.ErrorContext(q.Context(), "flowfabric: api: a request failed", "request", p.Request, "error", err)
	}
	if q.Method == http.MethodGet || q.Method == http.MethodHead {
		p.Field = strings.TrimPrefix(p.Field, "/") // of the query
	}
	header := w.Header()
	if p.Retry && header.Get("Retry-After") == "" {
		header.Set("Retry-After", "1")
	}
	header.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	if q.Method != http.MethodHead {
		_ = json.NewEncoder(w).Encode(p)
	}
}
