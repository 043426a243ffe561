package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/flowfabric/flowfabric-go/internal/denied"
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
	ID     uuid.UUID
	Key    string // 1..256 bytes without control characters
	Kid    string
	Nonce  string // 32 hex digits
	Digest string // 64 hex digits
}

// Opened is a waitpoint as its holder gets to know it; the token follows from it and the secret of its kid.
type Opened struct {
	ID        uuid.UUID
	Key       string
	Kid       string
	Nonce     string
	ExpiresAt time.Time // of a pending one
	Closed    bool      // the handler has closed it
}

// DecodeOpened reads the step that keeps a pending waitpoint.
func DecodeOpened(blob []byte) (Opened, error) {
	p := strings.SplitN(string(blob), " ", 5)
	if len(p) != 5 {
		return Opened{}, fmt.Errorf("%w: a waitpoint of %d parts", denied.Reply, len(p))
	}
	id, err1 := uuid.Parse(p[0])
	ms, err2 := strconv.ParseInt(p[3], 10, 64)
	if err1 != nil || err2 != nil {
		return Opened{}, fmt.Errorf("%w: waitpoint %q", denied.Reply, clip(string(blob)))
	}
	return Opened{ID: id, Kid: p[1], Nonce: p[2], ExpiresAt: time.UnixMilli(ms), Closed: ms == 0, Key: p[4]}, nil
}

// Binding is one waitpoint of a suspension: a fresh one, or a pending one of which only ID and Key matter.
type Binding struct {
	Minted
	Pending bool
}

// Suspension asks to suspend a held attempt.
type Suspension struct {
	ID          uuid.UUID     // of the suspension; makes a repeat harmless
	Request     string        // ≤ 256 bytes; a repeat under the same fence with the same request is the same suspension
	Name        string        // ≤ 128 bytes; under which what it is answered is kept for later runs; "" keeps nothing
	Reason      string        // why it waits, such as waiting_for_approval
	Timeout     time.Duration // 0: waits for ever
	Behaviour   string        // what the timeout does
	ResumeDelay time.Duration // 0..30 days between resumption and the next claim
	Condition   string        // as lua/lib/condition.lua describes it; package suspend writes it
	Question    string        // ≤ 8 KiB of JSON, a suspend.Question; "" for none
	Bindings    []Binding     // ≤ 16, numbered from 1 in the condition
}

// Suspended answers SuspendExecution.
type Suspended struct {
	Satisfied  bool // signals that came early suffice: the lease is kept, and Resume tells which
	Already    bool // an earlier call had done it
	Suspension uuid.UUID
	TimeoutAt  time.Time
	Resume     suspend.Result
	Kid        string // the key that signs in this partition now
	Waitpoints []Opened
}

var waitpointStates = map[string]string{"p": "pending", "a": "active", "c": "closed", "x": "expired"}

// openState tells whether a waitpoint with this letter takes signals.
func openState(letter string) bool { return letter == "p" || letter == "a" }

// waitpointParts is how many parts lua/lib/waitpoint.lua joins.
const waitpointParts = 15

func decodeWaitpoint(id, text string) (suspend.Waitpoint, error) {
	p := strings.Split(text, unit)
	state := waitpointStates[p[0]]
	if len(p) != waitpointParts || state == "" {
		return suspend.Waitpoint{}, fmt.Errorf("%w: waitpoint %s", denied.Reply, clip(id))
	}
	w := suspend.Waitpoint{State: state, Key: p[1], Kid: p[2], Fingerprint: fingerprint(p[3]), CloseReason: p[13]}
	var errs [9]error
	w.ID, errs[0] = uuid.Parse(id)
	w.CreatedAt, errs[1] = millisAt(p[5])
	w.ActivatedAt, errs[2] = millisAt(p[6])
	w.ExpiresAt, errs[3] = millisAt(p[7])
	if p[8] != "" {
		w.Suspension, errs[4] = uuid.Parse(p[8])
	}
	w.Signals, errs[5] = strconv.Atoi(p[9])
	w.Matched, errs[6] = strconv.Atoi(p[10])
	w.LastSignalAt, errs[7] = millisAt(p[11])
	w.ClosedAt, errs[8] = millisAt(p[12])
	for _, err := range errs {
		if err != nil {
			return suspend.Waitpoint{}, fmt.Errorf("%w: waitpoint %s: %w", denied.Reply, clip(id), err)
		}
	}
	return w, nil
}

// fingerprint of a token, made from its digest, which would itself open the waitpoint.
func fingerprint(digest string) string {
	sum := sha256.Sum256([]byte(digest))
	return hex.EncodeToString(sum[:8])
}
