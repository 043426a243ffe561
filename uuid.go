package flowfabric

import "github.com/google/uuid"

// UUID is the id of a waitpoint, a suspension, a signal or a request of an operator: 16 bytes, as RFC 9562 has them.
// A library for UUIDs converts from and to it, for example uuid.UUID(id) of github.com/google/uuid. The zero value is
// none. UUID is comparable and safe as a map key.
type UUID [16]byte

// IsZero reports whether u is none.
func (u UUID) IsZero() bool { return u == UUID{} }

// String is the canonical text: 36 lower-case characters. The zero value has a text, too.
func (u UUID) String() string { return uuid.UUID(u).String() }

// MarshalText implements encoding.TextMarshaler.
func (u UUID) MarshalText() ([]byte, error) { return uuid.UUID(u).MarshalText() }

// UnmarshalText implements encoding.TextUnmarshaler. It reads the canonical text, and the same with upper-case letters,
// without hyphens, in braces or after "urn:uuid:". An error says that the text is none of these.
func (u *UUID) UnmarshalText(text []byte) error { return (*uuid.UUID)(u).UnmarshalText(text) }
