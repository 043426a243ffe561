package store

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/functions"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// opened opens a folder for a test. What is logged goes to the second result.
func opened(t testing.TB, folder string, always bool) (*Store, *bytes.Buffer) {
	t.Helper()
	var logs bytes.Buffer
	s, err := Open(folder, Options{Always: always, Logger: slog.New(slog.NewTextHandler(&logs, nil))})
	must.No(t, err)
	t.Cleanup(func() { s.Close() })
	return s, &logs
}

// do runs commands as one call, and waits for it.
func do(t testing.TB, s *Store, commands ...string) {
	t.Helper()
	must.No(t, s.Wait(run(t, s, commands...)))
}

func run(t testing.TB, s *Store, commands ...string) (position int64) {
	t.Helper()
	s.Lock()
	for _, c := range commands {
		if r := s.Do(strings.Fields(c)); r.Kind == functions.KindError {
			t.Errorf("%s: %s", c, r.Text)
		}
	}
	return s.Unlock()
}

// held is everything that a store holds, by key.
func held(s *Store) map[string]string {
	s.Lock()
	defer s.Unlock()
	all := map[string]string{}
	s.Export(func(args ...string) {
		k := args[1]
		all[k] += fmt.Sprintf("%q\n", args)
	})
	return all
}

func same(t testing.TB, what string, got, want map[string]string) {
	t.Helper()
	if !maps.Equal(got, want) {
		t.Fatalf("%s: %d keys, want %d", what, len(got), len(want))
	}
}

func TestAFolderKeepsWhatCallsChanged(t *testing.T) {
	for _, always := range []bool{false, true} {
		folder := filepath.Join(t.TempDir(), "a", "b")
		s, _ := opened(t, folder, always)
		do(t, s, "SET text 1")
		do(t, s, "HSET hash a 1 b 2", "ZADD sorted 1 x 2 y", "RPUSH list a b", "SADD set 1 2", "PEXPIRE hash 100000")
		do(t, s, "DEL text", "INCRBY n 5")
		want := held(s)
		must.No(t, s.Close())
		must.No(t, s.Close())
		for range 2 {
			s, logs := opened(t, folder, always)
			same(t, "opened again", held(s), want)
			must.No(t, s.Rewrite())
			same(t, "rewritten", held(s), want)
			must.No(t, s.Close())
			if logs.Len() > 0 {
				t.Error(logs)
			}
		}
	}
}

// A new folder lasts when the machine ends: its name, and those of the folders that were made for it, are synced.
func TestANewFolderLasts(t *testing.T) {
	var synced []string
	watchSteps(t, func(what, path string) error {
		if what == "sync folder" {
			synced = append(synced, path)
		}
		return nil
	})
	there := t.TempDir()
	made := filepath.Join(there, "a")
	folder := filepath.Join(made, "b")
	for _, want := range [][]string{{there, made, folder}, nil} {
		synced = nil
		s, _ := opened(t, folder, true)
		must.No(t, s.Close())
		if !slices.Equal(synced, want) {
			t.Errorf("synced %q, want %q", synced, want)
		}
	}
}

// What is at the limits of a command can be read back from a log and from a base.
func TestAFolderKeepsWhatIsLarge(t *testing.T) {
	folder := t.TempDir()
	s, _ := opened(t, folder, false)
	do(t, s, "XADD stream 1-1 a b", "XSETID stream 5 ENTRIESADDED 9223372036854775807", "XADD stream * a b")
	s.Lock() // a function may give a command more arguments than a client
	s.Do(append([]string{"SADD", "set"}, make([]string, mostArguments)...))
	must.No(t, s.Wait(s.Unlock()))
	want := held(s)
	for range 2 {
		must.No(t, s.Close())
		var logs *bytes.Buffer
		s, logs = opened(t, folder, false)
		if same(t, "opened again", held(s), want); logs.Len() > 0 {
			t.Error(logs)
		}
		must.No(t, s.Rewrite())
	}
	must.No(t, s.Close())
}

func TestASecondProcessIsToldWhoHasTheFolder(t *testing.T) {
	folder := t.TempDir()
	s, _ := opened(t, folder, false)
	self, err := os.Executable()
	must.No(t, err)
	second := exec.CommandContext(t.Context(), self)
	second.Env = append(os.Environ(), asChild+"=open", "FOLDER="+folder)
	out, err := second.CombinedOutput()
	if err == nil || !strings.Contains(string(out), fmt.Sprintf("belongs to process %d (", os.Getpid())) {
		t.Errorf("%v: %s", err, out)
	}
	if _, err := Open(folder, Options{}); !errors.Is(err, flowfabric.ErrConfig) {
		t.Errorf("in the same process: %v", err)
	}
	must.No(t, s.Close())
	s, _ = opened(t, folder, false)
	must.No(t, s.Close())
}

// filesOf are the files of a folder except the lock, by name.
func filesOf(t testing.TB, folder string) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	entries, err := os.ReadDir(folder)
	must.No(t, err)
	for _, e := range entries {
		if e.Name() != "LOCK" {
			all[e.Name()], err = os.ReadFile(filepath.Join(folder, e.Name()))
			must.No(t, err)
		}
	}
	return all
}

// folderOf makes a folder of files.
func folderOf(t testing.TB, folder string, all map[string][]byte) string {
	t.Helper()
	must.No(t, os.RemoveAll(folder))
	must.No(t, os.MkdirAll(folder, folderMode))
	for name, data := range all {
		must.No(t, os.WriteFile(filepath.Join(folder, name), data, fileMode))
	}
	return folder
}

// written is a folder with four records, and what was there after each of them and where it ends.
func written(t testing.TB) (all map[string][]byte, contents []map[string]string, ends []int64) {
	t.Helper()
	folder := t.TempDir()
	s, _ := opened(t, folder, false)
	for _, calls := range [][]string{{}, {"SET a 1"}, {"HSET h f 1", "INCR a"}, {"SET MULTI EXEC"},
		{"DEL a", "RPUSH l *1 $3 #00000000"}} {
		do(t, s, calls...)
		contents, ends = append(contents, held(s)), append(ends, s.log.file.size)
	}
	must.No(t, s.Close())
	return filesOf(t, folder), contents, ends
}

func TestEveryTornTailIsCutOff(t *testing.T) {
	all, contents, ends := written(t)
	whole := all["log-0.resp"]
	folder := filepath.Join(t.TempDir(), "cut")
	for record := 1; record < len(ends); record++ {
		for at := ends[record-1]; at < ends[record]; at++ {
			s, logs := opened(t, folderOf(t, folder, map[string][]byte{"log-0.resp": whole[:at]}), false)
			same(t, fmt.Sprint("cut at ", at), held(s), contents[record-1])
			torn := at - ends[record-1]
			if told := fmt.Sprintf("offset=%d bytes=%d\n", ends[record-1], torn); torn > 0 &&
				!strings.Contains(logs.String(), told) || torn == 0 && logs.Len() > 0 {
				t.Errorf("cut at %d: %s, want %s", at, logs, told)
			}
			do(t, s, "SET after 1")
			want := held(s)
			must.No(t, s.Close())
			s, logs = opened(t, folder, false)
			same(t, "after it went on", held(s), want)
			must.No(t, s.Close())
			if logs.Len() > 0 {
				t.Error(logs)
			}
		}
	}
}

func TestEveryDamagedByteIsRefused(t *testing.T) {
	all, contents, ends := written(t)
	folder := filepath.Join(t.TempDir(), "flipped")
	for _, flip := range []byte{1, 0x20, 0x80, 0xff} {
		for at := range ends[3] {
			damaged := bytes.Clone(all["log-0.resp"])
			damaged[at] ^= flip
			record, _ := slices.BinarySearch(ends, at+1)
			offset := int64(0)
			if record > 0 {
				offset = ends[record-1]
			}
			_, err := Open(folderOf(t, folder, map[string][]byte{"log-0.resp": damaged}), Options{})
			if !errors.Is(err, flowfabric.ErrConfig) || at > 20 && !strings.Contains(err.Error(),
				fmt.Sprintf("flowfabric store inspect %s --at %d`", filepath.Join(folder, "log-0.resp"), offset)) {
				t.Fatalf("byte %d of record %d flipped by %x: %v", at, record, flip, err)
			}
			if !bytes.Equal(filesOf(t, folder)["log-0.resp"], damaged) {
				t.Fatal("it was changed")
			}
		}
	}
	s, _ := opened(t, folderOf(t, folder, all), false)
	same(t, "undamaged", held(s), contents[4])
	must.No(t, s.Rewrite())
	must.No(t, s.Close())
	rewritten := filesOf(t, folder)
	for at := range rewritten["base-1.resp"] {
		damaged := maps.Clone(rewritten)
		damaged["base-1.resp"] = bytes.Clone(rewritten["base-1.resp"])
		damaged["base-1.resp"][at] ^= 1
		if _, err := Open(folderOf(t, folder, damaged), Options{}); !errors.Is(err, flowfabric.ErrConfig) {
			t.Fatalf("byte %d of a base: %v", at, err)
		}
	}
	for cut := range rewritten["base-1.resp"] {
		damaged := maps.Clone(rewritten)
		damaged["base-1.resp"] = rewritten["base-1.resp"][:cut]
		if _, err := Open(folderOf(t, folder, damaged), Options{}); !errors.Is(err, flowfabric.ErrConfig) {
			t.Fatalf("a base of %d bytes: %v", cut, err)
		}
	}
}

func TestFilesThatDoNotBelongTogetherAreRefused(t *testing.T) {
	all, _, ends := written(t)
	folder := filepath.Join(t.TempDir(), "mixed")
	// The logs 0 and 1 of a rewrite that did not end.
	s, _ := opened(t, folderOf(t, folder, all), false)
	_, err := s.turn()
	must.No(t, err)
	do(t, s, "SET behind 1")
	s.snapshot = nil
	want := held(s)
	must.No(t, s.Close())
	two := filesOf(t, folder)
	s, _ = opened(t, folder, false)
	same(t, "two logs", held(s), want)
	must.No(t, s.Rewrite())
	must.No(t, s.Close())
	if names := slices.Sorted(maps.Keys(filesOf(t, folder))); !slices.Equal(names,
		[]string{"base-2.resp", "log-2.resp"}) {
		t.Errorf("after a rewrite: %q", names)
	}
	changed := func(change func(files map[string][]byte)) map[string][]byte {
		files := maps.Clone(two)
		change(files)
		return files
	}
	for what, c := range map[string]struct {
		files map[string][]byte
		says  string
	}{
		"newer": {map[string][]byte{"log-0.resp": []byte("#flowfabric-store 2 whatever\r\n")}, "newer version"},
		"short": {changed(func(f map[string][]byte) { f["log-0.resp"] = f["log-0.resp"][:ends[3]] }),
			"does not continue"},
		"torn before": {changed(func(f map[string][]byte) { f["log-0.resp"] = f["log-0.resp"][:ends[3]+5] }),
			fmt.Sprintf("offset %d", ends[3])},
		"no base":  {changed(func(f map[string][]byte) { delete(f, "log-0.resp") }), "base-1.resp is missing"},
		"gap":      {changed(func(f map[string][]byte) { f["log-3.resp"] = nil }), "log-2.resp is missing"},
		"no log":   {map[string][]byte{"base-3.resp": nil}, "log-3.resp is missing"},
		"renamed":  {map[string][]byte{"log-0.resp": two["log-1.resp"]}, "says that it is log 1"},
		"no store": {map[string][]byte{"log-0.resp": []byte("hello")}, "damaged at offset 0"},
	} {
		_, err := Open(folderOf(t, folder, c.files), Options{})
		if !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	s, _ = opened(t, folderOf(t, folder, changed(func(f map[string][]byte) {
		f["base-1.tmp"], f["log-2.tmp"], f["base-x.resp"] = nil, nil, []byte("of the user")
	})), false)
	same(t, "with unfinished files", held(s), want)
	if f := filesOf(t, folder); len(f) != 3 || string(f["base-x.resp"]) != "of the user" {
		t.Errorf("%q", f)
	}
}

// randomCommand draws a command that changes one of a few keys, or does nothing.
func randomCommand(r *rand.Rand) string {
	n, key := r.IntN(100), fmt.Sprint(r.IntN(40))
	switch r.IntN(12) {
	case 0:
		return fmt.Sprint("SET s", key, " ", n)
	case 1:
		return fmt.Sprint("HSET h", key, " f", n, " ", n)
	case 2:
		return fmt.Sprint("HDEL h", key, " f", n)
	case 3:
		return fmt.Sprint("ZADD z", key, " ", n, " m", n)
	case 4:
		return fmt.Sprint("ZREMRANGEBYSCORE z", key, " 0 ", n/2)
	case 5:
		return fmt.Sprint("RPUSH l", key, " ", n)
	case 6:
		return fmt.Sprint("LTRIM l", key, " 1 -1")
	case 7:
		return fmt.Sprint("SADD t", key, " ", n)
	case 8:
		return fmt.Sprint("PEXPIRE h", key, " ", n)
	case 9:
		return fmt.Sprint("DEL t", key, " h", n%40)
	case 10:
		return fmt.Sprint("INCRBY i", key, " ", n)
	default:
		return fmt.Sprint("RENAME i", key, " i", n)
	}
}
