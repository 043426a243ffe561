package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Prefixes of steps that the library records for itself; names of users never begin with the unit separator.
const (
	// StepAwait + name keeps what a wait was answered; [DecodeResume] reads it.
	StepAwait = unit + "a:"
	// StepWaitpoint + name keeps a pending waitpoint; [DecodeOpened] reads it.
	StepWaitpoint = unit + "w:"
	// StepReceipt + name keeps the messages that a receipt took; [DecodeReceipt] reads it.
	StepReceipt = unit + "m:"
)

// Minted is a waitpoint's identity: what its token was made of, and the SHA-256 of that token.
type Minted struct {
	ID     flowfabric.UUID
	Key    string // 1..256 bytes without control characters
	Kid    string
	Nonce  string  // 32 hex digits
	Digest string  // 64 hex digits
	Event  Subject // of the event that it takes; zero: it takes none
}

// Opened is a waitpoint as its holder gets to know it; the token follows from it and the secret of its kid.
type Opened struct {
	ID        flowfabric.UUID
	Key       string
	Kid       string
	Nonce     string
	ExpiresAt time.Time // of a pending one; of one that is waited on, the end of the wait, if it has one
	Closed    bool      // the handler has closed it
	Event     string    // what stands for the subject of the event that it takes; "": it takes none
	Wanted    bool      // that event has not come
}

// DecodeOpened reads the step that keeps a pending waitpoint.
func DecodeOpened(blob []byte) (Opened, error) {
	r := parts("waitpoint", strings.SplitN(string(blob), " ", 5), 5)
	out := Opened{ID: r.UUID(), Kid: r.Text(), Nonce: r.Text()}
	ms := r.number()
	out.ExpiresAt, out.Closed, out.Key = time.UnixMilli(ms).UTC(), ms == 0, r.Text()
	if key, event, ok := strings.Cut(out.Key, "\x1e"); ok && event != "" {
		out.Key, out.Wanted, out.Event = key, event[0] == '1', event[1:]
	}
	return out, r.fail()
}

// Binding is one waitpoint of a suspension: a fresh one, or a pending one of which only ID and Key matter.
type Binding struct {
	Minted
	Pending bool
	Within  time.Duration // how long it takes answers, with Suspension.Several; 0: as long as the suspension lasts
}

// Suspension asks to suspend a held attempt.
type Suspension struct {
	ID          flowfabric.UUID // of the suspension; makes a repeat harmless
	Request     string          // ≤ 256 bytes; the same under the same fence is the same suspension
	Name        string          // ≤ 128 bytes; keeps the answer under it for later runs; "" keeps nothing
	Reason      string          // why it waits, such as waiting_for_approval
	Timeout     time.Duration   // 0: waits for ever
	Behaviour   string          // what the timeout does
	ResumeDelay time.Duration   // 0..30 days between resumption and the next claim
	Condition   string          // as lua/lib/condition.lua describes it; package suspend writes it
	Question    string          // JSON, a suspend.Question or what [Questions] writes; "" for none
	Several     bool            // each waitpoint has a question of its own, and closes once it is answered or over
	Bindings    []Binding       // ≤ 16, numbered from 1 in the condition
}

// Suspended answers SuspendExecution.
type Suspended struct {
	Satisfied  bool // signals that came early suffice: the lease is kept, and Resume tells which
	Already    bool // an earlier call had done it
	Suspension flowfabric.UUID
	TimeoutAt  time.Time
	Resume     suspend.Result
	Kid        string // the key that signs in this partition now
	Events     int    // that its history has now
	Waitpoints []Opened
}

var waitpointStates = map[string]string{"p": "pending", "a": "active", "c": "closed", "x": "expired"}

// openState tells whether a waitpoint with this letter takes signals.
func openState(letter string) bool { return letter == "p" || letter == "a" }

// decodeWaitpoint reads what lua/lib/waitpoint.lua stores.
func decodeWaitpoint(id, text string) (w suspend.Waitpoint, err error) {
	r := parts("waitpoint "+clip(id), append([]string{id}, strings.Split(text, unit)...), 17)
	w.ID = r.UUID()
	letter := r.Text()
	if w.State = waitpointStates[letter]; w.State == "" {
		r.Stop("state %q", clip(letter))
	}
	w.Key, w.Kid, w.Fingerprint = r.Text(), r.Text(), fingerprint(r.Text())
	r.Text() // the nonce
	w.CreatedAt, w.ActivatedAt, w.ExpiresAt, w.Suspension = r.InstantOr0(), r.InstantOr0(), r.InstantOr0(), r.UUIDOr0()
	w.Signals, w.Matched, w.LastSignalAt, w.ClosedAt = r.Int(), r.Int(), r.InstantOr0(), r.InstantOr0()
	w.CloseReason = r.Text()
	r.Text() // its bytes
	w.Subject = r.Text()
	return w, r.fail()
}

// fingerprint of a token, made from its digest, which would itself open the waitpoint.
func fingerprint(digest string) string {
	sum := sha256.Sum256([]byte(digest))
	return hex.EncodeToString(sum[:8])
}
