package engine

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// requirements packs what a worker must have and what must be asked before the work runs.
func requirements(capabilities []string, gates []flowfabric.Gate) string {
	text := strings.Join(capabilities, ",")
	for i, g := range gates {
		if i == 0 {
			text += "\x1f"
		} else {
			text += ","
		}
		text += string(g)
	}
	return text
}

// when formats an instant for args.instant of the library: absolute, "+ms" from the server's now, or nothing.
func when(at time.Time, in time.Duration) string {
	switch {
	case !at.IsZero():
		return strconv.FormatInt(max(0, at.UnixMilli()), 10)
	case in > 0:
		return "+" + strconv.FormatInt(max(1, in.Milliseconds()), 10)
	}
	return ""
}

func fenceOf(f flowfabric.Fence) wire.Fence {
	return wire.Fence{ID: ids.UUID(f.Execution).String(), Session: f.Session, Claim: int(f.Claim), Epoch: int(f.Epoch),
		Attempt: int(f.Attempt)}
}

func fenceArgs(args []string, f flowfabric.Fence) []string {
	words := make(words, 0, fenceWords)
	return words.fence(args, f)
}

// words is the memory of many short arguments, made at once.
type words []byte

// How much of it a UUID takes, and at most a fence: a UUID, two numbers of 64 bits and one of 32.
const (
	uuidWords  = 36
	fenceWords = uuidWords + 20 + 20 + 10
)

func (w *words) fence(args []string, f flowfabric.Fence) []string {
	return append(args, w.uuid(ids.UUID(f.Execution)), f.Session, w.number(f.Claim), w.number(f.Epoch),
		w.attempt(f.Attempt))
}

// attempt is empty for 0, which no attempt has: the server refuses the fence as partial.
func (w *words) attempt(n uint32) string {
	if n == 0 {
		return ""
	}
	return w.number(uint64(n))
}

func (w *words) uuid(id uuid.UUID) string {
	at := len(*w)
	*w = hex.AppendEncode(*w, id[:4])
	for _, part := range [][]byte{id[4:6], id[6:8], id[8:10], id[10:]} {
		*w = hex.AppendEncode(append(*w, '-'), part)
	}
	return rueidis.BinaryString((*w)[at:])
}

func (w *words) number(n uint64) string {
	if n < 100 {
		return strconv.FormatUint(n, 10) // of a table
	}
	at := len(*w)
	*w = strconv.AppendUint(*w, n, 10)
	return rueidis.BinaryString((*w)[at:])
}

// CompleteExecutions settles 1..100 held executions of one partition with their results (≤ 1 MiB in all), in one
// atomic call (lua/execution/ff_complete_execution.lua). Items are judged alone; Settled.Already means that an
// earlier identical call had settled it. With next, the same call then claims: a claim that was refused is the
// returned error, beside the settlements, which stand.
func (e *Engine) CompleteExecutions(ctx context.Context, partition uint16, items []Completion,
	next *ClaimRequest) ([]Settled, *ClaimReply, error) {
	if len(items) < 1 || len(items) > limits.MaxBatch {
		return nil, nil, fmt.Errorf("ff_complete_execution: %w: %d items, want 1..%d", flowfabric.ErrInvalidInput,
			len(items), limits.MaxBatch)
	}
	args, total := make([]string, 2, 3+6*len(items)+9), 0
	args[0], args[1] = protocol, strconv.Itoa(len(items))
	words := make(words, 0, fenceWords*len(items))
	for i := range items {
		x := &items[i]
		if x.Fence.Execution.Partition() != partition {
			return nil, nil, fmt.Errorf("ff_complete_execution: %w: item %d: %s is not of partition %d",
				flowfabric.ErrInvalidInput, i, x.Fence.Execution, partition)
		}
		result, err := e.seal("ff_complete_execution", x.Result)
		if err != nil {
			return nil, nil, err
		}
		args = append(words.fence(args, x.Fence), rueidis.BinaryString(result))
		if len(result) <= limits.MaxPayload { // a larger one is refused alone
			total += len(result)
		}
	}
	if total > limits.MaxCallBytes && len(items) > 1 {
		return nil, nil, fmt.Errorf("ff_complete_execution: %w: the batch has %d result bytes, want at most %d",
			flowfabric.ErrPayloadTooLarge, total, limits.MaxCallBytes)
	}
	if next == nil {
		args = append(args, "0")
	} else {
		args = next.search().Append(append(args, "1"))
	}
	r, err := e.call(ctx, fnComplete, partition, args...)
	if err != nil {
		return nil, nil, err
	}
	if n := r.Count(1); n != len(items) {
		r.Stop("%d answers to %d items", n, len(items))
	}
	out := make([]Settled, len(items))
	for i := range out {
		_, out[i].Already, out[i].Err = r.settled()
	}
	if !r.Flag() || r.Err != nil {
		return out, nil, r.fail()
	}
	if !r.Flag() {
		code := r.Text()
		var detail []string
		for r.More() {
			detail = append(detail, r.Text())
		}
		if r.Err != nil {
			return out, nil, r.fail()
		}
		return out, nil, denied.New("ff_claim_next", code, detail...)
	}
	r.Text() // OK
	reply, err := e.claimed(ctx, partition, *next, r)
	return out, &reply, err
}

// FailExecution ends the attempt (lua/execution/ff_fail_execution.lua): the stored policy decides between a retry
// and the dead letter. A repeat after a lost reply answers the same outcome with Already set.
func (e *Engine) FailExecution(ctx context.Context, f flowfabric.Fence, failure Failure) (FailOutcome, error) {
	var after *time.Duration
	if failure.RetryAfter != nil {
		after = new(max(0, *failure.RetryAfter))
	}
	r, already, err := ask[wire.FailExecutionReply](ctx, e, f.Execution.Partition(), wire.FailExecution{
		Fence: fenceOf(f), Category: string(failure.Category),
		Reason:    e.cfg.Box.SealText(cut(failure.Reason, limits.MaxReason), limits.MaxReason),
		Permanent: failure.Permanent, After: after, Step: failure.Step, Took: span(failure.StepTook)})
	out := FailOutcome{Already: already, Retry: r.Outcome == "retry"}
	if out.Retry {
		out.RetryIn = max(0, r.Instant.Sub(r.Now))
	}
	return out, err
}

// DelayExecution puts the held attempt aside for d (0..10 years; 0 makes it claimable at once). The same attempt
// goes on later and no retry is consumed (lua/execution/ff_delay_execution.lua). service: for its turn there, "" =
// none.
func (e *Engine) DelayExecution(ctx context.Context, f flowfabric.Fence, d time.Duration,
	service string) (already bool, err error) {
	return e.settled(ctx, f.Execution.Partition(), wire.DelayExecution{Fence: fenceOf(f), Reason: service,
		Delay: "+" + strconv.FormatInt(max(0, d.Milliseconds()), 10)})
}

// ContinueExecution ends the held attempt and starts the execution anew with another input, at most 1 MiB
// (lua/execution/ff_continue_execution.lua): the id stays, steps and waits go. ErrPayloadTooLarge.
func (e *Engine) ContinueExecution(ctx context.Context, f flowfabric.Fence, input []byte) (already bool, err error) {
	input, err = e.seal("ff_continue_execution", input)
	if err != nil {
		return false, err
	}
	return e.settled(ctx, f.Execution.Partition(),
		wire.ContinueExecution{Fence: fenceOf(f), Input: rueidis.BinaryString(input)})
}

// ReleaseExecution hands unfinished work back without consuming an attempt or a retry
// (lua/execution/ff_release_execution.lua).
func (e *Engine) ReleaseExecution(ctx context.Context, f flowfabric.Fence) (already bool, err error) {
	return e.settled(ctx, f.Execution.Partition(), wire.ReleaseExecution{Fence: fenceOf(f)})
}

// CancelExecution ends an execution from any state that is not terminal (lua/execution/ff_cancel_execution.lua).
// Source CancelOwner needs the fence of the holder. already: it was cancelled before. An
// execution that ended otherwise answers denied.NotActive with its code in slot 0.
func (e *Engine) CancelExecution(ctx context.Context, id flowfabric.ExecutionID,
	c Cancellation) (already bool, err error) {
	q := wire.CancelExecution{Source: c.Source}
	if f := c.Fence; f != nil {
		claim, epoch, attempt := int(f.Claim), int(f.Epoch), int(f.Attempt)
		q.Fence0 = wire.Fence0{Session: f.Session, Claim: &claim, Epoch: &epoch, Attempt: &attempt}
	}
	q.Fence0.ID = ids.UUID(id).String()
	return e.settled(ctx, id.Partition(), q)
}

// RecordStep is [Engine.RecordTurn] (lua/execution/ff_record_step.lua) of a step that is nothing to the turn of its
// run.
func (e *Engine) RecordStep(ctx context.Context, f flowfabric.Fence, name string, value []byte,
	took time.Duration) (already bool, err error) {
	r, err := e.RecordTurn(ctx, f, Step{Name: name, Value: value, Took: took})
	return r.Already, err
}

// RecordTurn stores the value (≤ 256 KiB) of a durable step under its name (1..128 bytes); every later claim
// brings it along (lua/execution/ff_record_step.lua). Already: the same value is recorded; denied.StepConflict:
// another one is; denied.StepLimit: 1,000 steps or 8 MiB; denied.TurnStopped (slot 0: the request) for an answer that
// would end the turn while a stop waits.
func (e *Engine) RecordTurn(ctx context.Context, f flowfabric.Fence, s Step) (Recorded, error) {
	data, err := e.seal("ff_record_step", s.Value)
	if err != nil {
		return Recorded{}, err
	}
	r, already, err := ask[wire.RecordStepReply](ctx, e, f.Execution.Partition(), wire.RecordStep{Fence: fenceOf(f),
		Name: s.Name, Value: rueidis.BinaryString(data), Took: span(s.Took), Turn: s.Turn})
	if errors.Is(err, denied.StepConflict) && e.cfg.Box != nil { // the same value is never sealed the same
		before, known, readErr := e.StepValue(ctx, f.Execution, s.Name)
		if readErr == nil && known && bytes.Equal(before, e.cfg.Box.Shown(s.Value)) {
			return Recorded{Already: true}, nil
		}
	}
	return Recorded{Already: already, Stop: r.Stop}, err
}

// StopTurn asks the run of an execution to end what it says (lua/execution/ff_stop_turn.lua). denied.NotSignalable
// (slot 0: the code) for one that has ended; denied.NothingToStop (slot 0: the code) between two turns; ErrNotFound;
// ErrResultPurged while a tombstone is left.
func (e *Engine) StopTurn(ctx context.Context, id flowfabric.ExecutionID, request flowfabric.UUID) (Stop, error) {
	if request.IsZero() {
		request = mint.UUID()
	}
	r, already, err := ask[wire.StopTurnReply](ctx, e, id.Partition(), wire.StopTurn{ID: ids.UUID(id).String(),
		Request: request.String()})
	return Stop{Request: r.Request, By: r.By, Steps: r.Steps, Already: already,
		Other: err == nil && r.Request != request.String()}, err
}

// settled makes a call of whose answer only the envelope matters.
func (e *Engine) settled(ctx context.Context, partition uint16, q wire.Call) (already bool, err error) {
	r, err := e.send(ctx, partition, q)
	return err == nil && r.Already, err
}

// span is how long something took, within the bounds of the library.
func span(d time.Duration) time.Duration { return min(max(0, d), limits.MaxDelay) }

// cut shortens text to limit bytes at a rune boundary.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	for limit > 0 && !utf8.RuneStart(s[limit]) {
		limit--
	}
	return s[:limit]
}
