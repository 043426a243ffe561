package httpapi

import (
	"maps"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// terms are what is said of an execution however it comes to be: by itself, by a schedule, as a node of a flow or as
// a child. Names and bounds are those of the options of package flowfabric; times are in milliseconds.
type terms struct {
	Lane         string           `json:"lane,omitempty"`
	Priority     int              `json:"priority,omitempty" jsonschema:"0..9000, higher first"`
	DeadlineMs   int64            `json:"deadline_ms,omitempty"`
	TimeoutMs    int64            `json:"timeout_ms,omitempty" jsonschema:"of an attempt"`
	Retries      *int             `json:"retries,omitempty" jsonschema:"0..1000, default 3"`
	RetentionS   map[string]int64 `json:"retention_s,omitempty" jsonschema:"seconds to keep it after its end, by outcome: completed, failed, cancelled, expired"`
	Capabilities []string         `json:"capabilities,omitempty"`
	shared
}

// shared is what is said of an execution, or of a flow as a whole.
type shared struct {
	Tags    map[string]string `json:"tags,omitempty"`
	Budgets []string          `json:"budgets,omitempty"`
	Quotas  []string          `json:"quotas,omitempty"`
	Limits  []limit           `json:"limits,omitempty" jsonschema:"limits of keys"`
}

// starting is when an execution that is made once may run.
type starting struct {
	DelayMs    int64      `json:"delay_ms,omitempty"`
	DelayUntil *time.Time `json:"delay_until,omitempty"`
	DeadlineAt *time.Time `json:"deadline_at,omitempty"`
}

type limit struct {
	Key         string `json:"key"`
	Concurrency int    `json:"concurrency,omitempty" jsonschema:"how many run at once"`
	Rate        int    `json:"rate,omitempty" jsonschema:"how many start within per_ms"`
	PerMs       int64  `json:"per_ms,omitempty"`
}

func (s *shared) options() []flowfabric.SharedOption {
	opts := []flowfabric.SharedOption{flowfabric.Tags(s.Tags), flowfabric.Budgets(s.Budgets...),
		flowfabric.Quotas(s.Quotas...)}
	for _, l := range s.Limits {
		opts = append(opts, flowfabric.LimitKey(l.Key,
			flowfabric.Limit{Concurrency: l.Concurrency, Rate: l.Rate, Per: ms(l.PerMs)}))
	}
	return opts
}

func (w *terms) options() []flowfabric.WorkOption {
	opts := []flowfabric.WorkOption{flowfabric.Priority(w.Priority), flowfabric.Capabilities(w.Capabilities...)}
	if w.Lane != "" {
		opts = append(opts, flowfabric.Lane(w.Lane))
	}
	if w.DeadlineMs != 0 {
		opts = append(opts, flowfabric.Deadline(ms(w.DeadlineMs)))
	}
	if w.TimeoutMs != 0 {
		opts = append(opts, flowfabric.Timeout(ms(w.TimeoutMs)))
	}
	if w.Retries != nil {
		opts = append(opts, flowfabric.Retries(*w.Retries))
	}
	for _, outcome := range slices.Sorted(maps.Keys(w.RetentionS)) {
		// skipped counts as cancelled: the body names one of them
		seconds := w.RetentionS[outcome]
		opts = append(opts, flowfabric.Retention(times(seconds, time.Second), flowfabric.PublicState(outcome)))
	}
	for _, o := range w.shared.options() {
		opts = append(opts, o)
	}
	return opts
}

// own tells whether anything is said that a flow as a whole does not have.
func (w *terms) own() bool {
	return w.Lane != "" || w.Priority != 0 || w.DeadlineMs != 0 || w.TimeoutMs != 0 || w.Retries != nil ||
		len(w.RetentionS) > 0 || len(w.Capabilities) > 0
}

// options are those of its start; at is where it is in the body, with what is said of its work.
func (s *starting) options(at string, w *terms) (opts []flowfabric.StartOption, err error) {
	switch {
	case s.DelayMs != 0 && s.DelayUntil != nil:
		return nil, invalid(at+"/delay_until", "delay_ms is there, too")
	case w.DeadlineMs != 0 && s.DeadlineAt != nil:
		return nil, invalid(at+"/deadline_at", "deadline_ms is there, too")
	case s.DelayUntil != nil:
		opts = append(opts, flowfabric.DelayUntil(*s.DelayUntil))
	case s.DelayMs != 0:
		opts = append(opts, flowfabric.Delay(ms(s.DelayMs)))
	}
	if s.DeadlineAt != nil {
		opts = append(opts, flowfabric.DeadlineAt(*s.DeadlineAt))
	}
	return opts, nil
}
