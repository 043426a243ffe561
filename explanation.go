package flowfabric

import "time"

// Explanation says why an execution is where it is, and what moves it next.
type Explanation struct {
	ID    ExecutionID `json:"id"`
	State PublicState `json:"state,omitempty"` // "" when the store cannot tell; of a purged execution its last one
	// Reason is the stable name of the explanation: it does not change between releases, sentences may.
	// https://github.com/flowfabric/flowfabric-go/blob/main/docs/how-to/why.md lists all of them.
	Reason string `json:"reason" jsonschema:"the stable name of the explanation"`
	// Sentence says why it is there, in one or two sentences of English; Next what moves it, or that nothing does.
	// Times are the server's, UTC. Texts of users are quoted, and cut to 200 bytes.
	Sentence string `json:"sentence"`
	Next     string `json:"next" jsonschema:"the next event that moves it"`
	// At is when Next happens by itself, at the latest; it may have passed. Zero when no clock decides.
	At time.Time `json:"at,omitzero" jsonschema:"when that happens by itself, at the latest"`
	// Serving and Capable count, for one that waits for a worker, the live workers that take its kind from its lane,
	// and those of them that have all its capabilities. nil: that cannot be told, or it does not wait.
	Serving *int `json:"serving,omitempty" jsonschema:"live workers that take its kind from its lane"`
	Capable *int `json:"capable,omitempty" jsonschema:"those of them that have all its capabilities"`
	Ahead   *int `json:"ahead,omitempty" jsonschema:"how many are before it in its queue"` // nil: it is in none
	// ClosedUntil is when its route, which a gate closed, opens by itself, and ClosedWhy what closed it;
	// zero: it is open.
	ClosedUntil time.Time `json:"closed_until,omitzero" see:"operator"`
	ClosedWhy   string    `json:"closed_why,omitempty" see:"operator"`
}

// String is Sentence and Next.
func (e Explanation) String() string { return e.Sentence + " " + e.Next }
