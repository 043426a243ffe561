package waitwords

import flowfabric "github.com/flowfabric/flowfabric-go"

// Undecodable says that a signal's payload does not decode into the type that the handler wants. It matches
// flowfabric.ErrInvalidInput.
type Undecodable struct{ Err error }

func (e *Undecodable) Error() string {
	return flowfabric.ErrInvalidInput.Error() + ": " + e.Err.Error()
}

// Unwrap returns flowfabric.ErrInvalidInput and the reason.
func (e *Undecodable) Unwrap() []error { return []error{flowfabric.ErrInvalidInput, e.Err} }
