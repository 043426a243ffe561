package admin

import (
	"context"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// Event is one entry of an execution's history. Which fields are set depends on its kind.
type Event struct {
	At time.Time // the server's
	// Kind: created; claimed (an attempt began, or goes on after a pause); attempt_ended (Detail has its state and
	// category); ended (Code says how); delayed by its holder; released by a worker that shut down; revoked;
	// cancelled; expired; priority (Detail: old and new); replayed (Code and Until: how and when the run before had
	// ended); continued with another input (Detail: how often by then); suspended (Detail: the reason; Reason: the
	// name under which the handler waits); resumed (Detail: the cause; Reason: the name of the signal, which is the
	// choice that a person made); escalated; suspension_timeout (Detail: what it led to); skipped; late_input;
	// token_reissued (Detail: the waitpoint's key); held; unheld; delay_changed by an operator (Until: the new time;
	// none: it may run at once); tagged.
	Kind    string
	Attempt uint32 // the attempt it belongs to, 1 for the first; 0 for none
	Epoch   uint64
	Session string // who held it: "<instance>~<random>", or "<gateway>~<worker>~<random>" over HTTP
	By      string // the person or token that asked for it
	// Source is what kind of source that is. Cancelled, ended: see flowfabric.Snapshot.CancelSource. Resumed: the type
	// of the signal's source; message; operator; auto_resume.
	Source string
	From   string // from where, such as "api 10.1.2.3" or "cli web-1"; "" when that is not known
	Code   flowfabric.Code
	Detail string
	Reason string // of an attempt's end, a revocation, a cancellation, a hold or a replay; see Kind
	Until  time.Time
}

// String is the event as one line: time, kind, attempt, and what there is to say about it. Texts of users are quoted
// where they are not plain.
func (e Event) String() string {
	return engine.Event{At: e.At, Kind: engine.EventKind(e.Kind), Attempt: e.Attempt, Epoch: e.Epoch,
		Session: e.Session, By: e.By, Source: e.Source, From: e.From, Code: e.Code, Detail: e.Detail, Reason: e.Reason,
		Until: e.Until}.String()
}

// History tells what happened to an execution, oldest first: its creation, every attempt, its end, and what was out of
// the ordinary (delays, hand-backs, revocations, changed priorities and delays, replays), of which the newest 1,000
// are kept. Each event prints as one line. Errors: flowfabric.ErrNotFound; ErrResultPurged after a purge.
func (a *Admin) History(ctx context.Context, id flowfabric.ExecutionID) ([]Event, error) {
	if err := a.admit("history of", id); err != nil {
		return nil, err
	}
	events, err := a.store.ReadHistory(ctx, id)
	if err != nil {
		return nil, link.Operated("history of", id, err)
	}
	out := make([]Event, len(events))
	for i, e := range events {
		out[i] = Event{At: e.At, Kind: string(e.Kind), Attempt: e.Attempt, Epoch: e.Epoch, Session: e.Session, By: e.By,
			Source: e.Source, From: e.From, Code: e.Code, Detail: e.Detail, Reason: e.Reason, Until: e.Until}
	}
	return out, nil
}
