package flowfabric

import "time"

// StepRecord describes one durable step of an execution, without its value. client.Execution.Steps reads
// them.
//
// A name may be listed several times: once for each attempt that failed in the step, and once as recorded.
type StepRecord struct {
	Name string `json:"name" jsonschema:"name in the handler; one entry for each attempt that failed in the step, and one for the recorded value"`
	// Kind is step, or says what is recorded beside the steps of the handler.
	Kind    string `json:"kind" jsonschema:"step; or wait (an answer), waitpoint (opened before a wait), messages (what a receipt took from a mailbox; its name is the mailbox, · and a number) or children (how those of a wait ended)"`
	Attempt uint32 `json:"attempt" jsonschema:"the attempt that ran it, 1 for the first"`
	// StartedAt is EndedAt less how long the step ran by its worker's clock, or how long the wait lasted. It is
	// EndedAt if that is not known.
	StartedAt time.Time `json:"started_at,omitzero"`
	// recorded: when it was recorded; failed: when the attempt failed. By the server's clock, in whole ms
	EndedAt time.Time `json:"ended_at,omitzero"`
	Bytes   int       `json:"bytes" jsonschema:"size of the value, at most 256 KiB; 0 if it failed"`
	// State is failed if its function returned the error that the attempt failed with; a later attempt may have
	// recorded it.
	State string `json:"state" jsonschema:"recorded, or failed: the attempt failed with the error of this step"`
	Error string `json:"error,omitempty"` // that error, cut to 1 KiB
}
