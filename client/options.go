package client

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/submission"
)

// SubmitOption changes one submission: of package flowfabric Priority, Lane, Timeout, Deadline, DeadlineAt, Delay,
// DelayUntil, Retries, Retention, Capabilities, Tags, Gates, LimitKey, Namespace, Creator and Key; for
// [SubmitMany] [Keys] instead of Key. Later options win over earlier ones, and all of them over the definition.
type SubmitOption interface{ SubmitOption() }

// Keys gives every input of a [SubmitMany] its own flowfabric.Key; key is called once per index. Of inputs with equal
// keys the first is created, and the others return its handle. If the keys debounce, the last one counts.
func Keys(key func(index int) flowfabric.Key) SubmitOption { return submission.Keys(key) }
