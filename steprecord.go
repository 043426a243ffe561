package flowfabric

import "time"

// StepRecord is what is known of one durable step of an execution, without its value. client.Client.Steps reads them.
//
// A name may be listed several times: once for each attempt that failed in the step, and once as recorded.
type StepRecord struct {
	Name string // as the handler calls it
	// Kind is step; or, for what is recorded beside the steps of the handler, wait (an answer), waitpoint (one that
	// was opened before a wait), messages (what a receipt took from a mailbox; Name is the mailbox, "·" and the
	// number of the receipt) or children (how the children of a wait ended).
	Kind    string
	Attempt uint32 // the attempt that ran it, 1 for the first
	// StartedAt is EndedAt less how long the step ran by its worker's clock, or how long the wait lasted. It is
	// EndedAt if that is not known.
	StartedAt time.Time
	// recorded: when it was recorded; failed: when the attempt failed. By the server's clock, in whole ms
	EndedAt time.Time
	Bytes   int // of the value, at most 256 KiB; 0 if it failed
	// its function returned the error that the attempt failed with; a later attempt may have recorded it
	Failed bool
	Error  string // that error, cut to 1 KiB
}
