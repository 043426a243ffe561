package flowfabric

import "time"

// Finding is one difference between an index and the records of a partition.
type Finding struct {
	Partition  uint16 `json:"partition"`
	Kind       string `json:"kind"`
	Index      string `json:"index"`  // "delayed", "q:7", "h:<session>", … or the area of a record ("x": an execution)
	Member     string `json:"member"` // execution, execution:waitpoint, session, route …
	Detail     string `json:"detail,omitempty"`
	Repaired   bool   `json:"repaired"`   // in the call that found it
	Repairable bool   `json:"repairable"` // it was, or would be
}

// CheckReport is the result of admin.Admin.Check or Repair.
type CheckReport struct {
	// Sound: every partition was checked to its end and nothing is wrong any more. A retention that changed, and is
	// applied to what had ended before, is no damage.
	Sound      bool                `json:"sound"`
	Repairing  bool                `json:"repairing"`
	BeganAt    time.Time           `json:"began_at"`
	Took       Millis              `json:"took_ms"`
	Partitions []CheckedPartition  `json:"partitions"` // in order
	Executions map[PublicState]int `json:"executions"` // that were seen, by state
	Kinds      map[string]int      `json:"kinds"`      // findings by kind, those of gates included
	Repaired   int                 `json:"repaired"`
	Repairable int                 `json:"repairable"` // was not repaired, and would be
	Lost       int                 `json:"lost"`       // nothing tells how to repair them
	// Busy are flows of more than 100 members that changed all the time, so that their counters were not compared.
	Busy       int       `json:"busy"`
	Gates      int       `json:"gates"` // that were looked at
	Holds      int       `json:"holds"` // of them, that were asked about
	GatesErr   error     `json:"-"`     // why gates were not checked to their end
	GatesError string    `json:"gates_error,omitempty"`
	Findings   []Finding `json:"findings"` // the first of them, by partition, then those of gates
}

// CheckedPartition is the result of a check of one partition.
type CheckedPartition struct {
	Partition  uint16              `json:"partition"`
	Executions map[PublicState]int `json:"executions"`
	Kinds      map[string]int      `json:"kinds"`
	Repaired   int                 `json:"repaired"`
	Repairable int                 `json:"repairable"`
	Lost       int                 `json:"lost"`
	Busy       int                 `json:"busy"`
	// Err says why the partition was not checked to its end: [ErrPartitionFrozen] (thaw it first), code
	// partition_missing, or another one after three tries that a moving slot or a failover ended: check it again.
	Err   error  `json:"-"`
	Error string `json:"error,omitempty"`
}
