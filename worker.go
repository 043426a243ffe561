package flowfabric

import "time"

// Worker is one worker process, as it registered itself and as the partitions know it; admin.Admin.Workers lists them.
type Worker struct {
	Instance string `json:"instance"`
	WorkerInfo
	// Alive: it has registered or renewed within its lease time, or one of its sessions lives. A worker that was
	// killed is alive until that time is over.
	Alive bool `json:"alive"`
	// Dead: an operator gave it up, for Reason, and it has not come back since. One that is neither alive nor dead is
	// lost.
	Dead       bool   `json:"dead,omitempty" jsonschema:"an operator gave it up; one that is neither alive nor dead is lost"`
	Reason     string `json:"reason,omitempty" jsonschema:"why it was given up"`
	Registered bool   `json:"registered" jsonschema:"false: its registration was forgotten, and it still holds something"`

	RegisteredAt time.Time `json:"registered_at,omitzero" jsonschema:"first, by this process"`
	SeenAt       time.Time `json:"seen_at,omitzero" jsonschema:"when it renewed its registration last"`
	ExpiresAt    time.Time `json:"expires_at,omitzero" jsonschema:"expiry of the registration, unless it is renewed"`
	InFlight     int       `json:"in_flight" jsonschema:"executions that its sessions hold"`
	Reported     int       `json:"reported,omitempty" jsonschema:"handlers that were at work when it was last seen, each in one of its slots"`
	Stuck        int       `json:"stuck,omitempty" jsonschema:"those of them that ignored the end of their context: their slots are not free until they return"`
	// Sessions are its leases: those that are open, and dead ones that still hold something.
	Sessions []WorkerSession `json:"sessions,omitempty" see:"operator" jsonschema:"its leases: open ones, and dead ones that still hold something; for operators"`
}

// WorkerInfo describes a worker, as it registers itself.
type WorkerInfo struct {
	Pool         string            `json:"pool,omitempty"`
	Namespaces   []string          `json:"namespaces,omitempty" for:"open" jsonschema:"namespaces that it serves, its own first; * is every one. Over HTTP * is for tokens that may see all, and the default is those of the token, or default"`
	Lanes        []string          `json:"lanes,omitempty" for:"open" jsonschema:"over HTTP the default is default"`
	LaneWeights  map[string]int    `json:"lane_weights,omitempty" for:"open" jsonschema:"how its lanes share its claims while several have work, where a weight is not 1: 1..1000 for a lane of lanes"`
	Kinds        []string          `json:"kinds,omitempty" for:"open" jsonschema:"kinds that it handles, over HTTP 1..256"`
	Capabilities []string          `json:"capabilities,omitempty" for:"open" jsonschema:"capabilities that executions may require"`
	Concurrency  int               `json:"concurrency,omitempty" for:"open" jsonschema:"its slots: executions that it can run at once. Over HTTP for people, and 1 by default"`
	Host         string            `json:"host,omitempty" see:"operator" jsonschema:"for operators"`
	PID          int               `json:"pid,omitempty" see:"operator" jsonschema:"for operators"`
	Revision     int               `json:"library_revision,omitempty" jsonschema:"revision of the library that the process would load"`
	Version      string            `json:"version,omitempty" for:"open" jsonschema:"version of the application"`
	Labels       map[string]string `json:"labels,omitempty" for:"open" jsonschema:"labels of the application"`
	StartedAt    time.Time         `json:"started_at,omitzero"`
	Truncated    bool              `json:"truncated,omitempty" jsonschema:"its lists were cut, because they are very long"`
	Lease        Millis            `json:"lease_ms,omitempty" for:"open" jsonschema:"of what is claimed for it over HTTP, how long it has an execution without renewing it: 2000..600000, default 30000"`
}

// WorkerSession is a worker's lease in one partition.
type WorkerSession struct {
	Partition uint16    `json:"partition"`
	ID        string    `json:"id"`
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	Alive     bool      `json:"alive" jsonschema:"not given up, and not expired on the server's clock"`
	Dead      bool      `json:"dead,omitempty" jsonschema:"given up: the tick takes what it holds"`
	Reason    string    `json:"reason,omitempty" jsonschema:"why an operator gave it up"`
	Held      int       `json:"held" jsonschema:"executions"`
}
