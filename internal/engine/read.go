package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/record"
	"github.com/flowfabric/flowfabric-go/internal/timeline"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// ReadExecution returns a consistent snapshot (lua/read/ff_read_execution.lua). An active execution whose session
// is dead is shown as A2, lease expired. ErrNotFound when it never existed or was
// purged long ago; ErrResultPurged, with its last code in slot 0, while a tombstone is left.
func (e *Engine) ReadExecution(ctx context.Context, id flowfabric.ExecutionID) (Snapshot, error) {
	r, _, err := ask[wire.ReadExecutionReply](ctx, e, id.Partition(), wire.ReadExecution{ID: ids.UUID(id).String()})
	if err != nil {
		return Snapshot{}, err
	}
	s, err := snapshot(id, &reader{op: "ff_read_execution"}, r.Core, r.Attempts, r.Row, holding{r.Alive, r.Expiry})
	if err != nil {
		return Snapshot{}, err
	}
	s.Steps, s.Tags, s.State = r.Steps, r.Tags, Gated(s.State, r.Closed)
	e.texts(&s)
	relate(&s, r.Core, flowfabric.Wait{Name: r.Wait, Since: r.Since})
	return s, nil
}

// relate adds what an execution belongs to and waits for, and when it last changed.
func relate(s *Snapshot, core map[string]string, wait flowfabric.Wait) {
	if of, err := ids.ParseUUID(core["flow"]); err == nil && of != ids.UUID(s.ID) {
		s.Flow, s.Node = flowfabric.FlowID(mint.Join(s.ID.Partition(), of)), core["node"]
	}
	if stop := strings.SplitN(core["stop"], unit, 3); len(stop) == 3 {
		s.StopBy, s.StopReason = stop[1], stop[2]
	}
	s.ChangedAt = s.CreatedAt
	if s.State.Public == flowfabric.Suspended {
		s.Wait = wait
		if ms, err := strconv.ParseInt(core["suspension_deadline"], 10, 64); err == nil {
			s.Wait.TimeoutAt = time.UnixMilli(ms).UTC()
		}
	}
	times := []time.Time{s.ClaimedAt, s.EndedAt, s.Wait.Since}
	for _, a := range s.AttemptLog {
		times = append(times, a.EndedAt)
	}
	for _, t := range times {
		if t.After(s.ChangedAt) {
			s.ChangedAt = t
		}
	}
}

// Gated is the state of one whose route a gate has closed, and why.
func Gated(s flowfabric.State, why string) flowfabric.State {
	if s.Public != flowfabric.Waiting || s.BlockingReason != codes.ForWorker || why == "" {
		return s
	}
	s.Public, s.BlockingReason = flowfabric.WaitingGate, "waiting_for_gate"
	return s
}

// holding is how the session of an execution is.
type holding struct {
	alive  bool
	expiry time.Time
}

// snapshot reads a core, what is kept of its attempts, and the row of its route.
func snapshot(id flowfabric.ExecutionID, r *reader, core, attempts map[string]string, row string,
	of holding) (Snapshot, error) {
	f := wire.Fields{M: core, R: r}
	s := Snapshot{Snapshot: flowfabric.Snapshot{
		ID: id, Creator: core["creator"], Replays: int(f.Number("replays")), InputBytes: int(f.Number("input_size")),
		CancelReason: attempts["cancel"],
		ExecutionSummary: flowfabric.ExecutionSummary{Priority: int(f.Number("priority")),
			Attempts: uint32(f.Number("attempts")), AttemptType: flowfabric.AttemptType(core["attempt_type"]),
			Epoch: uint64(f.Number("epoch")), Session: core["session"], Worker: ids.Worker(core["session"]),
			Retries: int(f.Number("retries")), Reclaims: int(f.Number("reclaims")),
			CreatedAt: f.Instant("created_at"), StartedAt: f.Instant("first_claimed_at"),
			ClaimedAt: f.Instant("claimed_at"), EndedAt: f.Instant("ended_at"), DelayUntil: f.Instant("delay_until"),
			DeadlineAt:  f.Instant("deadline"),
			Failure:     flowfabric.Failure{Category: flowfabric.Category(core["failure_category"])},
			CancelledBy: core["cancelled_by"], CancelSource: core["cancel_source"]},
	}}
	code := codes.Code(core["state"])
	if code == codes.Active {
		s.LeaseExpiresAt = of.expiry
		if !of.alive {
			code = codes.LeaseExpired
		}
	}
	state, ok := codes.Project(code)
	if !ok {
		return Snapshot{}, denied.New(r.op, "corrupt", "state "+string(code))
	}
	s.State, s.Code, s.Attempt = state.State, code, s.Attempts
	if strings.HasSuffix(string(code), "p") { // it waits for a replay
		s.Attempt++
	}
	s.Route = route(uint64(f.Number("route")), row, r)
	packed := core["policy"]
	if core["has_categories"] != "" {
		packed += ";" + attempts["categories"]
	}
	policy, err := valid.UnpackPolicy(packed)
	if err != nil {
		return Snapshot{}, fmt.Errorf("%s: %w", r.op, err)
	}
	s.Policy = policy
	s.Policy.Retention, _ = valid.UnpackRetentions(f.M["retention"]) // one that cannot be read counts as none
	s.Policy.AttemptTimeout = flowfabric.Millis(f.Number("attempt_timeout")) * flowfabric.Millis(time.Millisecond)
	s.MaxRetries = policy.Retry.MaxRetries
	s.KeyHeld, s.KeyUntil = keyHold(core["key"])
	s.Continues = Continues(core["links"])
	s.Replaced, s.Rewinds = int(f.Number("replaced")), int(f.Number("rewinds"))
	if of, step, ok := strings.Cut(core["fork_of"], " "); ok {
		if parent, err := ids.ParseUUID(of); err == nil {
			s.ForkOf = flowfabric.ForkOf{ID: mint.Join(id.Partition(), parent), Step: step}
		}
	}
	s.AttemptLog = timeline.Attempts(attempts, &r.Reader)
	s.Progress = progress(attempts["progress"], s.Attempts, r)
	if n := len(s.AttemptLog); n > 0 && s.Failure.Category != "" {
		s.Failure.Message = s.AttemptLog[n-1].Message
	}
	if code == codes.Completed { // AttemptLog tells of the failures before
		s.Failure = flowfabric.Failure{}
	}
	return s, r.fail()
}

// Continues reads how often an execution has continued from what its record says of its links.
func Continues(links string) int {
	count, _, _ := strings.Cut(links, ",")
	n, _ := strconv.Atoi(count) // none, or one that cannot be read, counts as 0
	return n
}

// keyHold reads what a record says of its key: "<key>:<till>".
func keyHold(text string) (held string, until time.Time) {
	_, till, keyed := strings.Cut(text, ":")
	switch {
	case !keyed:
		return "", until
	case till == "~":
		return "until_claimed", until
	case till == "-":
		return "retained", until
	}
	if ms, err := strconv.ParseInt(till, 10, 64); err == nil && ms > 0 {
		return "until_time", time.UnixMilli(ms).UTC()
	}
	return "until_ended", until
}

// progress reads "attempt, ms, percent, message", if it belongs to the current or last attempt.
func progress(text string, attempts uint32, r *reader) Progress {
	p := strings.SplitN(text, "\x1f", 4)
	if text == "" || p[0] != strconv.FormatUint(uint64(attempts), 10) {
		return Progress{}
	}
	if len(p) != 4 {
		r.Stop("progress %q", clip(text))
		return Progress{}
	}
	f := wire.Fields{M: map[string]string{"at": p[1], "percent": p[2]}, R: r}
	out := Progress{Message: p[3], At: f.Instant("at")}
	if p[2] != "" {
		out.Percent = new(int(f.Number("percent")))
	}
	return out
}

// attemptLog unfolds the records "type, claimed, ended, state, category, session, epoch, claim, began" and their
// reasons, by index. A tail alone tells when an attempt began: it may have been claimed again.
// ReadResult returns the result of an attempt; ok is false when it stored none.
func (e *Engine) ReadResult(ctx context.Context, id flowfabric.ExecutionID,
	attempt uint32) (result []byte, ok bool, err error) {
	if err := e.exists("read result", id.Partition()); err != nil {
		return nil, false, err
	}
	k := keys.Of(id.Partition())
	s, err := e.stored(ctx, k.Core(ids.UUID(id)), k.Result(ids.UUID(id), attempt))
	b := e.cfg.Box.Shown(s.result(attempt))
	return b, b != nil, err
}

// ReadInput returns the input of an execution as it was submitted; ok is false when none is stored: it was empty, or
// there is no such execution (any more).
func (e *Engine) ReadInput(ctx context.Context, id flowfabric.ExecutionID) (input []byte, ok bool, err error) {
	if err := e.exists("read input", id.Partition()); err != nil {
		return nil, false, err
	}
	k := keys.Of(id.Partition())
	s, err := e.stored(ctx, k.Core(ids.UUID(id)), k.Input(ids.UUID(id)))
	if s.record.Input != "" {
		return e.cfg.Box.Shown([]byte(s.record.Input)), true, nil
	}
	return e.cfg.Box.Shown(s.blob), s.blob != nil, err
}

// exists refuses a partition there is none of.
func (e *Engine) exists(op string, partition uint16) error {
	if partition < e.partitions {
		return nil
	}
	return fmt.Errorf("%s: %w: partition %d of %d", op, flowfabric.ErrInvalidInput, partition, e.partitions)
}

// KeyHolder is the execution that has a key of a partition, or had it last and is still retained; ErrNotFound if
// there is none.
func (e *Engine) KeyHolder(ctx context.Context, partition uint16, key uuid.UUID) (flowfabric.ExecutionID, error) {
	if err := e.exists("read key", partition); err != nil {
		return flowfabric.ExecutionID{}, err
	}
	name := keys.Of(partition).Keyed(key)
	text, err := e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Get().Key(name).Build()
	}).ToString()
	if rueidis.IsRedisNil(err) {
		return flowfabric.ExecutionID{}, fmt.Errorf("read key: %w", flowfabric.ErrNotFound)
	}
	if err != nil {
		return flowfabric.ExecutionID{}, CallError("read key", err)
	}
	holder, _, _ := strings.Cut(text, " ")
	id, err := ids.ParseUUID(holder)
	if err != nil {
		return flowfabric.ExecutionID{}, fmt.Errorf("read key: %w: %w", denied.Reply, err)
	}
	return mint.Join(partition, id), nil
}

// stored is the record of an execution, and the key that a payload has if it is too large for the record.
type stored struct {
	record record.Record
	blob   []byte // nil when there is no such key
}

// result is that of an attempt, nil when it stored none. The record holds that of the last one.
func (s stored) result(attempt uint32) []byte {
	if s.record.Attempt() == attempt && s.record.Result != "" {
		return []byte(s.record.Result)
	}
	return s.blob
}

func (e *Engine) stored(ctx context.Context, core, payload string) (stored, error) {
	s, err := readStored(e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Mget().Key(core, payload).Build()
	}))
	if err != nil {
		return s, fmt.Errorf("read: %w", err)
	}
	return s, nil
}

func readStored(answer rueidis.RedisResult) (s stored, err error) {
	list, err := answer.ToArray()
	if err != nil {
		return s, CallError("read", err)
	}
	if text, err := list[0].ToString(); err == nil {
		if s.record, err = record.Decode(text); err != nil {
			return s, fmt.Errorf("%w: %w", flowfabric.ErrCorrupt, err)
		}
	}
	if s.blob, err = list[1].AsBytes(); rueidis.IsRedisNil(err) {
		return s, nil
	}
	return s, err
}

// plain runs a read-only command, repeating it while the outcome is unknown.
func (e *Engine) plain(ctx context.Context, build func(rueidis.Client) rueidis.Completed) rueidis.RedisResult {
	return e.plainOn(ctx, e.client, build)
}

func (e *Engine) plainOn(ctx context.Context, client rueidis.Client,
	build func(rueidis.Client) rueidis.Completed) rueidis.RedisResult {
	policy := backoff.NewExponentialBackOff(backoff.WithInitialInterval(repeatFirst),
		backoff.WithMaxInterval(repeatAtMost))
	limited := backoff.WithContext(backoff.WithMaxRetries(policy, repeats), ctx)
	var result rueidis.RedisResult
	_ = backoff.Retry(func() error {
		result = client.Do(ctx, build(client))
		err := result.Error()
		if err == nil || rueidis.IsRedisNil(err) || !errors.Is(CallError("", err), flowfabric.ErrTransport) {
			return nil
		}
		return err
	}, limited)
	return result
}

// plainAll runs read-only commands in one round trip, and those alone whose outcome is unknown again.
func (e *Engine) plainAll(ctx context.Context, builds []func(rueidis.Client) rueidis.Completed) []rueidis.RedisResult {
	commands := make(rueidis.Commands, len(builds))
	for i, build := range builds {
		commands[i] = build(e.client)
	}
	answers := e.client.DoMulti(ctx, commands...)
	for i := range answers {
		err := answers[i].Error()
		if err != nil && !rueidis.IsRedisNil(err) && errors.Is(CallError("", err), flowfabric.ErrTransport) {
			answers[i] = e.plain(ctx, builds[i])
		}
	}
	return answers
}
