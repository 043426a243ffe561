package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
)

// Exit codes. They are part of the interface: scripts depend on them.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitRefused     = 4
	exitUnreachable = 5
	exitTimeout     = 6
	exitDenied      = 7
	exitOutcome     = 8
	exitInterrupted = 130
)

// exit is a code, what it means, and which errors lead to it.
type exit struct {
	code    int
	meaning string
	errors  []error
}

// exits is the table. The first row with an error that matches decides; an error that no row knows is judged by its
// class.
var exits = []exit{
	{exitOK, "success; also an interrupted dev, tail or top; doctor: no check that it made has failed", nil},
	{exitInterrupted, "interrupted before it was done", []error{errInterrupted}},
	{exitOutcome, "the awaited execution ended without a result",
		[]error{flowfabric.ErrFailed, flowfabric.ErrCancelled, flowfabric.ErrExpired, flowfabric.ErrSkipped}},
	{exitTimeout, "--timeout ran out", []error{errTimeout}},
	{exitDenied, "the server refused user name, password or permission", []error{flowfabric.ErrAuth}},
	{exitUnreachable, "the server could not be reached or did not answer", []error{flowfabric.ErrTransport}},
	{exitNotFound, "there is no such execution, flow, waitpoint, worker, schedule or gate (any more)",
		[]error{flowfabric.ErrNotFound, flowfabric.ErrResultPurged}},
	{exitRefused, "refused: its state does not allow it",
		[]error{denied.Idempotency, denied.ReplayNotAllowed, denied.KidConflict, denied.GraceTooShort,
			denied.KidNotCurrent, flowfabric.ErrInvalidToken, flowfabric.ErrTokenExpired, denied.FlowCancelled,
			denied.FlowSealed,
			denied.GateConflict, errAttached}},
	{exitUsage, "called or configured wrongly", []error{errUsage, flowfabric.ErrConfig}},
	{exitFailed, "failed for another reason; doctor, check and repair: something is wrong; some partitions failed",
		[]error{errUnhealthy, errPartlyCancelled, flowfabric.ErrProtocol, denied.ServerVersion,
			flowfabric.ErrNoTokenKeys}},
}

// errUsage marks a command line that makes no sense; errTimeout and errInterrupted say that the command's own context
// ended; errUnhealthy is a check that found something; errAttached a gate that is in use.
var (
	errUsage           = errors.New("invalid usage")
	errTimeout         = errors.New("--timeout ran out")
	errInterrupted     = errors.New("interrupted")
	errUnhealthy       = errors.New("something is wrong")
	errAttached        = errors.New("it is attached")
	errPartlyCancelled = errors.New("the flow is cancelled, and some of its members are not yet")
)

// exitCode is the code for what a command returned.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	if unknown, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
		return exitCode(unknown.Cause)
	}
	if partly(err) && !errors.Is(err, errTimeout) && !errors.Is(err, errInterrupted) {
		return exitFailed
	}
	for _, row := range exits {
		for _, target := range row.errors {
			if errors.Is(err, target) {
				return row.code
			}
		}
	}
	switch denied.ClassOf(err) {
	case fault.Caller:
		return exitUsage
	case fault.Info, fault.Stop, fault.Retry:
		return exitRefused
	}
	return exitFailed
}

// partly tells whether some partitions did what was asked, and some did not.
func partly(err error) bool {
	if e, ok := errors.AsType[*admin.PartitionsError](err); ok {
		return e.Failed < e.Total
	}
	if no, ok := errors.AsType[*refusal](err); ok {
		return 0 < no.Failed && no.Failed < no.Total
	}
	e, ok := errors.AsType[*partialError](err)
	return ok && e.failed < e.total
}

// exitHelp is the table for the help.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	rows := slices.Clone(exits)
	slices.SortFunc(rows, func(x, y exit) int { return cmp.Compare(x.code, y.code) })
	for _, row := range rows {
		fmt.Fprintf(&b, "  %3d  %s\n", row.code, row.meaning)
	}
	return strings.TrimRight(b.String(), "\n")
}

// usage is an error of the command line.
func usage(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

type usageError struct{ text string }

func (e *usageError) Error() string        { return e.text }
func (e *usageError) Is(target error) bool { return target == errUsage }

// failure is an error as --json prints it.
type failure struct {
	Error   string `json:"error"`
	Code    string `json:"code,omitempty"` // of the server or the library, see errors.go
	Exit    int    `json:"exit"`
	Outcome string `json:"execution,omitempty"` // the id under which a submission may still happen
	ID      string `json:"id,omitempty"`        // of what was submitted and waited for
}

// commandWords puts the library's advice into words of the command line.
var commandWords = strings.NewReplacer("; Force replays", "; --force replays", "or with Force and",
	"or with --force and", "admin.Unhold", "'flowfabric unhold'", "admin.PutGate with that revision",
	"'flowfabric gate update'", "admin.PutGate with that revision", "'flowfabric gate update'",
	"admin.PutGate", "'flowfabric gate create'", "admin.PutGate", "'flowfabric gate create'",
	"admin.SetLane", "'flowfabric lane resume'", "admin.Resume", "'flowfabric resume'", "admin.ReplayFlow",
	"'flowfabric flow replay'", "admin.Replay", "'flowfabric replay'", "admin.SetPriority", "'flowfabric priority'",
	"client.Signal", "'flowfabric signal'", "client.Approve", "'flowfabric approve'", "client.Cancel",
	"'flowfabric cancel'", "client.Waitpoints", "'flowfabric waitpoints'", "client.Suspension",
	"'flowfabric waitpoints'",
	"admin.RotateTokenKeys", "'flowfabric keys rotate'", "admin.Thaw", "'flowfabric thaw'")

// neverBooted is how the engine says that a store is fresh and may not be booted, in words of the library's
// configuration.
const neverBooted = "and CreateConfig is false"

// conclude prints the error of a command, if there is one, and returns the exit code.
func (a *app) conclude(err error) int {
	if err == nil {
		return exitOK
	}
	if program, ok := errors.AsType[*programError](err); ok {
		return program.code
	}
	if _, ran := errors.AsType[*commandError](err); !ran && !errors.Is(err, errUsage) {
		err = usage("%s", err) // cobra's: an unknown command or flag
	}
	code := exitCode(err)
	text := commandWords.Replace(redact(err.Error()))
	if errors.Is(err, flowfabric.ErrConfig) && strings.Contains(text, neverBooted) {
		text = "nothing was ever submitted to this store: check --url, or start a worker"
	}
	if errors.Is(err, errTimeout) {
		ran := fmt.Sprintf("--timeout %s ran out", a.timeout)
		if text = strings.ReplaceAll(text, context.DeadlineExceeded.Error(), ran); !strings.Contains(text, ran) {
			text = ran + ": " + text
		}
	}
	if a.json {
		f := failure{Error: text, Code: flowfabric.CodeOf(err), Exit: code}
		if unknown, ok := errors.AsType[*client.UnknownOutcomeError](err); ok {
			f.Outcome = unknown.ID.String()
		}
		if submitted, ok := errors.AsType[*submittedError](err); ok {
			f.ID = submitted.id.String()
		}
		_ = json.NewEncoder(a.err).Encode(f)
		return code
	}
	fmt.Fprintln(a.err, "flowfabric:", indented(text, hanging))
	if errors.Is(err, errUsage) {
		fmt.Fprintln(a.err, "See 'flowfabric --help'.")
	}
	return code
}

// commandError marks what a command itself returned, as against a command line that could not be understood.
type commandError struct {
	error
	ended error // errTimeout or errInterrupted, if that is why
}

func (e *commandError) Unwrap() []error {
	if e.ended == nil {
		return []error{e.error}
	}
	return []error{e.error, e.ended}
}

// marked is the error of a command that ran under ctx.
func marked(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case outOfTime(err) && pastDeadline(ctx):
		return &commandError{err, errTimeout}
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return &commandError{err, errInterrupted}
	}
	return &commandError{err, nil}
}

// outOfTime tells whether err says that time ran out. A connection attempt under a deadline watches the clock itself
// and says so in its own words, which may come before the context has noticed.
func outOfTime(err error) bool {
	n, ok := errors.AsType[net.Error](err)
	return errors.Is(err, context.DeadlineExceeded) || ok && n.Timeout()
}

// pastDeadline tells whether the deadline of ctx has passed, noticed by ctx or not.
func pastDeadline(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || ok && !time.Now().Before(at)
}
