package admin

import (
	"context"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// Explanation says why an execution is where it is, and what moves it next.
type Explanation struct {
	ID    flowfabric.ExecutionID
	State flowfabric.PublicState // "" when the store cannot tell
	Code  flowfabric.Code        // likewise; of a purged execution its last one
	// Reason is the stable name of the explanation: it does not change between releases, sentences may.
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/why.md lists all of them.
	Reason string
	// Sentence says why it is there, in one or two sentences of English; Next what moves it, or that nothing does.
	// Times are the server's, UTC. Texts of users are quoted, and cut to 200 bytes.
	Sentence, Next string
	// At is when Next happens by itself, at the latest; it may have passed. Zero when no clock decides.
	At time.Time
	// Serving and Capable count, for one that waits for a worker, the live workers that take its kind from its lane,
	// and those of them that have all its capabilities. -1: that cannot be told, or it does not wait.
	Serving, Capable int
	// Ahead is how many are before it in its queue; -1: it is in none.
	Ahead int
	// ClosedUntil is when its route, which a budget or quota closed, opens by itself, and ClosedWhy what closed it;
	// zero: it is open.
	ClosedUntil time.Time
	ClosedWhy   string
}

// String is Sentence and Next.
func (e Explanation) String() string { return e.Sentence + " " + e.Next }

// Why explains where an execution is and what moves it next. It reads one consistent snapshot of the execution's
// partition and, for one that waits, the registered workers, and writes nothing. An id that names nothing, a purged
// execution, and a frozen or missing partition are explained too, without an error.
//
// Errors: flowfabric.ErrInvalidInput for the zero id and one of a partition that this store does not have; ErrTransport
// and its kin; client.ErrClosed.
func (a *Admin) Why(ctx context.Context, id flowfabric.ExecutionID) (Explanation, error) {
	if err := a.admit("explain", id); err != nil {
		return Explanation{}, err
	}
	e, err := explain.Of(ctx, a.store, id)
	if err != nil {
		return Explanation{}, link.Operated("explain", id, err)
	}
	out := Explanation{ID: e.ID, State: e.State, Code: e.Code, Reason: string(e.Reason), Sentence: e.Sentence,
		Next: e.Next, At: e.At, Serving: e.Serving, Capable: e.Capable, Ahead: -1, ClosedUntil: e.Facts.ClosedUntil,
		ClosedWhy: e.Facts.ClosedWhy}
	if e.State == flowfabric.Waiting || e.State == flowfabric.WaitingBudget || e.State == flowfabric.WaitingQuota {
		out.Ahead = e.Facts.Ahead
	}
	return out, nil
}
