package store

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// busy opens a folder and changes it by random calls until the test ends. still stops them while f runs.
func busy(t *testing.T, folder string) (s *Store, clock func() time.Time, still func(f func())) {
	t.Helper()
	var ms atomic.Int64
	ms.Store(1_700_000_000_000)
	clock = func() time.Time { return time.UnixMilli(ms.Load()) }
	s, err := Open(folder, Options{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
	must.No(t, err)
	var turn sync.Mutex
	var ended atomic.Bool
	var writer conc.WaitGroup
	writer.Go(func() {
		for r := rand.New(rand.NewPCG(1, 2)); !ended.Load(); {
			turn.Lock()
			s.Lock()
			for range r.IntN(4) {
				s.Do(strings.Fields(randomCommand(r)))
			}
			position := s.Unlock()
			ms.Add(int64(r.IntN(2)))
			if err := s.Wait(position); err != nil && !ended.Load() {
				t.Error(err)
			}
			turn.Unlock()
		}
	})
	t.Cleanup(func() {
		ended.Store(true)
		writer.Wait()
		must.No(t, s.Close())
	})
	return s, clock, func(f func()) {
		turn.Lock()
		defer turn.Unlock()
		f()
	}
}

// While random calls change everything, the log is rewritten again and again; what is read back is what is there.
func TestRewritesBesideCalls(t *testing.T) {
	folder, copied := t.TempDir(), filepath.Join(t.TempDir(), "copy")
	s, clock, still := busy(t, folder)
	for i := range 60 {
		if err := s.Rewrite(); err != nil {
			t.Fatal(err)
		}
		still(func() {
			want := held(s)
			again, err := Open(folderOf(t, copied, filesOf(t, folder)), Options{Clock: clock})
			must.No(t, err)
			same(t, fmt.Sprint("round ", i), held(again), want)
			must.No(t, again.Close())
		})
	}
}

// rewritesAfter lowers how many bytes begin a rewrite, for the stores that the test opens.
func rewritesAfter(t *testing.T, least int64) {
	before := rewriteLeast
	rewriteLeast = least
	t.Cleanup(func() { rewriteLeast = before }) // the stores are closed before
}

// A log that is empty when the next one begins is still the one that the next one continues.
func TestARewriteBehindAnEmptyLog(t *testing.T) {
	for _, again := range []bool{false, true} { // the first log in use is new, or read
		folder := t.TempDir()
		s, _ := opened(t, folder, false)
		do(t, s, "SET a 1")
		must.No(t, s.Rewrite())
		if again {
			must.No(t, s.Close())
			s, _ = opened(t, folder, false)
		}
		for range 2 { // rewrites that do not end
			_, err := s.turn()
			must.No(t, err)
		}
		s.snapshot = nil
		want := held(s)
		must.No(t, s.Close())
		s, _ = opened(t, folder, false)
		same(t, "opened again", held(s), want)
		must.No(t, s.Close())
	}
}

// Calls beside a rewrite do not begin one more behind it.
func TestARewriteIsNotRepeated(t *testing.T) {
	rewritesAfter(t, 16<<10)
	var s *Store
	due := make(chan int, 1)
	fill := func() {
		for i := range 100 {
			do(t, s, fmt.Sprint("SET k", i%20, " ", strings.Repeat("x", 200)))
		}
	}
	watchSteps(t, func(what, path string) error {
		switch {
		case what == "create" && filepath.Base(path) == "base-1.tmp":
			fill()
		case what == "remove" && filepath.Base(path) == "log-0.resp":
			due <- len(s.log.grown)
		}
		return nil
	})
	s, _ = opened(t, t.TempDir(), false)
	fill()
	if n := <-due; n != 0 {
		t.Error("the next rewrite is due already")
	}
	must.No(t, s.Close())
}

// A log rewrites itself when it has grown.
func TestALogRewritesItself(t *testing.T) {
	rewritesAfter(t, 16<<10)
	folder := t.TempDir()
	s, _ := opened(t, folder, false)
	for i := 0; ; i++ {
		do(t, s, fmt.Sprint("SET k", i%50, " ", strings.Repeat("x", 100)))
		if f, err := listFiles(folder); err == nil && f.first() >= 3 {
			break
		}
	}
}

// A copy that is made while calls and rewrites go on is whole. One by files alone is whole, or refused.
func TestCopiesBesideCalls(t *testing.T) {
	folder, parent := t.TempDir(), t.TempDir()
	s, clock, still := busy(t, folder)
	var rewriter conc.WaitGroup
	var ended atomic.Bool
	rewriter.Go(func() {
		for !ended.Load() {
			if err := s.Rewrite(); err != nil {
				t.Error(err)
			}
		}
	})
	var backups, copies int
	for i := range 20 {
		dest := filepath.Join(parent, fmt.Sprint(i))
		must.No(t, Backup(t.Context(), folder, dest))
		again, err := Open(dest, Options{Clock: clock})
		must.No(t, err)
		backups += len(held(again))
		must.No(t, again.Close())

		files := map[string][]byte{}
		entries, err := os.ReadDir(folder)
		must.No(t, err)
		for _, e := range entries {
			if data, err := os.ReadFile(filepath.Join(folder, e.Name())); err == nil {
				files[e.Name()] = data
			}
		}
		again, err = Open(folderOf(t, filepath.Join(parent, "plain"), files), Options{Clock: clock})
		switch {
		case err == nil:
			copies++
			must.No(t, again.Close())
		case !errors.Is(err, flowfabric.ErrConfig):
			t.Error(err)
		}
	}
	ended.Store(true)
	rewriter.Wait()
	still(func() {
		dest := filepath.Join(parent, "last")
		must.No(t, Backup(t.Context(), folder, dest))
		again, err := Open(dest, Options{Clock: clock})
		must.No(t, err)
		same(t, "backup", held(again), held(s))
		must.No(t, again.Close())
		if err := Backup(t.Context(), folder, dest); !errors.Is(err, flowfabric.ErrConfig) {
			t.Errorf("to a folder with a store: %v", err)
		}
	})
	if err := Backup(t.Context(), t.TempDir(), filepath.Join(parent, "none")); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("of nothing: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(parent, "*unfinished*")); len(left) > 0 || err != nil {
		t.Errorf("left: %q, %v", left, err)
	}
	t.Logf("%d keys in backups, %d of 20 plain copies opened", backups, copies)
}

// A backup that is refused says what is wrong with the folder that was to be copied, not with the copy, which is gone.
func TestARefusedBackupNamesTheFolder(t *testing.T) {
	all, _, ends := written(t)
	all["log-0.resp"][ends[1]+40] ^= 1
	folder := folderOf(t, t.TempDir(), all)
	err := Backup(t.Context(), folder, filepath.Join(t.TempDir(), "copy"))
	if !errors.Is(err, flowfabric.ErrConfig) || strings.Contains(err.Error(), "unfinished") || !strings.Contains(
		err.Error(), fmt.Sprintf("store inspect %s --at %d`", filepath.Join(folder, "log-0.resp"), ends[1])) {
		t.Error(err)
	}
	nowhere := filepath.Join(t.TempDir(), "none", "copy")
	if err = Backup(t.Context(), folder, nowhere); !errors.Is(err, flowfabric.ErrConfig) ||
		!strings.Contains(err.Error(), filepath.Dir(nowhere)+" does not exist: make it first") {
		t.Error(err)
	}
}
