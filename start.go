package flowfabric

import (
	"reflect"
	"slices"
	"time"
)

// Start holds everything that an execution starts with, except its input: what the options say, what a definition holds
// as its defaults, and what bodies of the HTTP API, nodes of flows and schedules have as members. What is zero is not
// said. The bounds of a field are those of the option of its name.
//
// The tag for names where a member may stand: submit for an execution that is submitted, schedule, node also for a
// child, flow for a flow as a whole, word for what is read back.
type Start struct {
	Kind         string   `json:"kind" for:"submit schedule node flow" jsonschema:"kind of the work; for a flow, the name of flows of this shape"`
	Namespace    string   `json:"namespace,omitempty" for:"submit schedule flow"`
	Lane         string   `json:"lane,omitempty" for:"submit schedule node"`
	Priority     int      `json:"priority,omitempty" for:"submit schedule node" jsonschema:"0..9000, higher first"`
	Capabilities []string `json:"capabilities,omitempty" for:"submit schedule node"`
	// Delay and DelayUntil exclude each other, and so do Deadline and DeadlineAt.
	Delay      Millis    `json:"delay_ms,omitempty" for:"submit node"`
	DelayUntil time.Time `json:"delay_until,omitzero" for:"submit node"`
	Deadline   Millis    `json:"deadline_ms,omitempty" for:"submit schedule node"`
	DeadlineAt time.Time `json:"deadline_at,omitzero" for:"submit node"`
	// Retries is what [StartWith] makes Policy.Retry.MaxRetries; nil says nothing. Nothing else reads it.
	Retries *int `json:"retries,omitempty" for:"submit schedule node" jsonschema:"0..1000, default 3"`
	Policy
	Tags    map[string]string `json:"tags,omitempty" for:"submit schedule node flow"`
	Names   []string          `json:"gates,omitempty" for:"submit schedule node flow" jsonschema:"gates by name"`
	Limits  []KeyLimit        `json:"limits,omitempty" for:"submit schedule node flow" jsonschema:"limits of keys"`
	Creator string            `json:"creator,omitempty" for:"word"`

	// Key is nil without a key. A document has no place for it: its reader makes one of what it says.
	Key *Key `json:"-" for:"submit flow"`
}

// KeyLimit is a limit of a key as [LimitKey] makes it.
type KeyLimit struct {
	Key         string `json:"key"`
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"how many run at once"`
	Rate        int    `json:"rate,omitempty" jsonschema:"how many start within per_ms"`
	Per         Millis `json:"per_ms,omitempty"`
}

// Gates are the gates by name and the limits of keys in the form in which the server asks them, sorted, without
// repeats. Nothing is checked.
func (s Start) Gates() []Gate {
	n := len(s.Names) + len(s.Limits)
	if n == 0 {
		return nil
	}
	gates := make([]Gate, 0, n)
	for _, name := range s.Names {
		gates = append(gates, Gate(name))
	}
	for _, l := range s.Limits {
		gates = append(gates, limitGate(l.Key, Limit{Concurrency: l.Concurrency, Rate: l.Rate,
			Per: time.Duration(l.Per)}))
	}
	slices.Sort(gates)
	return slices.Compact(gates)
}

// StartWith says everything that s says, as the options of these names would: for a program that reads what it
// submits from a file or a request. The kind is that of the definition. What has no place there, such as the lane of
// a flow as a whole, is [ErrInvalidInput].
func StartWith(s Start) interface { // accepted wherever something is submitted, and by flow.New and flow.Add
	StartOption
	ScheduleOption()
	FlowOption()
	SubmitFlowOption()
	ScheduleFlowOption()
	AttachOption()
} {
	return setter(func(to *Start) {
		if s.Delay != 0 || !s.DelayUntil.IsZero() {
			to.Delay, to.DelayUntil = 0, time.Time{}
		}
		if s.Deadline != 0 || !s.DeadlineAt.IsZero() {
			to.Deadline, to.DeadlineAt = 0, time.Time{}
		}
		kind := to.Kind
		say(reflect.ValueOf(to).Elem(), reflect.ValueOf(s))
		to.Kind = kind
		if s.Retries != nil {
			to.Retries, to.Policy.Retry.MaxRetries = nil, *s.Retries
		}
	})
}

// say sets the fields that are not zero.
func say(to, from reflect.Value) {
	for i := range from.NumField() {
		switch f := from.Field(i); {
		case f.Kind() == reflect.Struct && f.Type() != reflect.TypeFor[time.Time]():
			say(to.Field(i), f)
		case !f.IsZero():
			to.Field(i).Set(f)
		}
	}
}
