package runtime

import (
	"cmp"
	"context"
	"errors"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/internal/admit"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/framelog"
	"github.com/flowfabric/flowfabric-go/internal/tasks"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What the rest of the package tells the metrics. All of it may be called concurrently and never blocks.

func (m *metrics) claimFailed() { m.claims.WithLabelValues("error").Inc() }

// claimed records an answered claim; one that only asked for the route table is neither work nor empty.
func (m *metrics) claimed(n int, forWork bool, took time.Duration) {
	switch {
	case n > 0:
		m.claims.WithLabelValues("work").Inc()
	case forWork:
		m.claims.WithLabelValues("empty").Inc()
	}
	m.executions.Add(float64(n))
	m.claimSeconds.Observe(took.Seconds())
}

// asked records what one claim was granted, and how much of it runs.
func (m *metrics) asked(granted, admitted int, took time.Duration) {
	m.grants.Add(float64(granted))
	m.admissions.WithLabelValues("admitted").Add(float64(admitted))
	m.gateSeconds.Observe(took.Seconds())
}

// refused records a route that is closed.
func (m *metrics) refused(r admit.Refusal, grants int) {
	m.admissions.WithLabelValues(string(r.Kind)).Add(float64(grants))
	switch r.Kind {
	case admit.RefusedAmount:
		m.gateHits.WithLabelValues(string(r.Kind), m.category(r.Dimension)).Inc()
	case admit.RefusedRate, admit.RefusedCap:
		m.gateHits.WithLabelValues(string(r.Kind), "").Inc()
	}
}

// spent records the answer to a report of a handler.
func (m *metrics) spent(r admission.Reported) { m.reports.WithLabelValues(reportLabels(r)...).Inc() }

// reserved records what became of a reservation of a handler.
func (m *metrics) reserved(what tasks.Reservation) {
	m.reservations.WithLabelValues(string(what)).Inc()
}

// serviceCalled records what became of a call of a handler to a service.
func (m *metrics) serviceCalled(what tasks.Call) { m.serviceCalls.WithLabelValues(string(what)).Inc() }

// reportLabels are the verdict and, of a hard breach, what it leads to.
func reportLabels(r admission.Reported) []string {
	switch {
	case r.Verdict == codes.SoftBreach:
		return []string{"soft", ""}
	case r.Verdict == codes.HardBreach && r.Applied:
		return []string{"hard", "warn"}
	case r.Verdict == codes.HardBreach:
		return []string{"hard", string(r.Action)}
	default:
		return []string{"ok", ""}
	}
}

// began records the first run of a claim. Both times are the server's, so no clocks are compared.
func (k *served) began(kind string, claim *engine.Claim) {
	if claim.Type == flowfabric.AttemptInitial {
		k.waited().Observe(max(claim.ClaimedAt.Sub(claim.CreatedAt), 0).Seconds())
	}
	if claim.Type == flowfabric.AttemptResumed && claim.Resume != nil {
		k.metrics.goesOn(kind, claim.Resume)
	}
}

// goesOn records a run that follows a wait.
func (m *metrics) goesOn(kind string, r *suspend.Result) {
	m.resumed.WithLabelValues(kind, string(r.Cause)).Inc()
}

// nearly records a run whose execution has used most of a limit.
func (m *metrics) nearly(kind, limit string) { m.near.WithLabelValues(kind, limit).Inc() }

// ran records the end of a handler's run.
func (k *served) ran(took time.Duration) { k.handled().Observe(took.Seconds()) }

func (m *metrics) settle(kind, outcome string, category flowfabric.Category) {
	m.settled.WithLabelValues(kind, outcome, m.category(string(category))).Inc()
}

// category folds what exceeds the cap into "other": a handler that makes one up per failure must not fill the
// registry.
func (m *metrics) category(c string) string {
	if c == "" {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.categories[c] {
		if len(m.categories) >= maxCategoryLabels {
			return "other"
		}
		m.categories[c] = true
	}
	return c
}

func (m *metrics) renewed(_ uint16, err error) {
	if err != nil {
		m.renewals.WithLabelValues("error").Inc()
		return
	}
	m.renewals.WithLabelValues("ok").Inc()
}

func (m *metrics) leaseLost(_ flowfabric.ExecutionID, cause error) {
	if errors.Is(cause, denied.LeaseRevoked) { // it matches ErrLeaseLost, too
		cause = denied.LeaseRevoked
	}
	m.lost.WithLabelValues(flowfabric.CodeOf(cause)).Inc()
}

func (m *metrics) sessionLost(_ uint16, cause string) { m.sessions.WithLabelValues(cause).Inc() }

// called records a call of a server function.
func (m *metrics) called(function string, took time.Duration, err error) {
	m.calls.WithLabelValues(function).Observe(took.Seconds())
	if err != nil {
		m.failed.WithLabelValues(function, denied.ClassOf(err).String(), errorLabel(err)).Inc()
	}
}

// errorLabel is the code of an error, of which there is one table; a call that its caller gave up has none.
func errorLabel(err error) string {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return cmp.Or(flowfabric.CodeOf(err), "given_up")
	}
	return cmp.Or(flowfabric.CodeOf(err), "other")
}

// woken records what a doorbell told.
func (m *metrics) woken(what string, n int) { m.wakeUps.WithLabelValues(what).Add(float64(n)) }

func (m *metrics) polled(missed int, err error) {
	switch {
	case err != nil:
		m.polls.WithLabelValues("error").Inc()
	case missed > 0:
		m.polls.WithLabelValues("found").Inc()
	default:
		m.polls.WithLabelValues("empty").Inc()
	}
}

func (m *metrics) appended(frames []stream.Frame) {
	var counts, bytes [stream.ModeBestEffort + 1]int
	for i := range frames {
		counts[frames[i].Mode]++
		bytes[frames[i].Mode] += len(frames[i].Payload)
	}
	for mode, n := range counts {
		if n > 0 {
			name := stream.FrameMode(mode).String()
			m.frames.WithLabelValues(name).Add(float64(n))
			m.frameBytes.WithLabelValues(name).Add(float64(bytes[mode]))
		}
	}
}

// unsent records what a writer that is closed did not get to the server.
func (m *metrics) unsent(w *framelog.Writer) {
	if n := w.Shed(); n > 0 {
		m.framesLost.WithLabelValues("shed").Add(float64(n))
	}
	if n := w.Dropped(); n > 0 {
		m.framesLost.WithLabelValues("dropped").Add(float64(n))
	}
}
