package suspend

import "time"

// PartitionKeys are the token keys of one partition.
type PartitionKeys struct {
	Partition uint16     `json:"partition"`
	Current   string     `json:"current,omitempty" jsonschema:"the id of the key that signs"`
	Keys      []TokenKey `json:"keys"`
	Err       error      `json:"-"`
	Error     string     `json:"error,omitempty"`
}

// TokenKey is a key that verifies tokens in a partition.
type TokenKey struct {
	Kid         string    `json:"kid"`
	Fingerprint string    `json:"fingerprint" jsonschema:"fingerprint of its secret, 16 hex digits"`
	Current     bool      `json:"current" jsonschema:"it signs"`
	ExpiresAt   time.Time `json:"expires_at,omitzero" jsonschema:"absent for the current one"`
	Open        int       `json:"open_waitpoints" jsonschema:"under it"`
	NeededUntil time.Time `json:"needed_until,omitzero" jsonschema:"when the last of them ends; far in the future if one has no end"`
}

// KeyRotated is the answer of one partition to a rotation.
type KeyRotated struct {
	Partition uint16 `json:"partition"`
	Previous  string `json:"previous,omitempty" jsonschema:"the key that signed until now"`
	Noop      bool   `json:"already" jsonschema:"it was the key before"`
	Reaped    int    `json:"forgotten_keys" jsonschema:"keys whose grace was over"`
	Open      int    `json:"open_waitpoints" jsonschema:"under the key before"`
	Err       error  `json:"-"` // flowfabric.ErrState, ErrConflict, or why the call failed
	Error     string `json:"error,omitempty" jsonschema:"why it was not done there; repeat the request"`
}
