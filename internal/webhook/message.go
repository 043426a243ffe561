package webhook

import (
	"strconv"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// message is the body of a request.
type message struct {
	Type string    `json:"type"`
	At   time.Time `json:"timestamp"` // of the event, on the server's clock
	Data any       `json:"data"`
}

// about is what a message says of an execution.
type about struct {
	ID        flowfabric.ExecutionID `json:"id"`
	Namespace string                 `json:"namespace"`
	Lane      string                 `json:"lane"`
	Kind      string                 `json:"kind"`
	State     flowfabric.PublicState `json:"state"`
	Attempt   int                    `json:"attempt,omitempty"`
	Tags      map[string]string      `json:"tags,omitempty"`
	Flow      flowfabric.FlowID      `json:"flow,omitzero"`
	Category  flowfabric.Category    `json:"category,omitempty"` // of the failure
	Wait      *asked                 `json:"wait,omitempty"`
	Message   string                 `json:"message,omitempty"` // of the failure; with details
	Reason    string                 `json:"reason,omitempty"`  // of the cancellation; with details
}

// asked is what an execution waits for.
type asked struct {
	ID        flowfabric.UUID  `json:"id"`
	Name      string           `json:"name"`
	For       string           `json:"for,omitempty"` // the blocking reason
	TimeoutAt time.Time        `json:"timeout_at,omitzero"`
	Assignee  string           `json:"assignee,omitempty"`
	Title     string           `json:"title,omitempty"`   // with details
	Text      string           `json:"text,omitempty"`    // with details
	Choices   []suspend.Choice `json:"choices,omitempty"` // with details
}

// budget is what a message says of a gate.
type budget struct {
	Gate      string    `json:"gate"`
	Scope     string    `json:"scope,omitempty"`
	Dimension string    `json:"dimension"`
	Used      int64     `json:"used"`
	Limit     int64     `json:"limit"` // with what it is raised by
	Began     time.Time `json:"period_began_at,omitzero"`
	NextReset time.Time `json:"next_reset_at,omitzero"`
}

// happening is something that endpoints are told: the id of the event, and what is said of it.
type happening struct {
	id      string // the same whenever the event is read
	event   string // the type
	at      time.Time
	snap    *flowfabric.Snapshot
	said    about
	details func(*about) // adds what people wrote
}

// ended is the end of an execution. The snapshot may be of later, after a replay: then it says nothing of the failure.
func ended(e flowfabric.FeedEvent, s *flowfabric.Snapshot) *happening {
	h := &happening{id: "end/" + e.Execution.String() + "/" + stamp(e), event: "execution." + string(e.State), at: e.At,
		snap: s, said: said(e, s), details: func(*about) {}}
	if s.State.Public != e.State || s.EndedAt.IsZero() {
		return h
	}
	if e.State == flowfabric.Failed || e.State == flowfabric.Expired {
		h.said.Category = s.Failure.Category
	}
	h.details = func(a *about) { a.Message, a.Reason = s.Failure.Message, s.CancelReason }
	return h
}

// waiting is a wait that somebody has to end.
func waiting(e flowfabric.FeedEvent, s *flowfabric.Snapshot, r *suspend.Record) *happening {
	h := &happening{id: "wait/" + e.Execution.String() + "/" + r.ID.String(), event: typeWaiting, at: r.CreatedAt,
		snap: s, said: said(e, s), details: func(*about) {}}
	h.said.Wait = &asked{ID: r.ID, Name: r.Name, For: e.BlockingReason, TimeoutAt: r.TimeoutAt}
	if q := r.Question; q != nil {
		h.said.Wait.Assignee = q.Assignee
		h.details = func(a *about) {
			wait := *a.Wait
			wait.Title, wait.Text, wait.Choices = q.Title, q.Text, q.Choices
			a.Wait = &wait
		}
	}
	return h
}

func said(e flowfabric.FeedEvent, s *flowfabric.Snapshot) about {
	return about{ID: e.Execution, Namespace: s.Namespace, Lane: s.Lane, Kind: s.Route.Kind, State: e.State,
		Attempt: e.Attempt, Tags: s.Tags, Flow: s.Flow}
}

func stamp(e flowfabric.FeedEvent) string {
	return strconv.Itoa(e.Attempt) + "/" + strconv.FormatInt(e.At.UnixMilli(), 10)
}

// asks tells whether a suspension waits for somebody: a person, a signal, an operator.
func asks(e flowfabric.FeedEvent, r *suspend.Record) bool {
	if r.State != flowfabric.Suspended || r.ID.IsZero() || !r.ClosedAt.IsZero() {
		return false // it goes on by now
	}
	for _, w := range r.Waitpoints {
		if w.Open() && w.Suspension == r.ID {
			return true
		}
	}
	return r.Question != nil || e.BlockingReason == "paused_by_operator"
}

// exhausted is the message about a dimension of a gate without room, and the id of that event: a dimension runs out
// once in a period for each limit.
func exhausted(g *admission.GateRecord, dimension string, now time.Time) (id string, m message) {
	limit := g.Limits[dimension].Hard + g.Raised[dimension]
	id = "budget/" + g.Name + "/" + dimension + "/" + strconv.FormatUint(g.Period, 10) + "/" +
		strconv.FormatInt(limit, 10) + "/" + strconv.FormatInt(g.CreatedAt.UnixMilli(), 10)
	return id, message{typeExhausted, now, budget{Gate: g.Name, Scope: g.Scope, Dimension: dimension,
		Used: g.Used[dimension], Limit: limit, Began: g.PeriodBegan, NextReset: g.NextReset}}
}
