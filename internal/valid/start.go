package valid

import (
	"errors"
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Start checks, before any I/O, everything that the server would refuse, and puts names in order. now is the caller's
// clock, from which instants are at most ten years away. Keys are judged where they are used. The error, with the
// field, is flowfabric.ErrInvalidInput, denied.Policy, denied.TagKey or denied.Capabilities.
func Start(s *flowfabric.Start, now time.Time) error {
	for _, name := range [...]struct{ field, value string }{{"namespace", s.Namespace}, {"lane", s.Lane},
		{"kind", s.Kind}} {
		if err := Name(name.field, name.value); err != nil {
			return err
		}
	}
	if err := Terms(s); err != nil {
		return err
	}
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: "+format, append([]any{flowfabric.ErrInvalidInput}, args...)...)
	}
	switch latest := now.Add(limits.MaxDelay); {
	case s.Delay < 0 || time.Duration(s.Delay) > limits.MaxDelay:
		return bad("Delay is %s, want 0..10 years", s.Delay)
	case !s.DelayUntil.IsZero() && (s.DelayUntil.UnixMilli() <= 0 || s.DelayUntil.After(latest)):
		return bad("DelayUntil is %s, want at most 10 years ahead", s.DelayUntil)
	case !s.DeadlineAt.IsZero() && (s.DeadlineAt.UnixMilli() <= 0 || s.DeadlineAt.After(latest)):
		return bad("DeadlineAt is %s, want at most 10 years ahead", s.DeadlineAt)
	case s.Deadline > 0 && s.Delay >= s.Deadline, !s.DeadlineAt.IsZero() && !s.DelayUntil.Before(s.DeadlineAt):
		return bad("the deadline leaves no time after the delay")
	}
	return nil
}

// Terms is [Start] for what a definition and a schedule say as well: everything but names and instants. It joins all
// that is wrong.
func Terms(s *flowfabric.Start) error {
	var priority, creator, deadline error
	if s.Priority < 0 || s.Priority > limits.MaxPriority {
		priority = fmt.Errorf("%w: Priority is %d, want 0..%d", flowfabric.ErrInvalidInput, s.Priority,
			limits.MaxPriority)
	}
	if len(s.Creator) > limits.MaxName {
		creator = fmt.Errorf("%w: Creator has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(s.Creator),
			limits.MaxName)
	}
	if d := time.Duration(s.Deadline); d < 0 || d > limits.MaxDelay || d > 0 && d < time.Millisecond {
		deadline = fmt.Errorf("%w: Deadline is %s, want 0 or 1 ms..10 years", flowfabric.ErrInvalidInput, d)
	}
	return errors.Join(priority, creator, deadline, Stored(s))
}

// Stored is the part of [Terms] that only Go can check, or that would spoil a call for the other items of its batch.
func Stored(s *flowfabric.Start) error {
	policy := Policy(s.Policy)
	var tags, capabilities, gates error
	if len(s.Tags) > 0 {
		tags = Tags(s.Tags)
	}
	if len(s.Capabilities) > 0 {
		s.Capabilities, capabilities = Capabilities(s.Capabilities)
	}
	if all := s.Gates(); len(all) > 0 {
		_, gates = Gates(all)
	}
	return errors.Join(policy, tags, capabilities, gates)
}

// Unpacked is a stored start with the policy that was packed beside it, since its JSON tells of that in part.
func Unpacked(s flowfabric.Start, packed string) (flowfabric.Start, error) {
	policy, err := UnpackPolicy(packed)
	policy.AttemptTimeout = s.AttemptTimeout
	s.Policy = policy
	return s, err
}
