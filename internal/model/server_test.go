package model_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/embedded"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/inproc"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/model"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
)

// begin is the instant at which every partition under test starts. It is no round number: the embedded server's Lua
// does not read 8e+11, which is how its sorted sets answer 800,000,000,000.
const begin = int64(1_799_123_456_789)

// partition is the one that is used; root is its key, and elsewhere one that was never made.
const (
	partition = uint16(0)
	elsewhere = "ff:{fp:999}"
)

var root = keys.Root(partition)

// server is a server whose clock stands still until it is moved, exactly, in ms.
type server struct {
	e          *engine.Engine
	raw        rueidis.Client // looks at the keyspace and makes calls that the engine never would
	setClock   func(ctx context.Context, raw rueidis.Client, ms int64) error
	more       func() rueidis.Client // another connection
	ttls       bool                  // key TTLs follow the clock
	partitions uint16                // of executions; 0 = 1
}

// embeddedServer has one clock for all, which is pinned.
func embeddedServer(t testing.TB) *server {
	t.Helper()
	srv, err := embedded.Start(t.Context(), embedded.Config{InProcess: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	srv.SetTime(time.UnixMilli(begin))
	s := &server{ttls: true}
	s.setClock = func(_ context.Context, _ rueidis.Client, ms int64) error {
		srv.SetTime(time.UnixMilli(ms))
		return nil
	}
	s.open(t, srv.URL(), false)
	return s
}

// redisServer runs the library with the test variant of its clock, pinned by a field of the partition root.
func redisServer(t testing.TB) *server { return redisOf(t, 1) }

// redisOf is one with so many partitions of executions.
func redisOf(t testing.TB, partitions uint16) *server {
	t.Helper()
	s := &server{partitions: partitions}
	s.setClock = func(ctx context.Context, raw rueidis.Client, ms int64) error {
		return raw.Do(ctx, raw.B().Hset().Key(root).FieldValue().FieldValue("clock_pin", text(ms)).Build()).Error()
	}
	s.open(t, testserver.Redis(t), true)
	return s
}

func (s *server) open(t testing.TB, url string, testClock bool) {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	e, err := engine.Open(t.Context(), engine.Config{URL: url, Partitions: max(1, s.partitions), Logger: quiet,
		CallTimeout: time.Hour, TestClock: testClock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	s.e = e
	s.more = func() rueidis.Client {
		t.Helper()
		c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{url[strings.Index(url, "://")+3:]},
			DisableCache:      true,
			ForceSingleClient: true, PipelineMultiplex: -1, ConnWriteTimeout: time.Hour,
			Dialer: net.Dialer{KeepAlive: -1},
			DialCtxFn: func(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				if strings.HasPrefix(url, inproc.Scheme) {
					return inproc.Dial(ctx, address)
				}
				return d.DialContext(ctx, "unix", address)
			}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		return c
	}
	s.raw = s.more()
}

// failer is what both kinds of tests have.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// reset empties the partition and boots it at begin.
func (s *server) reset(ctx context.Context, t failer) {
	t.Helper()
	all, err := s.raw.Do(ctx, s.raw.B().Keys().Pattern(root+"*").Build()).AsStrSlice()
	if err != nil {
		t.Fatalf("list keys: %v", err)
	}
	if len(all) > 0 {
		if err := s.raw.Do(ctx, s.raw.B().Del().Key(all...).Build()).Error(); err != nil {
			t.Fatalf("delete keys: %v", err)
		}
	}
	if err := s.setClock(ctx, s.raw, begin); err != nil {
		t.Fatalf("set the clock: %v", err)
	}
	if _, code, _, err := s.fcall(ctx, s.raw, root, "ff_boot", strconv.Itoa(limits.Protocol)); err != nil ||
		code != model.OK {
		t.Fatalf("boot: %s %v", code, err)
	}
	if _, code, _, err := s.fcall(ctx, s.raw, root, "ff_set_token_keys", strconv.Itoa(limits.Protocol), "seed",
		model.Kid, "0123456789abcdef", "0", "0"); err != nil || code != model.OK {
		t.Fatalf("seed: %s %v", code, err)
	}
}

// fcall calls a function and splits its envelope.
func (s *server) fcall(ctx context.Context, raw rueidis.Client, key, name string,
	args ...string) (status int64, code string, slots []string, err error) {
	reply, err := raw.Do(ctx, s.calling(raw, key, name, args...)).ToMessage()
	if err != nil {
		return 0, "", nil, fmt.Errorf("%s: no envelope: %w", name, err)
	}
	return split(name, reply)
}

func (s *server) calling(raw rueidis.Client, key, name string, args ...string) rueidis.Completed {
	return raw.B().Fcall().Function(name).Numkeys(1).Key(key).Arg(args...).Build()
}

// split takes an envelope apart.
func split(name string, reply rueidis.RedisMessage) (status int64, code string, slots []string, err error) {
	msgs, err := reply.ToArray()
	if err != nil {
		return 0, "", nil, fmt.Errorf("%s: no envelope: %w", name, err)
	}
	if status, err = msgs[0].AsInt64(); err != nil {
		return 0, "", nil, fmt.Errorf("%s: status: %w", name, err)
	}
	for _, m := range msgs[1:] {
		slot, err := m.ToString()
		if err != nil {
			return 0, "", nil, fmt.Errorf("%s: a slot is not a string: %w", name, err)
		}
		slots = append(slots, slot)
	}
	return status, slots[0], slots[1:], nil
}

// do makes a call.
func (s *server) do(ctx context.Context, raw rueidis.Client, key string, c call) (model.Reply, error) {
	reply, err := raw.Do(ctx, s.command(raw, key, c)).ToMessage()
	if err != nil {
		return model.Reply{}, fmt.Errorf("%s: %w", c.Kind, err)
	}
	return s.answer(c, reply)
}

// command is what makes a call, and answer reads what comes back.
func (s *server) command(raw rueidis.Client, key string, c call) rueidis.Completed {
	function, args := c.wire()
	return s.calling(raw, key, function, args...)
}

func (s *server) answer(c call, reply rueidis.RedisMessage) (model.Reply, error) {
	status, code, slots, err := split(c.Kind, reply)
	if err != nil {
		return model.Reply{}, err
	}
	return decode(c, status, code, slots)
}

// view reads an execution as the engine shows it, and its streams.
func (s *server) view(ctx context.Context, id string) (v model.View, code string, err error) {
	if v, code, err = s.snapshot(ctx, id); err != nil || code != "" {
		return v, code, err
	}
	for attempt := range v.Attempts {
		stream, err := s.stream(ctx, id, attempt+1)
		if err != nil {
			return v, "", err
		}
		v.Streams = append(v.Streams, stream)
	}
	return v, "", nil
}

// snapshot is the part of it that one call reads.
func (s *server) snapshot(ctx context.Context, id string) (v model.View, code string, err error) {
	snap, err := s.e.ReadExecution(ctx, mint.Join(partition, uuid.MustParse(id)))
	if coded, ok := errors.AsType[*flowfabric.Error](err); ok {
		return model.View{}, coded.Code, nil
	}
	if err != nil {
		return model.View{}, "", err
	}
	ms := func(t time.Time) int64 {
		if t.IsZero() {
			return 0
		}
		return t.UnixMilli()
	}
	v = model.View{Code: snap.Code, Priority: snap.Priority, Creator: snap.Creator, Input: snap.InputBytes,
		Attempts: int(snap.Attempts), Route: model.Route{Namespace: snap.Route.Namespace, Lane: snap.Route.Lane,
			Kind: snap.Route.Kind, Capabilities: strings.Join(snap.Route.Capabilities, ",")},
		Type: snap.AttemptType, Epoch: snap.Epoch, Session: snap.Session, LeaseExpires: ms(snap.LeaseExpiresAt),
		Retries: snap.Retries, Reclaims: snap.Reclaims, Replays: snap.Replays, Created: ms(snap.CreatedAt),
		Started: ms(snap.StartedAt), Claimed: ms(snap.ClaimedAt), Ended: ms(snap.EndedAt),
		DelayUntil: ms(snap.DelayUntil), Deadline: ms(snap.DeadlineAt), Category: string(snap.Failure.Category),
		Reason: snap.Failure.Message, CancelledBy: snap.CancelledBy, CancelSource: snap.CancelSource,
		CancelReason: snap.CancelReason, Steps: snap.Steps, Tags: map[string]string{},
		Progress: model.Progress{At: ms(snap.Progress.At), Message: snap.Progress.Message}}
	if p := snap.Progress.Percent; p != nil {
		v.Progress.Percent = *p
	} else if !snap.Progress.At.IsZero() {
		v.Progress.Percent = -1
	}
	for k, value := range snap.Tags {
		v.Tags[k] = value
	}
	for _, a := range snap.AttemptLog {
		v.Log = append(v.Log, model.Record{Index: int(a.Index), Type: a.Type, State: a.State,
			Category: string(a.Category),
			Reason:   a.Message,
			Claimed:  ms(a.ClaimedAt), Ended: ms(a.EndedAt),
			Held: model.Fence{Session: a.Session, Claim: a.Claim, Epoch: a.Epoch, Attempt: int(a.Index)}})
	}
	return v, "", nil
}

func (s *server) stream(ctx context.Context, id string, attempt int) (model.Stream, error) {
	m, err := s.e.ReadAttemptStream(ctx, mint.Join(partition, uuid.MustParse(id)), uint32(attempt))
	if err != nil {
		return model.Stream{}, fmt.Errorf("stream of attempt %s: %w", strconv.Itoa(attempt), err)
	}
	return model.Stream{Frames: m.Count, Sequence: m.LastSequence, Version: m.Summary, Live: m.Live,
		Runs: uint64(m.Runs), Recorded: m.Recorded.Sequence, Closed: m.Closed, Reason: m.ClosedReason}, nil
}
