//go:build unix

package crash_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/invariant"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
	"github.com/flowfabric/flowfabric-go/stream"
)

// dial takes the path of a socket, or host:port.
func dial(ctx context.Context, address string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
	if strings.HasPrefix(address, "/") {
		return d.DialContext(ctx, "unix", address)
	}
	return d.DialContext(ctx, "tcp", address)
}

// fates is what the producer knows of each job.
type fates struct {
	acked, unknown []bool
	acks           int
}

func (f *fleet) fates(total int) fates {
	f.t.Helper()
	out := fates{acked: make([]bool, total), unknown: make([]bool, total)}
	err := crash.ReadJournal(f.journal("producer"), nil, nil, func(b crash.Batch) {
		for i := b.First; i < b.First+b.Count; i++ {
			switch b.What {
			case "acked":
				out.acked[i] = true
			case "unknown":
				out.unknown[i] = true
			}
		}
	})
	if err != nil {
		f.t.Fatal(err)
	}
	for i := range out.acked {
		if out.acked[i] {
			out.acks++
		}
		if !out.acked[i] && !out.unknown[i] {
			f.t.Errorf("job %d was neither acknowledged nor given up", i)
		}
	}
	return out
}

// settled waits until everything that exists has ended, and returns how many executions that are. Nothing is
// purged for a day, so what has ended is counted by the index of ended ones.
func (f *fleet) settled(jobs int) (existing int) {
	f.t.Helper()
	for {
		ended, alive := f.count(":done"), 0
		if ended < jobs { // some may not exist
			alive = f.exist(jobs) - ended
		}
		if alive <= 0 {
			return ended
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("%d of %d executions never ended: %s", alive, jobs, f.stuck(jobs))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// count adds up an index over all partitions.
func (f *fleet) count(index string) (n int) {
	f.t.Helper()
	commands := make(rueidis.Commands, f.partitions)
	for p := range f.partitions {
		commands[p] = f.raw.B().Zcard().Key(keys.Root(p) + index).Build()
	}
	for _, r := range f.raw.DoMulti(f.ctx, commands...) {
		members, err := r.AsInt64()
		if err != nil {
			f.t.Fatalf("count %s: %v; %s", index, err, f.stuck(f.upto))
		}
		n += int(members)
	}
	return n
}

// exist counts the jobs that have a core.
func (f *fleet) exist(jobs int) (n int) {
	f.t.Helper()
	for _, alive := range f.cores(jobs) {
		if alive {
			n++
		}
	}
	return n
}

// cores asks for the core of every job.
func (f *fleet) cores(jobs int) []bool {
	f.t.Helper()
	out := make([]bool, 0, jobs)
	for first := 0; first < jobs; first += 1000 {
		var commands rueidis.Commands
		for i := first; i < min(first+1000, jobs); i++ {
			partition, key := crash.Job{Index: i}.Place(f.partitions)
			commands = append(commands, f.raw.B().Get().Key(keys.Of(partition).Keyed(key)).Build())
		}
		for i, r := range f.raw.DoMulti(f.ctx, commands...) {
			text, err := r.ToString()
			if rueidis.IsRedisNil(err) {
				out = append(out, false)
				continue
			}
			partition, _ := crash.Job{Index: first + i}.Place(f.partitions)
			holder, _, _ := strings.Cut(text, " ")
			n := int64(0)
			if err == nil {
				n, err = f.raw.Do(f.ctx, f.raw.B().Exists().Key(keys.Root(partition)+":x:"+holder).Build()).AsInt64()
			}
			if err != nil {
				f.t.Fatalf("look for a core: %v; %s", err, f.stuck(jobs))
			}
			out = append(out, n == 1)
		}
	}
	return out
}

// stuck describes a few executions that have not ended, and all that the partition of the first holds besides.
func (f *fleet) stuck(jobs int) string {
	ctx, cancel := testwait.Context(f.t, context.WithoutCancel(f.ctx))
	defer cancel()
	var out []string
	partition := uint16(0)
	for i := 0; i < jobs && len(out) < 5; i++ {
		var s engine.Snapshot
		id, err := crash.Job{Index: i}.Execution(ctx, f.engine)
		if err == nil {
			s, err = f.engine.ReadExecution(ctx, id)
		}
		if err == nil && !s.State.Terminal() {
			if len(out) == 0 {
				partition = s.ID.Partition()
			}
			out = append(out, fmt.Sprintf("job %d %s: code %s, session %s, %d attempts, lease until %v", i, s.ID,
				s.Code, s.Session, s.Attempts, s.LeaseExpiresAt))
		}
	}
	if d, err := invariant.Read(ctx, f.raw, partition); err == nil && len(out) > 0 {
		out = append(out, invariant.NewChecker().Violations(d)...)
		out = append(out, fmt.Sprintf("now %d", d.Now),
			d.Text(":x:", ":i:", ":k:", ":a:", ":o:", ":f:", ":fm:", ":done", ":t:"))
	}
	return strings.Join(out, "\n")
}

// expire ticks until no session is left: one of a worker that was just killed, or that could not close it in time on
// a slow machine, runs out. TestRollingRestarts proves with longer leases that a worker closes its sessions.
func (f *fleet) expire() {
	f.t.Helper()
	testwait.Progress(f.t, "all sessions have run out", func() (bool, any) {
		for p := range f.partitions {
			if _, err := f.engine.Tick(f.ctx, p, "audit", false); err != nil {
				f.t.Fatal(err)
			}
		}
		left := f.count(":sessions")
		return left == 0, left
	})
}

// sound holds every partition against the invariants and counts all executions. The store must be quiet. One that lost
// writes (rolled) may have forgotten that a session was closed, which then runs out by itself.
func (f *fleet) sound(executions int, rolled bool) {
	f.t.Helper()
	checker, cores, shown := invariant.NewChecker(), 0, 0
	err := invariant.Each(f.ctx, f.raw, f.partitions, func(d *invariant.Dump) error {
		for _, bad := range checker.Violations(d) {
			if shown++; shown <= 20 {
				f.t.Errorf("partition %d: %s", d.Partition, bad)
			}
		}
		for key := range d.Hashes {
			if strings.HasPrefix(key, ":x:") {
				cores++
			}
		}
		for session := range d.ZSets[":sessions"] {
			if rolled {
				break
			}
			f.t.Errorf("partition %d: session %s is left although every worker has stopped", d.Partition, session)
		}
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	if shown > 20 {
		f.t.Errorf("%d violations in all", shown)
	}
	if cores != executions {
		f.t.Errorf("%d executions are stored, want %d: one per key, however often it was submitted", cores, executions)
	}
}

// recoveries are the times from a fault until what the victim held was requeued, and claimed again.
type recoveries struct {
	sync.Mutex
	requeued, claimed []time.Duration
	unprovoked        int // interrupted attempts of workers that nobody had touched
	reused            int // attempts that took over a recorded step
	frameless         int // executions that failed, as the store lost frames of their last attempt
}

// ended reads every existing job and checks that it ended as its mode wants, once, and without a trace of the
// faults but reclaims. A store that lost writes (rolled) may also have failed an attempt whose frames it lost, and
// with its last attempt the execution.
func (f *fleet) ended(existing []bool, rolled bool) *recoveries {
	f.t.Helper()
	out, faults := &recoveries{}, map[string][]fault{}
	for _, x := range f.faults {
		faults[x.worker] = append(faults[x.worker], x)
	}
	var next atomic.Int64
	var readers sync.WaitGroup
	for range 8 {
		readers.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(existing) || f.ctx.Err() != nil {
					return
				}
				if existing[i] {
					if err := f.one(crash.Job{Index: i}, rolled, faults, out); err != nil {
						f.t.Errorf("job %d: %v", i, err)
					}
				}
			}
		})
	}
	readers.Wait()
	slices.Sort(out.requeued)
	slices.Sort(out.claimed)
	return out
}

func (f *fleet) one(j crash.Job, rolled bool, faults map[string][]fault, out *recoveries) error {
	id, err := j.Execution(f.ctx, f.engine)
	if err != nil {
		return err
	}
	s, err := f.engine.ReadExecution(f.ctx, id)
	if err != nil {
		return err
	}
	var why []string
	for _, a := range s.AttemptLog {
		why = append(why, fmt.Sprintf("%d %s %s %s", a.Index, a.State, a.Category, a.Message))
	}
	ends := j.Ends()
	if n := len(s.AttemptLog); rolled && n > 0 && s.AttemptLog[n-1].Category == "frames_lost" &&
		s.Code == codes.Failed {
		ends = codes.Failed // the store lost frames of every attempt that its policy allows
		out.Lock()
		out.frameless++
		out.Unlock()
	}
	if s.Code != ends || s.Retries != j.Failures() && (!rolled || s.Retries < j.Failures()) {
		return fmt.Errorf("%s: code %s after %d retries, want %s after %d, a crash consumes no retry: %s", id,
			s.Code, s.Retries, ends, j.Failures(), strings.Join(why, "; "))
	}
	if int(s.Attempts) != 1+s.Retries+s.Reclaims {
		return fmt.Errorf("%s: %d attempts after %d retries and %d reclaims", id, s.Attempts, s.Retries, s.Reclaims)
	}
	raw, stored, err := f.engine.ReadResult(f.ctx, id, s.Attempts)
	if err != nil || stored != (ends == codes.Completed) {
		return fmt.Errorf("%s: result stored %v (%v)", id, stored, err)
	}
	var answer crash.Answer
	if stored {
		if answer, err = crash.Mix.Decode(raw); err != nil || answer.Index != j.Index {
			return fmt.Errorf("%s: result %q (%v)", id, raw, err)
		}
	}
	if made := strings.Split(answer.Pass, "/"); len(made) == 3 {
		if attempt, _ := strconv.Atoi(made[1]); attempt < int(s.Attempts) {
			out.Lock()
			out.reused++
			out.Unlock()
		}
	}
	if mode := j.Mode(); mode == crash.Stream || mode == crash.Flaky {
		for attempt := uint32(1); attempt <= s.Attempts; attempt++ {
			if err := f.frames(id, attempt, mode == crash.Stream && attempt == s.Attempts, rolled); err != nil {
				return err
			}
		}
	}
	if s.Reclaims > 0 {
		out.add(s, faults)
	}
	return nil
}

// frames checks that an attempt's frames have no hole, and that the last one of a stream has all of them. Where the
// store lost writes, a run may have been made twice under one attempt, and its last frames may be gone.
func (f *fleet) frames(id flowfabric.ExecutionID, attempt uint32, whole, rolled bool) error {
	frames, err := f.engine.ReadFrames(f.ctx, id, attempt, stream.Cursor{}, 1000)
	if err != nil {
		return err
	}
	for i, x := range frames {
		if x.Sequence != uint64(i+1) || !rolled && string(x.Payload) != strconv.Itoa(i) {
			return fmt.Errorf("%s attempt %d: frame %d has sequence %d and payload %q", id, attempt, i, x.Sequence,
				x.Payload)
		}
	}
	if whole && len(frames) != crash.Tokens && !rolled {
		return fmt.Errorf("%s attempt %d completed with %d frames", id, attempt, len(frames))
	}
	return nil
}

// add records how long the interrupted attempts of an execution took to be requeued and claimed again, without the
// pauses between reclaims.
func (r *recoveries) add(s engine.Snapshot, faults map[string][]fault) {
	log := append(slices.Clone(s.AttemptLog), engine.AttemptRecord{Index: s.Attempts, ClaimedAt: s.ClaimedAt})
	slices.SortStableFunc(log, func(a, b engine.AttemptRecord) int { return int(a.Index) - int(b.Index) })
	r.Lock()
	defer r.Unlock()
	reclaims := 0
	for i, a := range log {
		if a.State != "interrupted_reclaimed" || i+1 >= len(log) {
			continue
		}
		waits := pause(reclaims)
		reclaims++
		var at time.Time
		for _, x := range faults[a.Worker] {
			if x.at.Before(a.EndedAt) {
				at = x.at
			}
		}
		if at.IsZero() {
			r.unprovoked++
			continue
		}
		r.requeued = append(r.requeued, a.EndedAt.Sub(at))
		r.claimed = append(r.claimed, log[i+1].ClaimedAt.Sub(at)-waits)
	}
}

// quantiles shows p50, p99 and p100 of sorted durations.
func quantiles(sorted []time.Duration) string {
	if len(sorted) == 0 {
		return "none"
	}
	at := func(q float64) time.Duration {
		return sorted[int(q*float64(len(sorted)-1))].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("p50 %v, p99 %v, p100 %v of %d", at(0.5), at(0.99), at(1), len(sorted))
}
