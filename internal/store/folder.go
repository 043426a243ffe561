package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	fileMode   = 0o600
	folderMode = 0o700
)

// step is called before everything that changes a folder. Tests make it fail or end the process there.
var step = func(what, path string) error { return nil }

// makeFolder makes a folder, and those above it, so that their names last when the machine ends.
func makeFolder(folder string) error {
	above := filepath.Dir(folder)
	if _, err := os.Stat(folder); err == nil || above == folder {
		return err
	}
	if err := makeFolder(above); err != nil {
		return err
	}
	if err := os.Mkdir(folder, folderMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := syncNames(above); err != nil && !errors.Is(err, fs.ErrPermission) { // it may be written and not read
		return err
	}
	return nil
}

var errLocked = errors.New("another process has the lock")

// own locks a folder for this process. The file says who has it.
func own(folder string) (lock *os.File, err error) {
	path := filepath.Join(folder, "LOCK")
	file, err := lockFile(path)
	switch {
	case errors.Is(err, errLocked):
		owner, _ := os.ReadFile(path)
		who := strings.TrimSpace(string(owner))
		if who == "" {
			who = "a process that has just begun"
		}
		return nil, decide("the store in %s belongs to %s", folder, who)
	case errors.Is(err, errors.ErrUnsupported):
		return nil, decide("the file system of %s locks no files, so nothing would keep a second process out", folder)
	case err != nil:
		return nil, err
	}
	err = sign(file, "")
	if err != nil && !full(err) { // a full disk refuses writes later, and can still be read
		file.Close()
		return nil, err
	}
	return file, nil
}

// sign says in the file of a lock who has it, and where it can be reached.
func sign(file *os.File, address string) error {
	host, _ := os.Hostname()
	program, _ := os.Executable()
	text := fmt.Sprintf("process %d (%s) on %s since %s", os.Getpid(), filepath.Base(program), host,
		started.UTC().Format(time.RFC3339))
	if address != "" {
		text += "; other processes reach it at " + address
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err := file.WriteAt([]byte(text+"\n"), 0)
	return err
}

var started = time.Now()

// Listens lets other processes that want the folder know the address at which they reach the store instead.
func (s *Store) Listens(address string) error {
	if s.log == nil {
		return nil
	}
	if err := sign(s.log.lock, address); err != nil && !full(err) {
		return fmt.Errorf("store: %w", err)
	}
	return nil
}

// files are those of a store.
type files struct {
	folder      string
	bases, logs []int // numbers, ascending
	unfinished  []string
}

// listFiles finds the files of a store in a folder. Others are not its business.
func listFiles(folder string) (f files, err error) {
	f.folder = folder
	all, err := os.ReadDir(folder)
	if err != nil {
		return f, err
	}
	for _, entry := range all {
		var n int
		name := entry.Name()
		switch {
		case parse(name, base, ".resp", &n):
			f.bases = append(f.bases, n)
		case parse(name, logged, ".resp", &n):
			f.logs = append(f.logs, n)
		case parse(name, base, ".tmp", &n), parse(name, logged, ".tmp", &n):
			f.unfinished = append(f.unfinished, filepath.Join(folder, name))
		}
	}
	slices.Sort(f.bases)
	slices.Sort(f.logs)
	return f, nil
}

func parse(name string, k kind, ending string, n *int) bool {
	_, err := fmt.Sscanf(name, string(k)+"-%d", n)
	return err == nil && name == fileName(k, *n, ending)
}

func fileName(k kind, n int, ending string) string { return fmt.Sprint(k, "-", n, ending) }

func (f *files) path(k kind, n int) string { return filepath.Join(f.folder, fileName(k, n, ".resp")) }

// first is the number of the base to begin with, 0 if there is none, and of the first log.
func (f *files) first() int {
	if len(f.bases) == 0 {
		return 0
	}
	return f.bases[len(f.bases)-1]
}

// current are the numbers of the logs that count, without a gap.
func (f *files) current() ([]int, error) {
	first := f.first()
	logs := slices.DeleteFunc(slices.Clone(f.logs), func(n int) bool { return n < first })
	for i, n := range logs {
		switch {
		case n == first+i:
		case i == 0 && first == 0:
			return nil, f.missing(base, n)
		default:
			return nil, f.missing(logged, first+i)
		}
	}
	if len(logs) == 0 && first > 0 {
		return nil, f.missing(logged, first)
	}
	return logs, nil
}

func (f *files) missing(k kind, n int) error {
	return decide("the store in %s is not whole: %s is missing; restore a backup", f.folder, fileName(k, n, ".resp"))
}

// removeOld removes what files before the current ones are left.
func (f *files) removeOld() (err error) {
	first := f.first()
	for _, path := range f.unfinished {
		err = errors.Join(err, remove(path))
	}
	for _, n := range f.logs {
		if n < first {
			err = errors.Join(err, remove(f.path(logged, n)))
		}
	}
	for _, n := range f.bases {
		if n < first {
			err = errors.Join(err, remove(f.path(base, n)))
		}
	}
	return err
}

func remove(path string) error {
	if err := step("remove", path); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// install makes a file that has its name only when it is whole and synced. The name lasts after syncNames. write may
// be nil.
func install(folder string, h header, write func(*os.File) error) (err error) {
	unfinished := filepath.Join(folder, fileName(h.kind, h.number, ".tmp"))
	whole := filepath.Join(folder, fileName(h.kind, h.number, ".resp"))
	if err := step("create", unfinished); err != nil {
		return err
	}
	file, err := os.OpenFile(unfinished, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	if err = step("write", unfinished); err == nil {
		_, err = file.WriteString(h.String())
	}
	if err == nil && write != nil {
		err = write(file)
	}
	if err == nil {
		err = syncFile(file)
	}
	err = errors.Join(err, file.Close())
	if err == nil {
		if err = step("rename", unfinished); err == nil {
			err = os.Rename(unfinished, whole)
		}
	}
	if err != nil {
		return errors.Join(err, os.Remove(unfinished))
	}
	return nil
}

func syncNames(folder string) error {
	if err := step("sync folder", folder); err != nil {
		return err
	}
	return syncFolder(folder)
}

func syncFile(file *os.File) error {
	if err := step("sync", file.Name()); err != nil {
		return err
	}
	return file.Sync()
}
