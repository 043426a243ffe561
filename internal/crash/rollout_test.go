//go:build unix

package crash_test

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/engine"
	"github.com/flowfabric/flowfabric-go/internal/crash"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/lua"
)

// forever is the lease of the workers of a rollout: nothing may wait for one to run out, or the test hangs.
const forever = "FF_CRASH_TTL=1h"

// batch is how many jobs are submitted for each restart.
const batch = 60

// crew is how many workers a rollout goes round.
const crew = 4

// Workers are restarted one after the other while jobs keep coming, some waiting for what they run, some handing it back at
// once, some under their old name. Every job ends as it should and once, what was handed back is claimed again although
// leases last for an hour, no restart costs a retry or counts as a crash, and nothing is left over. Spec 50 §15 #11.
func TestRollingRestarts(t *testing.T) {
	rolls := number(t, "FLOWFABRIC_CRASH_ROLLS", 20, 200)
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute+time.Duration(rolls)*15*time.Second)
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

// A fleet of the previous library is upgraded under load, worker by worker, back and forth. The newer process replaces the
// library; an older one goes on working on it, starts on it, and never replaces it; both serve the same queues until the
// last old one is gone. The promises of a rolling restart hold throughout. Spec 50 §15 #11, ADR 3.
func TestRollingUpgrade(t *testing.T) {
	rolls := number(t, "FLOWFABRIC_CRASH_UPGRADES", 8, 80)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute+time.Duration(rolls)*20*time.Second)
	defer cancel()
	old := buildPrevious(t)
	f := assemble(t, ctx, testserver.Redis(t), 16, time.Minute, crew)
	current := f.program
	isOld := make([]bool, crew)
	start := func(place int, older bool) {
		f.serial++
		program, name := current, fmt.Sprintf("w%d-new", f.serial)
		if older {
			program, name = old, fmt.Sprintf("w%d-old", f.serial)
		}
		isOld[place] = older
		f.workers[place] = f.spawnOf(program, name, forever, "FF_CRASH_DRAIN=-1s")
		f.workers[place].expect(t, "ready")
	}
	f.program = old // the producer
	f.produce()
	f.producer.expect(t, "ready") // it fixes how many partitions there are
	for place := range f.workers {
		start(place, true)
	}
	f.allow(3 * batch)
	f.abreast(batch)
	if p, r := f.library(); p != flowfabric.Protocol || r >= lua.Revision {
		t.Fatalf("the old fleet carries protocol %d, revision %d: it is not older than %d", p, r, lua.Revision)
	}

	// The first new process loads the newer library under the others.
	f.program = current
	f.stop(0)
	start(0, false)
	f.look()
	f.newest("after the first new worker")
	before := f.work("-old")
	for f.work("-old") < before+batch || f.work("-new") < batch/2 {
		f.allow(f.upto + batch)
		f.abreast(2 * batch)
	}

	for n := range rolls {
		f.allow(f.upto + batch)
		f.abreast(2 * batch)
		place := n % crew
		if n == rolls/2 { // submits of either version are claimed by both
			f.producer.signal(t, syscall.SIGTERM)
			_ = f.producer.input.Close()
			f.producer.ended(t)
			f.produce()
		}
		f.stop(place)
		start(place, !isOld[place])
		f.newest(fmt.Sprintf("after restart %d", n))
	}
	for place := range f.workers {
		if isOld[place] {
			f.stop(place)
			start(place, false)
		}
	}
	f.allow(f.upto + batch)
	f.landed()
	f.newest("in the end")
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
			for _, s := range p.Sessions {
				if s.Held > 0 && engine.Instance(s.ID) == f.workers[place].name {
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

// landed lets all that was allowed end, stops everybody, and counts: every job was acknowledged and ended once as its mode
// wants, every claim was settled by its own claimer, nothing counts as a retry or a crash, and nothing is left over.
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
	id := j.ID(f.partitions)
	s, err := f.engine.ReadExecution(f.ctx, id)
	if err != nil {
		return err
	}
	if s.State.Code != j.Ends() || s.Retries != j.Failures() || s.Reclaims != 0 || int(s.Attempts) != 1+s.Retries {
		return fmt.Errorf("%s: code %s, %d attempts, %d retries, %d reclaims, want %s, %d, %d, 0", id, s.State.Code, s.Attempts, s.Retries, s.Reclaims,
			j.Ends(), 1+j.Failures(), j.Failures())
	}
	if _, stored, err := f.engine.ReadResult(f.ctx, id, s.Attempts-1); err != nil || stored != (j.Ends() == flowfabric.CodeCompleted) {
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
			err = errors.Join(err, fmt.Errorf("%s: the claim %+v was settled %d times by its claimer", id, c.Fence, settled[c.Fence.Epoch]))
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

// newest fails unless the server carries this tree's library.
func (f *fleet) newest(when string) {
	f.t.Helper()
	if p, r := f.library(); p != flowfabric.Protocol || r != lua.Revision {
		f.t.Fatalf("%s the server carries protocol %d, revision %d, want %d and %d", when, p, r, flowfabric.Protocol, lua.Revision)
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

// buildPrevious compiles the worker of the previous library from its frozen sources.
func buildPrevious(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	unpack(t, filepath.Join("testdata", "previous.tar.gz"), dir)
	path := filepath.Join(dir, "older-worker")
	cmd := exec.Command("go", "build", "-o", path, "./internal/crash/worker")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the older worker: %v\n%s", err, out)
	}
	return path
}

func unpack(t *testing.T, archive, dir string) {
	t.Helper()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	plain, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(plain); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.Typeflag != tar.TypeReg {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(h.Name))
		text, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(path), 0o700)
		}
		if err == nil {
			err = os.WriteFile(path, text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
