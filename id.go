package flowfabric

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/ids"
)

// ExecutionID names one execution and the partition that holds it: "<partition>-<uuid>", for example
// "3-01970000-0000-7000-8000-00000000abcd". The text has digits, letters a to f and hyphens only, so it needs no
// quoting in a shell, a URL or a file name. The id never changes over retry, reclaim or replay. The zero value names
// nothing. ExecutionID is comparable and safe as a map key. A client chooses the ids of what it submits.
type ExecutionID [18]byte // the partition, big-endian, and the UUID

// ParseExecutionID reads the text form. It refuses a partition that is not a plain decimal number from 0 to 65535,
// and anything but a canonical lower-case UUID after it; it does not know the partition count, which the engine
// checks. The error wraps [ErrInvalidInput].
func ParseExecutionID(text string) (ExecutionID, error) { return parseID("execution", text) }

// parseID reads the id of a thing.
func parseID(thing, text string) (ExecutionID, error) {
	index, tail, ok := strings.Cut(text, "-")
	if !ok {
		return ExecutionID{}, fmt.Errorf("%w: %s id %q is not <partition>-<uuid>", ErrInvalidInput, thing, clip(text))
	}
	n, err := strconv.ParseUint(index, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != index {
		return ExecutionID{}, fmt.Errorf("%w: %s id %q: partition %q is not 0..65535", ErrInvalidInput, thing,
			clip(text), clip(index))
	}
	id, err := ids.ParseUUID(tail)
	if err != nil {
		return ExecutionID{}, fmt.Errorf("%w: %s id %q: %w", ErrInvalidInput, thing, clip(text), err)
	}
	if id == uuid.Nil {
		return ExecutionID{}, fmt.Errorf("%w: %s id %q: the nil uuid names nothing", ErrInvalidInput, thing, clip(text))
	}
	return ids.Join(uint16(n), id), nil
}

// Partition is the number before the first hyphen.
func (e ExecutionID) Partition() uint16 { return ids.PartitionOf(e) }

// IsZero reports whether e names nothing.
func (e ExecutionID) IsZero() bool { return e == ExecutionID{} }

// String is the text form, "3-0197…"; empty for the zero value.
func (e ExecutionID) String() string {
	if e.IsZero() {
		return ""
	}
	return strconv.Itoa(int(e.Partition())) + "-" + ids.UUID(e).String()
}

// MarshalText implements encoding.TextMarshaler, so ids can stand in JSON and in map keys.
func (e ExecutionID) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with the rules of [ParseExecutionID]; empty text is zero.
func (e *ExecutionID) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*e = ExecutionID{}
		return nil
	}
	id, err := ParseExecutionID(string(text))
	if err == nil {
		*e = id
	}
	return err
}

// Fence is the proof of ownership that every write of a holder carries. The server compares all four parts
// with the execution and checks that the session lives; a write under an older fence changes nothing.
// Epoch grows with every claim of the execution, so external systems may use it as a fencing token.
type Fence struct {
	Execution ExecutionID
	Session   string // the worker instance's session in the execution's partition
	Claim     uint64 // number of the claim call inside the session
	Epoch     uint64 // strictly increasing per execution
	Attempt   uint32 // its number, 1 for the first
}

func (f Fence) String() string {
	return fmt.Sprintf("%s#%d@%d", f.Execution, f.Attempt, f.Epoch)
}

// clip keeps untrusted text short inside error messages: no longer than an id, so that a waitpoint's token that is
// taken for one shows what it names, and nothing of its secret.
func clip(s string) string {
	const limit = 48
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
