package handler

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/causes"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/waits"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// maxAskedWait bounds the name of the wait of a refusal without its number: the step that records the raise is named
// after it.
const maxAskedWait = limits.MaxStepName - len(raised) - len(" #1000")

// name is that of the n-th wait for a person after a refusal: a later run that is refused the same finds the answer.
func (e *OverBudgetError) name(n int) string {
	var parts []string
	for _, dim := range slices.Sorted(maps.Keys(e.Amounts)) {
		parts = append(parts, dim+"="+strconv.FormatInt(e.Amounts[dim], 10))
	}
	amounts := strings.Join(parts, ",")
	name := waitwords.OverBudget + e.Gate + " " + amounts
	if len(name) > maxAskedWait {
		name = fmt.Sprintf("%s%s %x", waitwords.OverBudget, e.Gate, sha256.Sum256([]byte(amounts)))[:maxAskedWait]
	}
	if n > 1 {
		name += " #" + strconv.Itoa(n)
	}
	return name
}

// granted looks for what a person answered to a refusal. An approval raises the limits, once: then the gate may be
// asked again (answered, and no error). One that was used up before is followed by the next question. Not answered:
// a person is to be asked. In a batch nobody can be asked: the handler decides.
func (t *Task) granted(ctx context.Context, e *OverBudgetError) (answered bool, err error) {
	if t.bars() != nil {
		return true, e
	}
	for n := 1; ; n++ {
		e.wait = e.name(n)
		r, err := t.ownWaits().Answer(e.wait)
		switch {
		case err != nil:
			return true, err
		case r == nil:
			return false, nil
		}
		choice := "" // an operator let it go on without an answer
		if len(r.Signals) > 0 {
			choice = r.Signals[0].Name
		}
		if choice != approve && choice != alone {
			return true, e
		}
		t.mu.Lock()
		_, before := t.steps[raised+e.wait]
		t.mu.Unlock()
		if before {
			continue
		}
		if err := t.raise(ctx, e.wait, choice, e.Gate, e.missing()); err != nil {
			return true, fmt.Errorf("%w; more was granted, and could not be given: %w", e, err)
		}
		return true, t.record(ctx, raised+e.wait, true, 0)
	}
}

// asksForMore is the outcome of a run that waits for a person because a gate has no room.
func (t *Task) asksForMore(e *OverBudgetError) Outcome {
	q := e.question(t)
	o := waitOptionsOf([]suspend.Option{suspend.Because(suspend.ReasonApproval), suspend.Asking(q)})
	wanted, err := o.wanted(e.wait, waits.Answered(q, e.wait))
	if err != nil {
		return failed(causes.Suspend, Permanent(fmt.Errorf("%w: ask for more: %w", e, err)))
	}
	return suspended(t, wanted, e)
}

// question is what a person is asked.
func (e *OverBudgetError) question(t *Task) suspend.Question {
	missing := e.missing()
	var words, lines []string
	for _, dim := range slices.Sorted(maps.Keys(missing)) {
		words = append(words, fmt.Sprintf("%d more %s", missing[dim], dim))
	}
	for _, b := range e.Breaches {
		lines = append(lines, fmt.Sprintf("%s: %d more, %d of %d used", b.Dimension, missing[b.Dimension], b.Used,
			b.Limit))
	}
	q := suspend.Question{Text: strings.Join(lines[:min(len(lines), maxAskedLines)], "\n"), Choices: []suspend.Choice{
		{Name: approve, Label: "Raise the limit"}, {Name: alone, Label: "For this execution alone"},
		{Name: "reject", Label: "Reject"}}}
	for _, what := range []string{strings.Join(words, " and "), words[0] + " and other amounts", "more"} {
		for _, whom := range []string{t.Kind() + " " + t.ID().String(), t.ID().String()} {
			q.Title = fmt.Sprintf("%s needs %s for %s", e.Gate, what, whom)
			if len(q.Title) <= limits.MaxQuestionTitle {
				return q
			}
		}
	}
	return q
}

// maxAskedLines bounds the dimensions that a question explains.
const maxAskedLines = 20
