package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// MaxWorkerInfo bounds what a worker says of itself, as JSON.
const MaxWorkerInfo = 128 << 10

// listPage is how many rows the listings of this file ask for at once.
const listPage = 100

// Serves tells whether a worker takes work of a namespace.
func Serves(i flowfabric.WorkerInfo, namespace string) bool {
	return slices.Contains(i.Namespaces, namespace) || slices.Contains(i.Namespaces, "*")
}

// Takes tells whether a worker takes work of a route, if it has the capabilities that [Lacks] lists.
func Takes(i flowfabric.WorkerInfo, r Route) bool {
	return Serves(i, r.Namespace) && slices.Contains(i.Lanes, r.Lane) && slices.Contains(i.Kinds, r.Kind)
}

// Lacks lists the capabilities that a route needs and a worker does not have.
func Lacks(i flowfabric.WorkerInfo, r Route) (missing []string) {
	for _, token := range r.Capabilities {
		if !slices.Contains(i.Capabilities, token) {
			missing = append(missing, token)
		}
	}
	return missing
}

// encode is the JSON of what a worker says of itself, at most MaxWorkerInfo bytes, which the server never looks into:
// the lists of a worker that serves very many things are cut. Fields that another revision added are ignored.
func encode(i flowfabric.WorkerInfo) (string, error) {
	i.Revision = library.Revision
	for {
		b, err := json.Marshal(i)
		if err != nil {
			return "", fmt.Errorf("%w: worker info: %w", flowfabric.ErrInvalidInput, err)
		}
		if len(b) <= MaxWorkerInfo {
			return string(b), nil
		}
		longest := &i.Kinds
		for _, list := range []*[]string{&i.Lanes, &i.Capabilities, &i.Namespaces} {
			if len(*list) > len(*longest) {
				longest = list
			}
		}
		if len(*longest) == 0 {
			return "", fmt.Errorf("%w: worker info has %d bytes, want at most %d", flowfabric.ErrInvalidInput, len(b),
				MaxWorkerInfo)
		}
		*longest, i.Truncated = (*longest)[:len(*longest)/2], true
	}
}

// Registration is a worker instance saying that it is there.
type Registration struct {
	Instance string        // 1..48 bytes
	Token    string        // of the process, 1..64 bytes: tells two processes of one name apart
	TTL      time.Duration // 1 s..1 h, in whole milliseconds
	InFlight int           // handlers at work, each in a slot, 0..1,000,000
	Stuck    int           // those of them that ignore the end of their context, 0..InFlight
	Info     flowfabric.WorkerInfo
}

// Registered is the answer to a [Registration].
type Registered struct {
	Renewed   bool // the row was alive and of this process; else it is new
	ExpiresAt time.Time
}

// registryOf is the partition that registers an instance.
func (e *Engine) registryOf(instance string) uint16 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance)) // never fails
	return uint16(h.Sum32() % uint32(e.partitions))
}

// RegisterWorker says that a worker instance is there for a ttl from the server's now, or that it still is
// (lua/worker/ff_register_worker.lua). It says nothing about leases, and no lease depends on it. A worker that does
// it now and then also notices that the server carries an older library than its own, which it then replaces. A
// registration that is new, for example because the store was flushed, also compares the partition counts:
// [*CountsError]. denied.InstanceInUse, see [TakenFor], while another process's registration under the name lives;
// ErrInvalidInput.
func (e *Engine) RegisterWorker(ctx context.Context, q Registration) (Registered, error) {
	info, err := encode(q.Info)
	if err != nil {
		return Registered{}, fmt.Errorf("ff_register_worker: %w", err)
	}
	r, _, err := ask[wire.RegisterWorkerReply](ctx, e, e.registryOf(q.Instance), wire.RegisterWorker{
		Instance: q.Instance, Token: q.Token, TTL: q.TTL, Inflight: q.InFlight, Stuck: q.Stuck, Info: info,
		Version: q.Info.Version})
	if err != nil {
		return Registered{}, err
	}
	out := Registered{Renewed: r.Outcome == "renewed", ExpiresAt: r.Expiry}
	if r.Revision < library.Revision {
		e.renew(ctx)
	}
	if out.Renewed {
		return out, nil
	}
	return out, e.sameCounts(ctx)
}

// TakenFor reads an error that wraps denied.InstanceInUse: until when the other process's registration lives unless
// it is renewed, on the server's clock, and how long that is from the answer on.
func TakenFor(err error) (until time.Time, left time.Duration) {
	refused, ok := errors.AsType[*flowfabric.Error](err)
	if !ok {
		return time.Time{}, 0
	}
	at, _ := strconv.ParseInt(denied.Slot(refused, 0), 10, 64)
	ms, _ := strconv.ParseInt(denied.Slot(refused, 1), 10, 64)
	return time.UnixMilli(at).UTC(), time.Duration(ms) * time.Millisecond
}

// LeaveWorker ends a registration in good order: the name is free at once (lua/worker/ff_leave_worker.lua). already:
// the process of the token has none. The registration of another process is left alone.
func (e *Engine) LeaveWorker(ctx context.Context, instance, token string) (already bool, err error) {
	return e.settled(ctx, e.registryOf(instance), wire.LeaveWorker{Instance: instance, Token: token})
}

// MarkWorkerDead gives a worker instance up: its name is free, and its row says so
// (lua/worker/ff_mark_dead.lua). What it holds goes with its sessions, see [Engine.MarkSessionDead]. Why and by whom,
// as the note of ctx says, is kept in 256 bytes. already: it was given up before. denied.NoWorker.
func (e *Engine) MarkWorkerDead(ctx context.Context, instance string) (already bool, err error) {
	return e.markDead(ctx, e.registryOf(instance), wire.MarkDead{What: "worker", Name: instance})
}

// Workers lists the worker instances that every partition registers, by name, without their sessions, and lost ones for
// an hour (lua/operate/ff_list_workers.lua). What one says of itself is zero when it cannot be read. It is no snapshot
// of one moment: one that registers meanwhile may be missing.
func (e *Engine) Workers(ctx context.Context) []InPartition[[]flowfabric.Worker] {
	return inEach(e, func(partition uint16) (rows []flowfabric.Worker, _ bool, err error) {
		q := wire.ListWorkers{Limit: listPage}
		for more := true; more && err == nil; more = q.After != "" {
			var r wire.ListWorkersReply
			r, _, err = ask[wire.ListWorkersReply](ctx, e, partition, q)
			for _, x := range r.Workers {
				w := flowfabric.Worker{Instance: x.Instance, ExpiresAt: x.Expiry, SeenAt: x.Seen,
					RegisteredAt: x.Registered, Reported: x.Inflight, Stuck: x.Stuck, Dead: x.Dead, Reason: x.Why,
					Registered: true, Alive: !x.Dead && x.Expiry.After(r.Now)}
				if json.Unmarshal([]byte(x.Info), &w.WorkerInfo) != nil {
					w.WorkerInfo = flowfabric.WorkerInfo{}
				}
				rows = append(rows, w)
			}
			q.After = r.Next
		}
		return once(rows, func(w flowfabric.Worker) string { return w.Instance }), false, err
	})
}

// Versions lists versions of applications whose workers registered in a partition, up to 256 of each, and when such a
// worker was last heard of (lua/operate/ff_list_versions.lua).
func (e *Engine) Versions(ctx context.Context) []InPartition[map[string]time.Time] {
	return inEach(e, func(partition uint16) (map[string]time.Time, bool, error) {
		r, _, err := ask[wire.ListVersionsReply](ctx, e, partition, wire.ListVersions{})
		seen := make(map[string]time.Time, len(r.Versions))
		for _, v := range r.Versions {
			seen[v.Version] = v.Seen
		}
		return seen, false, err
	})
}

// Sessions lists the sessions of every partition that are open, or dead and still hold something. It is no snapshot of
// one moment: one that is opened meanwhile may be missing.
func (e *Engine) Sessions(ctx context.Context) []InPartition[[]flowfabric.WorkerSession] {
	return inEach(e, func(partition uint16) ([]flowfabric.WorkerSession, bool, error) {
		rows, err := e.PartitionSessions(ctx, partition)
		return rows, false, err
	})
}

// PartitionSessions is [Engine.Sessions] of one partition, by id (lua/operate/ff_list_sessions.lua).
func (e *Engine) PartitionSessions(ctx context.Context,
	partition uint16) (rows []flowfabric.WorkerSession, err error) {
	q := wire.ListSessions{Limit: listPage}
	for more := true; more && err == nil; more = q.After != "" {
		var r wire.ListSessionsReply
		r, _, err = ask[wire.ListSessionsReply](ctx, e, partition, q)
		for _, x := range r.Sessions {
			rows = append(rows, flowfabric.WorkerSession{Partition: partition, ID: x.Session, ExpiresAt: x.Expiry,
				Dead: x.Dead, Reason: x.Why, Held: x.Held, Alive: !x.Dead && x.Expiry.After(r.Now)})
		}
		q.After = r.Next
	}
	return once(rows, func(s flowfabric.WorkerSession) string { return s.ID }), err
}

// once sorts rows by name and keeps the last of each: who moves in the listing while it is read comes twice.
func once[T any](rows []T, name func(T) string) []T {
	slices.SortStableFunc(rows, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	slices.Reverse(rows)
	rows = slices.CompactFunc(rows, func(a, b T) bool { return name(a) == name(b) })
	slices.Reverse(rows)
	return rows
}

// ReadWorker reads what a worker instance said of itself, and the token under which it did; found is false if nobody
// of that name is known. It does not tell whether the worker lives: [Engine.RegisterWorker] does.
func (e *Engine) ReadWorker(ctx context.Context,
	instance string) (info flowfabric.WorkerInfo, token string, found bool, err error) {
	key := keys.Of(e.registryOf(instance)).Worker(instance)
	fields, err := e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Hmget().Key(key).Field("token", "info").Build()
	}).AsStrSlice()
	if err != nil {
		return info, "", false, CallError("read worker", err)
	}
	if len(fields) != 2 || fields[0] == "" {
		return info, "", false, nil
	}
	if err := json.Unmarshal([]byte(fields[1]), &info); err != nil {
		return info, "", false, fmt.Errorf("read worker: %w: %w", flowfabric.ErrCorrupt, err)
	}
	return info, fields[0], true, nil
}
