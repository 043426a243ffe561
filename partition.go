package flowfabric

import "time"

// Partition is how a partition is, which admin.Admin.Partitions tells.
type Partition struct {
	Partition    uint16    `json:"partition"`
	Err          error     `json:"-"` // why it did not answer; then the rest says nothing
	Error        string    `json:"error,omitempty" jsonschema:"why it does not answer; then the rest says nothing"`
	Now          time.Time `json:"now,omitzero" jsonschema:"by its server's clock, with which its other times are compared"`
	Protocol     int       `json:"protocol"`
	Frozen       bool      `json:"frozen" jsonschema:"it refuses every call"`
	FrozenReason string    `json:"frozen_reason,omitempty"`
	BootedAt     time.Time `json:"booted_at,omitzero"`
	WakeAt       time.Time `json:"wake_at,omitzero" jsonschema:"when a tick is due; absent when nothing waits for one"`
	Owner        string    `json:"owner,omitempty" jsonschema:"the process that makes its ticks; absent when there is none"`
	TickOverdue  bool      `json:"tick_overdue" jsonschema:"nobody ticks although it is time"`
	Table        uint64    `json:"route_table" jsonschema:"version of the route table"`
	Recording    string    `json:"recording,omitempty" jsonschema:"the recorded part of the feed and its end; absent without subscribers"`

	Ready  int `json:"ready" jsonschema:"queues that have work which is handed out, those with gates included"`
	Routes int `json:"routes"`
	Lanes  int `json:"lanes" jsonschema:"lanes that an operator configured"`
	Feed   int `json:"feed" jsonschema:"entries of the feed"`

	Delayed   Timer `json:"delayed"`
	Alarms    Timer `json:"alarms" jsonschema:"deadlines, timeouts of attempts and of suspensions"`
	Sessions  Timer `json:"sessions" jsonschema:"a head that is due may belong to a session that was renewed since: the tick files it again"`
	Pending   Timer `json:"pending_waitpoints" jsonschema:"waitpoints without a wait yet"`
	Suspended Timer `json:"suspended" jsonschema:"by when they were suspended"`
	Ended     Timer `json:"ended" jsonschema:"by when they may be purged"`
	Workers   Timer `json:"workers" jsonschema:"workers registered here, by expiry"`
	Schedules Timer `json:"schedules" jsonschema:"schedules that are not paused"`

	Blocked Timer `json:"blocked" jsonschema:"members of flows that wait for others, or for the release of their flow, by when they were created"`
	Flows   Timer `json:"flows" jsonschema:"retained ones, by when they were created"`
	FlowDue Timer `json:"flows_due" jsonschema:"staged flows to be given up, and empty ones to be forgotten"`
	Backlog Timer `json:"flow_backlog" jsonschema:"unfinished work of flows, by when it was looked at last"`

	Closed Timer `json:"closed" jsonschema:"queues that a gate keeps back, by when they open again"`
	Held   Timer `json:"held" jsonschema:"executions that operators hold, by since when"`
	Outbox Timer `json:"outbox" jsonschema:"reports to gates that are not delivered, by filing time"`

	// Lag is for how long the first thing that time moves has been due: far above a second, nobody ticks.
	Lag Millis `json:"lag_ms" jsonschema:"for how long the earliest thing is due that nobody has done"`
	// Behind is for how long the first piece of unfinished work of flows has waited for its turn: ticks work it off,
	// some thousand members a second.
	Behind Millis `json:"behind_ms" jsonschema:"for how long unfinished work of flows waits"`
	// Undelivered is for how long the oldest message to gates has waited: as long slots that are free
	// may look taken. It stays below a second while somebody ticks and their partitions answer.
	Undelivered Millis `json:"undelivered_ms" jsonschema:"for how long a message to gates waits"`

	Totals     Totals         `json:"totals" jsonschema:"totals of executions since the store was created"`
	FlowTotals Totals         `json:"flow_totals" jsonschema:"totals of flows since the store was created; skipped counts members; a reopened flow counts again"`
	Siblings   SiblingCancels `json:"siblings"`

	TokensRefused int `json:"tokens_refused" jsonschema:"refused tokens of waitpoints since the store was created: unknown ones, or of a removed key"`
}

// Totals counts what was purged, and how often something ended in each way: what is replayed ends again. Failed are
// those whose attempts failed; what timed out is among Expired. The difference of two looks is what happened in
// between.
type Totals struct {
	Purged    int `json:"purged"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
	Cancelled int `json:"cancelled"`
	Expired   int `json:"expired"`
	Skipped   int `json:"skipped"`
}

// Timer counts the entries of a partition that wait for a time.
type Timer struct {
	Count int       `json:"count"`
	Head  time.Time `json:"head,omitzero" jsonschema:"the earliest; absent when nothing waits"`
}
