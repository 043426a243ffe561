//go:build unix

package crash_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// forever is the lease of the workers of a rollout: nothing may wait for one to run out, or the test hangs.
const forever = "FF_CRASH_TTL=1h"

// batch is how many jobs are submitted for each restart.
const batch = 60

// crew is how many workers a rollout goes round.
const crew = 4

// Workers are restarted one after the other while jobs keep coming, some waiting for what they run, some handing it
// back at once, some under their old name. Every job ends as it should and once, what was handed back is claimed
// again although leases last for an hour, no restart costs a retry or counts as a crash, and nothing is left over.
func TestRollingRestarts(t *testing.T) {
	rolls := number(t, "FLOWFABRIC_CRASH_ROLLS", 10, 200)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	f := assemble(t, ctx, testserver.Redis(t), 16, time.Minute, crew)
	f.look()
	f.produce()
	start := func(place int) {
		f.serial++
		name, drain := fmt.Sprintf("w%d", f.serial), "10s"
		if place%2 == 0 {
			name = fmt.Sprintf("w-%d", place) // as a StatefulSet does
		}
		if place < crew/2 {
			drain = "-1s"
		}
		f.workers[place] = f.spawn(name, forever, "FF_CRASH_DRAIN="+drain)
	}
	for place := range f.workers {
		start(place)
	}
	for _, w := range f.workers {
		w.expect(t, "ready")
	}
	for n := range rolls {
		f.allow(f.upto + batch)
		f.abreast(2 * batch)
		f.await(n % crew)
		f.stop(n % crew)
		start(n % crew)
		f.workers[n%crew].expect(t, "ready")
	}
	l := f.landed()
	if l.answers["release ok"] == 0 {
		t.Error("nothing was handed back: nothing was proved")
	}
	if f.count(":workers") != 0 {
		t.Errorf("%d workers are registered although all have left", f.count(":workers"))
	}
}

// A fleet is upgraded to the next revision of the library under load, worker by worker, back and forth, and in the
// end downgraded again. The newer process replaces the library; an older one goes on working on it, starts on it, and
// never replaces it; both serve the same queues. The promises of a rolling restart hold throughout (ADR 3).
func TestRollingUpgrade(t *testing.T) {
	rolls := number(t, "FLOWFABRIC_CRASH_UPGRADES", 6, 80)
	ctx, cancel := testwait.Context(t, t.Context())
	defer cancel()
	next := buildNext(t)
	f := assemble(t, ctx, testserver.Redis(t), 16, time.Minute, crew)
	current := f.program
	isNew := make([]bool, crew)
	start := func(place int, newer bool) {
		f.serial++
		program, name := current, fmt.Sprintf("w%d-old", f.serial)
		if newer {
			program, name = next, fmt.Sprintf("w%d-new", f.serial)
		}
		isNew[place] = newer
		f.workers[place] = f.spawnOf(program, name, forever, "FF_CRASH_DRAIN=-1s")
		f.workers[place].expect(t, "ready")
	}
	f.produce()
	f.producer.expect(t, "ready") // it fixes how many partitions there are
	for place := range f.workers {
		start(place, false)
	}
	f.look()
	f.allow(3 * batch)
	f.abreast(batch)
	f.carries(library.Revision, "under the old fleet")

	// The first new process loads the newer library under the others.
	f.stop(0)
	start(0, true)
	f.carries(library.Revision+1, "after the first new worker")
	before := f.work("-old")
	for f.work("-old") < before+batch || f.work("-new") < batch/2 {
		f.allow(f.upto + batch)
		f.abreast(2 * batch)
	}

	roll := func(place int, newer bool) {
		f.allow(f.upto + batch)
		f.abreast(2 * batch)
		f.stop(place)
		start(place, newer)
		f.carries(library.Revision+1, fmt.Sprintf("after the start of %s", f.workers[place].name))
	}
	for n := range rolls {
		if n == rolls/2 { // submits of either version are claimed by both
			f.producer.signal(t, syscall.SIGTERM)
			_ = f.producer.input.Close()
			f.producer.ended(t)
			f.program = next
			f.produce()
		}
		roll(n%crew, !isNew[n%crew])
	}
	for _, newer := range []bool{true, false} { // a whole upgrade, and a whole downgrade
		for place := range f.workers {
			if isNew[place] != newer {
				roll(place, newer)
			}
		}
	}
	f.allow(f.upto + batch)
	f.landed()
	f.carries(library.Revision+1, "in the end")
}

// stop asks a worker to drain and waits until it has ended in good order.
func (f *fleet) stop(place int) {
	f.t.Helper()
	w := f.workers[place]
	w.signal(f.t, syscall.SIGTERM)
	w.ended(f.t)
}

// await waits until a worker holds something, submitting more as long as it does not.
func (f *fleet) await(place int) {
	f.t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	for {
		for _, p := range f.engine.Sessions(f.ctx) {
			for _, s := range p.Reply {
				if s.Held > 0 && ids.Worker(s.ID) == f.workers[place].name {
					return
				}
			}
		}
		if f.count(":done") >= f.upto-batch/2 {
			f.allow(f.upto + batch)
		}
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("%s never holds anything: %s", f.workers[place].name, f.stuck(f.upto))
		case <-again.C:
		}
	}
}

// landed lets all that was allowed end, stops everybody, and counts: every job was acknowledged and ended once as its
// mode wants, every claim was settled by its own claimer, nothing counts as a retry or a crash, and nothing is left
// over.
func (f *fleet) landed() *ledger {
	f.t.Helper()
	jobs := f.upto
	f.submitted()
	existing := f.settled(jobs)
	f.stand()
	fates := f.fates(jobs)
	known := 0
	for i := range jobs {
		if fates.acked[i] || fates.unknown[i] {
			known++
		}
	}
	if known != jobs || existing != jobs {
		f.t.Errorf("%d jobs were submitted, %d exist, want %d", known, existing, jobs)
	}
	l := readLedger(f.t, f.journals())
	l.check(f.t)
	wrong := 0
	for i := range jobs {
		if err := f.undisturbed(crash.Job{Index: i}, l); err != nil {
			if wrong++; wrong <= 20 {
				f.t.Errorf("job %d: %v", i, err)
			}
		}
	}
	f.sound(jobs, false)
	f.t.Logf("%d jobs, %d worker processes", jobs, f.serial)
	return l
}

// undisturbed tells how a job shows that a worker was restarted, beyond having been handed back.
func (f *fleet) undisturbed(j crash.Job, l *ledger) error {
	id, err := j.Execution(f.ctx, f.engine)
	if err != nil {
		return err
	}
	s, err := f.engine.ReadExecution(f.ctx, id)
	if err != nil {
		return err
	}
	if s.Code != j.Ends() || s.Retries != j.Failures() || s.Reclaims != 0 || int(s.Attempts) != 1+s.Retries {
		return fmt.Errorf("%s: code %s, %d attempts, %d retries, %d reclaims, want %s, %d, %d, 0", id, s.Code,
			s.Attempts, s.Retries, s.Reclaims, j.Ends(), 1+j.Failures(), j.Failures())
	}
	if _, stored, err := f.engine.ReadResult(f.ctx, id, s.Attempts); err != nil ||
		stored != (j.Ends() == codes.Completed) {
		return fmt.Errorf("%s: result stored %v (%v)", id, stored, err)
	}
	e := l.entries[id]
	if e == nil {
		return fmt.Errorf("%s: no journal tells of it", id)
	}
	settled := map[uint64]int{}
	for _, w := range e.writes {
		if w.Operation != "step" && w.Operation != "append" {
			settled[w.Epoch]++
		}
	}
	for _, c := range e.claims {
		if settled[c.Fence.Epoch] != 1 {
			err = errors.Join(err, fmt.Errorf("%s: the claim %+v was settled %d times by its claimer", id, c.Fence,
				settled[c.Fence.Epoch]))
		}
	}
	return err
}

// library is what the server carries.
func (f *fleet) library() (protocol, revision int) {
	f.t.Helper()
	slots, err := f.raw.Do(f.ctx, f.raw.B().Fcall().Function("ff_version").Numkeys(0).Build()).ToArray()
	if err != nil {
		f.t.Fatal(err)
	}
	for i, n := range map[int]*int{2: &protocol, 3: &revision} {
		text, _ := slots[i].ToString()
		if *n, err = strconv.Atoi(text); err != nil {
			f.t.Fatal(err)
		}
	}
	return protocol, revision
}

// carries fails unless the server carries a revision of this tree's protocol.
func (f *fleet) carries(revision int, when string) {
	f.t.Helper()
	if p, r := f.library(); p != limits.Protocol || r != revision {
		f.t.Fatalf("%s the server carries protocol %d, revision %d, want %d and %d", when, p, r, limits.Protocol,
			revision)
	}
}

// work counts what the workers of one version have completed so far.
func (f *fleet) work(version string) (n int) {
	f.t.Helper()
	for _, path := range f.journals() {
		if !strings.HasSuffix(path, version+".journal") {
			continue
		}
		err := crash.ReadJournal(path, nil, func(w crash.Written) {
			if w.Operation == "complete" && w.Answer == "ok" {
				n++
			}
		}, nil)
		if err != nil {
			f.t.Fatal(err)
		}
	}
	return n
}

// buildNext compiles the worker with the library as its next revision might be: it has one function more, and replies
// that have grown at their end.
func buildNext(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	must.No(t, err)
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	write := func(name, text string) {
		path := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		must.No(t, os.WriteFile(path, []byte(text), 0o600))
		overlay.Replace[filepath.Join(root, filepath.FromSlash(name))] = path
	}
	change := func(name, old, text string) {
		b, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		must.No(t, err)
		if strings.Count(string(b), old) != 1 {
			t.Fatalf("%s does not say %q once", name, old)
		}
		write(name, strings.Replace(string(b), old, text, 1))
	}
	change("internal/library/library.go", fmt.Sprintf("const Revision = %d\n", library.Revision),
		fmt.Sprintf("const Revision = %d\n", library.Revision+1))
	change("lua/system/ff_version.lua", "'@HASH@')", "'@HASH@', 'more')")
	change("lua/worker/ff_register_worker.lua", "'@REVISION@')", "'@REVISION@', 'more')")
	change("lua/tick/ff_tick.lua", "reply.int(outbox))", "reply.int(outbox), 'more')")
	write("lua/system/ff_next.lua",
		"-- ff_next: a function that only this revision has.\n-- Flags:   no-writes\n-- Go:      Engine.next\n"+
			"-- Args:    none\n-- Replies: OK\n-- Errors:  none\nlocal function ff_next(k, argv) return reply.ok() end\n")
	text, err := json.Marshal(overlay)
	must.No(t, err)
	file, path := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "next-worker")
	must.No(t, os.WriteFile(file, text, 0o600))
	if out, err := exec.Command("go", "build", "-overlay", file, "-o", path, "./worker").CombinedOutput(); err != nil {
		t.Fatalf("build the next worker: %v\n%s", err, out)
	}
	return path
}
