package flowfabric

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ExecutionID names one execution and the partition that holds it: "{fp:N}:<uuid>". The braces are a Valkey
// Cluster hash tag, so everything of one execution lives in one slot. The id never changes over retry,
// reclaim or replay. The zero value names nothing. ExecutionID is comparable and safe as a map key.
type ExecutionID struct {
	partition uint16
	id        uuid.UUID
}

// NewExecutionID mints a time-ordered id (UUIDv7) in the given partition. Order of minting inside one process
// is order of the ids, which is what breaks ties between executions created in one millisecond.
func NewExecutionID(partition uint16) ExecutionID {
	return ExecutionID{partition: partition, id: uuid.Must(uuid.NewV7())}
}

// DeriveExecutionID returns the id that an idempotency key stands for: equal (namespace, kind, key) always
// give the same id in the same partition, as long as the partition count is the same (it is fixed at boot).
func DeriveExecutionID(partitions uint16, namespace, kind, key string) ExecutionID {
	id := derive("flowfabric idempotency v1", namespace, kind, key)
	return ExecutionID{partition: PartitionOf(id, partitions), id: id}
}

// ScheduledExecutionID is the id of what a schedule submits at an instant: the same for everybody who fires it.
// incarnation tells schedules apart that had the name one after the other.
func ScheduledExecutionID(partition uint16, name string, incarnation uint64, due time.Time) ExecutionID {
	return ExecutionID{partition: partition, id: derive("flowfabric schedule v1", name, strconv.FormatUint(incarnation, 10),
		strconv.FormatInt(due.UnixMilli(), 10))}
}

// derive makes a UUID out of texts, under a label that says what they are.
func derive(label string, parts ...string) uuid.UUID {
	h := sha256.New()
	h.Write([]byte(label))
	var size [8]byte
	for _, part := range parts {
		binary.BigEndian.PutUint64(size[:], uint64(len(part)))
		h.Write(size[:])
		h.Write([]byte(part))
	}
	var id uuid.UUID
	copy(id[:], h.Sum(nil))
	id[6] = id[6]&0x0f | 0x80 // version 8: content chosen by the application
	id[8] = id[8]&0x3f | 0x80 // variant RFC 9562
	return id
}

// PartitionOf places a UUID: CRC16 (XMODEM, the one Valkey Cluster uses) of its 16 bytes, modulo count.
func PartitionOf(id uuid.UUID, count uint16) uint16 { return crc16(id[:]) % max(count, 1) }

// SchedulePartition places a schedule by its name, in the same way.
func SchedulePartition(name string, count uint16) uint16 { return crc16([]byte(name)) % max(count, 1) }

func crc16(text []byte) uint16 {
	var crc uint16
	for _, b := range text {
		crc ^= uint16(b) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

// MakeExecutionID joins a partition and a UUID.
func MakeExecutionID(partition uint16, id uuid.UUID) ExecutionID {
	return ExecutionID{partition: partition, id: id}
}

// ParseExecutionID reads the text form. It refuses a missing or misplaced brace, an index that is not a plain
// decimal uint16, and anything but a canonical lower-case UUID; it does not know the partition count, which
// the engine checks. The error wraps [ErrInvalidInput].
func ParseExecutionID(text string) (ExecutionID, error) {
	rest, ok := strings.CutPrefix(text, "{fp:")
	if !ok {
		return ExecutionID{}, fmt.Errorf("%w: execution id %q does not start with {fp:N}", ErrInvalidInput, clip(text))
	}
	index, tail, ok := strings.Cut(rest, "}:")
	if !ok {
		return ExecutionID{}, fmt.Errorf("%w: execution id %q: no }: follows the partition number", ErrInvalidInput, clip(text))
	}
	n, err := strconv.ParseUint(index, 10, 16)
	if err != nil || strconv.FormatUint(n, 10) != index {
		return ExecutionID{}, fmt.Errorf("%w: execution id %q: partition %q is not 0..65535", ErrInvalidInput, clip(text), clip(index))
	}
	id, err := ParseUUID(tail)
	if err != nil {
		return ExecutionID{}, fmt.Errorf("execution id %q: %w", clip(text), err)
	}
	if id == uuid.Nil {
		return ExecutionID{}, fmt.Errorf("%w: execution id %q: the nil uuid names nothing", ErrInvalidInput, clip(text))
	}
	return ExecutionID{partition: uint16(n), id: id}, nil
}

// ParseUUID reads a canonical lower-case UUID (36 bytes) and nothing else. The error wraps [ErrInvalidInput].
func ParseUUID(text string) (uuid.UUID, error) {
	if len(text) == 36 {
		if id, err := uuid.Parse(text); err == nil && id.String() == text {
			return id, nil
		}
	}
	return uuid.UUID{}, fmt.Errorf("%w: %q is not a lower-case uuid of 36 characters", ErrInvalidInput, clip(text))
}

// Partition is the index N of "{fp:N}".
func (e ExecutionID) Partition() uint16 { return e.partition }

// UUID is the part after the partition.
func (e ExecutionID) UUID() uuid.UUID { return e.id }

// IsZero reports whether e names nothing.
func (e ExecutionID) IsZero() bool { return e == ExecutionID{} }

// String is the text form, "{fp:3}:0197…"; empty for the zero value.
func (e ExecutionID) String() string {
	if e.IsZero() {
		return ""
	}
	return "{fp:" + strconv.Itoa(int(e.partition)) + "}:" + e.id.String()
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
	Attempt   uint32 // attempt index, zero based
}

func (f Fence) String() string {
	return fmt.Sprintf("%s#%d@%d", f.Execution, f.Attempt, f.Epoch)
}

// clip keeps untrusted text short inside error messages: no longer than an id, so that a waitpoint's token that is taken for one
// shows what it names, and nothing of its secret.
func clip(s string) string {
	const limit = 48
	if len(s) <= limit {
		return s
	}
	return s[:limit] + "…"
}
