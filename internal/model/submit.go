package model

import (
	"maps"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Submission is what a producer asks for. Times are ms.
type Submission struct {
	ID       string
	Route    Route
	Priority int
	Delay    int64 // from now; 0 = none
	Deadline int64 // from now; 0 = none
	Policy   flowfabric.Policy
	Creator  string
	Digest   string
	Key      string // "" = none
	Held     int64  // for how long the key is taken whatever becomes of the execution; -1 = as long as it is there
	Debounce bool   // the key debounces, and Held means nothing
	Most     int64  // for how long it may put its execution off in all; 0 = no bound
	Input    int    // bytes
	Tags     map[string]string
}

// Create admits one execution: all is validated first; then an id that is known answers
// what it is, unless its payload was another one; so does a key that another execution has; then its lane must accept
// work; then it waits in its route or for its delay. A batch is the same as its items one after another.
func (p *Partition) Create(s Submission) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := s.validate(); code != "" {
		return answer(code)
	}
	if code, digest, ok := p.known(s.ID); ok {
		if s.Digest != "" && digest != "" && s.Digest != digest {
			return answer("idempotency_conflict", s.ID)
		}
		return answer(Duplicate, string(code))
	}
	if s.Key != "" && s.Debounce {
		if r, done := p.debounce(s); done {
			return r
		}
	} else if id, x := p.holder(s.Key); x != nil {
		return p.meets(s, id, x)
	}
	if lane := p.lane(s.Route); !lane.accepts() {
		return answer("lane_closed", s.Route.Lane, "is", lane.State)
	}
	route := p.route(s.Route)
	if route == 0 {
		return answer("too_many_routes")
	}
	x := &Execution{Route: route, Priority: clamp(s.Priority), Policy: s.Policy, Creator: s.Creator, Digest: s.Digest,
		Input: s.Input, Created: p.Now, Tags: maps.Clone(s.Tags), Steps: map[string]string{}}
	if x.Tags == nil {
		x.Tags = map[string]string{}
	}
	if s.Deadline > 0 {
		x.Deadline = p.Now + s.Deadline
		p.need(x.Deadline)
	}
	p.Executions[s.ID] = x
	if s.Key != "" {
		p.begins(x, s)
	}
	if s.Delay > 0 {
		x.DelayUntil = p.Now + s.Delay
		p.move(x, "R2af")
	} else {
		p.move(x, "R1f")
	}
	return answer(OK, string(x.Code))
}

// holder is the execution that has a key; nil if nobody has it.
func (p *Partition) holder(key string) (id string, x *Execution) {
	id = p.Keys[key]
	if x = p.Executions[id]; x == nil || x.Debounced && !x.unclaimed() ||
		!x.Debounced && x.terminal() && x.Till >= 0 && x.Till <= p.Now {
		return "", nil
	}
	return id, x
}

// known tells the state and payload digest of an id that is taken, by an execution or a tombstone.
func (p *Partition) known(id string) (code Code, digest string, ok bool) {
	if x := p.Executions[id]; x != nil {
		return x.Code, x.Digest, true
	}
	t, ok := p.Tombstones[id]
	return t.Code, t.Digest, ok
}

func clamp(priority int) int { return min(max(priority, 0), limits.MaxPriority) }

func (s *Submission) validate() string {
	for _, name := range []string{s.Route.Namespace, s.Route.Lane, s.Route.Kind} {
		if valid.Name("", name) != nil {
			return "invalid_input"
		}
	}
	if s.Route.Capabilities != "" {
		if _, err := valid.Capabilities(strings.Split(s.Route.Capabilities, ",")); err != nil {
			return "invalid_capabilities"
		}
	}
	switch {
	case s.Delay < 0 || s.Delay > maxAhead || s.Deadline < 0 || s.Deadline > maxAhead:
		return "invalid_input"
	case valid.Policy(s.Policy) != nil:
		return "invalid_policy"
	case len(s.Creator) > limits.MaxName:
		return "invalid_input"
	case !uuid(s.ID):
		return "invalid_input"
	case s.Key != "" && (!uuid(s.Key) || !s.Debounce && (s.Held < -1 || s.Held > year) ||
		s.Debounce && (s.Most < 0 || s.Most > maxAhead)):
		return "invalid_input"
	case len(s.Digest) > 64:
		return "invalid_input"
	case s.Input > limits.MaxPayload:
		return "payload_too_large"
	}
	return invalidTags(s.Tags)
}

// uuid reports whether a text is as long as an id, which is all that a lookup asks for.
func uuid(id string) bool { return len(id) == 36 }

func invalidTags(tags map[string]string) string {
	for k, v := range tags {
		if valid.Tags(map[string]string{k: ""}) != nil {
			return "invalid_tag_key"
		}
		if len(v) > limits.MaxTagValue {
			return "invalid_input"
		}
	}
	return ""
}

// SetTags sets and removes tags in any state, all of them or none; a key in both is removed.
func (p *Partition) SetTags(id string, set map[string]string, remove []string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || len(set) > limits.MaxTags || len(remove) > limits.MaxTags {
		return answer("invalid_input")
	}
	if code := invalidTags(set); code != "" {
		return answer(code)
	}
	x := p.Executions[id]
	if x == nil {
		return answer("execution_not_found")
	}
	tags := maps.Clone(x.Tags)
	maps.Copy(tags, set)
	for _, k := range remove {
		delete(tags, k)
	}
	switch {
	case len(tags) > limits.MaxTags:
		return answer("invalid_input")
	case maps.Equal(tags, x.Tags):
		return answer(Already, number(len(tags)))
	}
	x.Tags = tags
	return answer(OK, number(len(tags)))
}

// Purge removes an ended execution and leaves a tombstone for keep ms.
func (p *Partition) Purge(id string, keep int64) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if !uuid(id) || keep < 86_400_000 || keep > maxAhead {
		return answer("invalid_input")
	}
	x := p.Executions[id]
	if x == nil {
		if t, ok := p.Tombstones[id]; ok {
			return answer(Already, string(t.Code))
		}
		return answer("execution_not_found")
	}
	if !x.terminal() {
		return answer("execution_not_terminal", string(x.Code))
	}
	p.forget(id, keep)
	return answer(OK, "0")
}
