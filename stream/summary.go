package stream

import (
	"encoding/json"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/mergepatch"
)

// Summary is the summary document of an attempt: one JSON object, merged from deltas. The zero value: the attempt has
// none.
type Summary struct {
	Attempt  uint32          `json:"attempt" jsonschema:"1 for the first"`
	Version  uint64          `json:"version" jsonschema:"deltas merged into it so far"`
	Document json.RawMessage `json:"document,omitempty" jsonschema:"a JSON object"`
	// Encrypted: there is a document, and the reader has no key for it.
	Encrypted bool      `json:"encrypted,omitempty" jsonschema:"the document is left out: the server has no key for it"`
	FirstAt   time.Time `json:"first_at,omitzero"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
	// StreamBytes counts the payloads of all frames that the attempt appended, whatever was trimmed or expired since.
	StreamBytes uint64 `json:"stream_bytes" jsonschema:"payload bytes of all frames that the attempt appended so far, also of trimmed ones"`
}

// MergeSummary applies a delta, the payload of a frame of [ModeSummary], to a document and returns the new one, as
// the attempt's writer does: an RFC 7396 merge patch on objects. An empty document is {}. Numbers keep their digits;
// members come out in order of their keys.
//
// A null deletes a member. The string "__ff_null__" as a member stores a JSON null. A string that begins with
// "__ff_text__" stores the rest of it as it is, also the rest "__ff_null__". Elements of arrays are always stored as
// they are.
//
// A tail that knows the document of version n and gets the delta of version n+1 has the document of n+1.
//
// Errors: [flowfabric.ErrInvalidInput] for what is not one JSON object, has over 16 levels of objects, a number beyond
// float64's range or bytes that are not UTF-8; [flowfabric.ErrPayloadTooLarge] for a new document over 256 KiB.
func MergeSummary(document, delta []byte) ([]byte, error) {
	return mergepatch.Apply(document, delta)
}
