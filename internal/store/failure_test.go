package store

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// watchSteps calls see before every step of the stores that the test opens, until it ends.
func watchSteps(t testing.TB, see func(what, path string) error) {
	old := step
	step = see
	t.Cleanup(func() { step = old }) // before it the stores are closed: they were opened later
}

// disk is what certainly lasts of a folder when its machine ends.
type disk struct {
	last  [2]string      // the step that is being done
	names map[string]int // as the system has them: numbers of files
	lasts map[string]int // as the folder was synced
	data  map[int][]byte // as the files were synced
	next  int
}

// moment is a disk before a step, and what was acknowledged.
type moment struct {
	files map[string][]byte
	acked int64
	step  string
}

// done notes the step that was done, and returns what the disk may have: the names that were synced, those that the
// system has, because it may sync names by itself, and those that are among both.
func (d *disk) done(what, path string) (states []map[string][]byte) {
	name := filepath.Base(d.last[1])
	switch d.last[0] {
	case "create":
		d.next++
		d.names[name] = d.next
	case "sync":
		d.data[d.names[name]], _ = os.ReadFile(d.last[1])
	case "rename":
		d.names[strings.Replace(name, ".tmp", ".resp", 1)] = d.names[name]
		delete(d.names, name)
	case "remove":
		delete(d.names, name)
	case "sync folder":
		d.lasts = maps.Clone(d.names)
	}
	d.last = [2]string{what, path}
	both := maps.Clone(d.lasts)
	maps.DeleteFunc(both, func(name string, n int) bool { return d.names[name] != n })
	for _, names := range []map[string]int{d.lasts, d.names, both} {
		files := map[string][]byte{}
		for name, n := range names {
			files[name] = d.data[n]
		}
		states = append(states, files)
	}
	return states
}

// When the machine ends at any step, a store that always syncs has everything that it acknowledged, and one that does
// not can be opened.
func TestMachineEndsAtEveryStep(t *testing.T) {
	for _, always := range []bool{true, false} {
		t.Run(fmt.Sprint("always ", always), func(t *testing.T) {
			var mu sync.Mutex
			var acked int64
			var moments []moment
			d := disk{names: map[string]int{}, data: map[int][]byte{}}
			var s *Store
			called := 0
			call := func() int64 {
				called++
				return run(t, s, "INCR n", fmt.Sprint("RPUSH list ", called), "LTRIM list -50 -1")
			}
			wait := func(position int64) {
				must.No(t, s.Wait(position))
				mu.Lock()
				defer mu.Unlock()
				acked = int64(called)
			}
			watchSteps(t, func(what, path string) error {
				mu.Lock()
				for _, files := range d.done(what, path) {
					moments = append(moments, moment{files, acked, what + " " + filepath.Base(path)})
				}
				mu.Unlock()
				if what == "create" && strings.HasPrefix(filepath.Base(path), "base") {
					wait(call()) // while the log is rewritten
				}
				return nil
			})
			s, _ = opened(t, t.TempDir(), always)
			for i := 1; i <= 9; i++ {
				wait(call())
				if i%3 == 0 {
					position := call()
					must.No(t, s.Rewrite())
					wait(position)
				}
			}
			must.No(t, s.Close())
			mu.Lock()
			defer mu.Unlock()
			step = func(string, string) error { return nil }
			folder := filepath.Join(t.TempDir(), "disk")
			for i, m := range moments {
				there := counted(t, folderOf(t, folder, m.files))
				if there > m.acked+2 || always && there < m.acked {
					t.Errorf("moment %d, before %s: %d calls are there, %d acknowledged", i, m.step, there, m.acked)
				}
			}
		})
	}
}

// A store whose disk takes nothing refuses writes, answers reads, and goes on when the disk does.
func TestADiskThatTakesNothing(t *testing.T) {
	var broken atomic.Bool
	watchSteps(t, func(what, path string) error {
		if broken.Load() && what == "write" {
			return syscall.ENOSPC
		}
		return nil
	})
	folder := t.TempDir()
	s, logs := opened(t, folder, false)
	do(t, s, "SET a 1")
	broken.Store(true)
	if err := s.Wait(run(t, s, "SET b 1")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a write: %v", err)
	}
	if r := s.Refuses(); r == nil || !strings.HasPrefix(r.Text, "OOM the store cannot write to "+folder+": no space") {
		t.Errorf("it refuses with %v", r)
	}
	do(t, s, "GET a")
	if err := s.Rewrite(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a rewrite: %v", err)
	}
	do(t, s, "GET b")
	broken.Store(false)
	testwait.Until(t, "writes go on", func() bool { return s.Refuses() == nil })
	do(t, s, "SET c 1")
	want := held(s)
	must.No(t, s.Close())
	if text := logs.String(); strings.Count(text, "\n") != 2 {
		t.Error(text)
	}
	s, _ = opened(t, folder, false)
	if same(t, "opened again", held(s), want); len(want) != 3 {
		t.Errorf("it has %v", want)
	}
	must.No(t, s.Close())
}

// After a sync that failed nobody knows what the disk has: nothing is written until a restart.
func TestASyncThatFailsIsFinal(t *testing.T) {
	var broken atomic.Bool
	watchSteps(t, func(what, path string) error {
		if broken.Load() && what == "sync" {
			return syscall.EIO
		}
		return nil
	})
	s, _ := opened(t, t.TempDir(), true)
	do(t, s, "SET a 1")
	broken.Store(true)
	if err := s.Wait(run(t, s, "SET b 1")); !errors.Is(err, syscall.EIO) {
		t.Errorf("a write: %v", err)
	}
	broken.Store(false)
	if err := s.Wait(run(t, s, "SET c 1")); !errors.Is(err, syscall.EIO) {
		t.Errorf("the next one: %v", err)
	}
	do(t, s, "GET a")
	if r := s.Refuses(); r == nil || !strings.Contains(r.Text, "restart") {
		t.Errorf("it refuses with %v", r)
	}
	if err := s.Close(); !errors.Is(err, syscall.EIO) {
		t.Errorf("closed: %v", err)
	}
}

// A rewrite that fails at any step loses nothing, and where it can, the store goes on.
func TestARewriteFailsAtEveryStep(t *testing.T) {
	failAt, refused := 0, 0
	for failed := true; failed; {
		failAt++
		var count, rewriting atomic.Int64
		t.Run(strconv.Itoa(failAt), func(t *testing.T) {
			watchSteps(t, func(what, path string) error {
				if rewriting.Load() == 1 && int(count.Add(1)) == failAt {
					return syscall.EIO
				}
				return nil
			})
			folder := t.TempDir()
			s, _ := opened(t, folder, false)
			do(t, s, "SET a 1", "HSET h a 1")
			position := run(t, s, "SET not-waited-for 1")
			rewriting.Store(1)
			err := s.Rewrite()
			rewriting.Store(0)
			failed = int(count.Load()) >= failAt
			if failed != (err != nil) {
				t.Errorf("failed %v, but %v", failed, err)
			}
			if s.Refuses() == nil {
				must.No(t, s.Wait(position))
				do(t, s, "SET b 1")
				must.No(t, s.Rewrite())
				do(t, s, "SET c 1")
			} else {
				refused++
				testwait.Until(t, "it has ended or goes on", func() bool {
					r := s.Refuses()
					return r == nil || strings.Contains(r.Text, "restart")
				})
			}
			want := held(s)
			if s.snapshot != nil {
				t.Error("the snapshot is still there")
			}
			if err := s.Close(); err != nil { // what nobody waited for may be gone
				delete(want, "not-waited-for")
			}
			s, _ = opened(t, folder, false)
			got := held(s)
			if want["not-waited-for"] == "" {
				delete(got, "not-waited-for")
			}
			same(t, "opened again", got, want)
		})
	}
	if failAt < 12 || refused == 0 || refused > 6 {
		t.Errorf("%d steps, %d refused", failAt-1, refused)
	}
}
