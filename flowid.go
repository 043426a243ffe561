package flowfabric

import "github.com/flowfabric/flowfabric-go/internal/ids"

// FlowID names one flow and the partition that holds it and all of its members: "<partition>-<uuid>", as for an
// [ExecutionID]. An execution that waits for children without being a member of a flow starts one that has its own
// id. The zero value names nothing. FlowID is comparable and safe as a map key.
type FlowID ExecutionID

// ParseFlowID reads the text form, with the rules of [ParseExecutionID].
func ParseFlowID(text string) (FlowID, error) {
	id, err := parseID("flow", text)
	return FlowID(id), err
}

// Member is the execution of a node. Staging a flow again therefore makes no member twice.
func (f FlowID) Member(node string) ExecutionID {
	return ids.Join(f.Partition(), ids.Derive("flowfabric member v1", ids.UUID(f).String(), node))
}

// Child is the execution of a child that an execution makes and waits for, under the names of the wait and of the
// child.
func (e ExecutionID) Child(wait, name string) ExecutionID {
	return ids.Join(e.Partition(), ids.Derive("flowfabric child v1", ids.UUID(e).String(), wait, name))
}

// Partition is the number before the first hyphen.
func (f FlowID) Partition() uint16 { return ids.PartitionOf(f) }

// IsZero reports whether f names nothing.
func (f FlowID) IsZero() bool { return f == FlowID{} }

// String is the text form; empty for the zero value.
func (f FlowID) String() string { return ExecutionID(f).String() }

// MarshalText implements encoding.TextMarshaler.
func (f FlowID) MarshalText() ([]byte, error) { return ExecutionID(f).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler with the rules of [ParseFlowID]; empty text is zero.
func (f *FlowID) UnmarshalText(text []byte) error { return (*ExecutionID)(f).UnmarshalText(text) }
