package store

import (
	"errors"
	"fmt"
	"os"
)

// rewriteLeast is how many bytes the logs have at least when a rewrite begins by itself. Tests lower it.
var rewriteLeast int64 = 64 << 20

// How much of a base is one record, and how much of it waits for a sync: one of a whole base would make the syncs of
// the log wait.
const (
	basePart = 64 << 10
	baseSync = 32 << 20
)

// due is how many bytes in the logs begin a rewrite: twice as many as the base has. So a folder has at most three
// times the bytes of what is alive, and for the time of a rewrite four.
func dueAfter(base int64) int64 { return max(rewriteLeast, 2*base) }

var errClosing = errors.New("the store is being closed")

// rewriteWhenGrown rewrites the log whenever it is due.
func (s *Store) rewriteWhenGrown() {
	for {
		select {
		case <-s.log.ended:
			return
		case <-s.log.grown:
		}
		if err := s.Rewrite(); err != nil && !errors.Is(err, errClosing) {
			s.log.logger.Warn("the log of the store was not rewritten; it grows on",
				"folder", s.log.folder, "error", err)
		}
	}
}

// Rewrite writes a base, which is all keys as they are now, and removes the log before it. Calls go on meanwhile.
func (s *Store) Rewrite() error {
	l := s.log
	if l == nil {
		return nil
	}
	l.rewriting.Lock()
	defer l.rewriting.Unlock()
	head, err := s.turn()
	if err != nil {
		return fmt.Errorf("store: rewrite the log in %s: %w", l.folder, err)
	}
	w := &baseWriter{ended: l.ended, seed: l.seed}
	err = install(l.folder, head, func(file *os.File) error { return w.write(file, s) })
	if err == nil {
		err = syncNames(l.folder)
	}
	l.file.Lock()
	if err == nil {
		l.file.since, l.file.most = l.file.size, dueAfter(w.size)
	} else {
		l.file.most = l.file.since * 3 / 2 // not again at once
	}
	select {
	case <-l.grown: // it was due all the while
	default:
	}
	l.file.Unlock()
	if err != nil {
		s.mu.Lock()
		s.snapshot = nil
		s.mu.Unlock()
		return fmt.Errorf("store: rewrite the log in %s: %w", l.folder, err)
	}
	f, err := listFiles(l.folder)
	if err == nil {
		err = f.removeOld()
	}
	return err
}

// turn begins the next log and, at the same place between two calls, a snapshot. Calls go on; those that wait for
// their effects wait for two short syncs, too.
func (s *Store) turn() (head header, err error) {
	l, f := s.log, &s.log.file
	if err := l.sync(); err != nil { // most of it, while nobody waits
		return head, err
	}
	f.Lock()
	defer f.Unlock()
	select {
	case <-l.ended:
		return head, errClosing
	default:
	}
	if r := l.refusing.Load(); r != nil {
		return head, r.err
	}
	s.mu.Lock()
	l.rewrites++
	s.snapshot = &snapshot{id: l.rewrites}
	l.take()
	s.mu.Unlock()
	if err = l.write(); err == nil && f.synced < f.written {
		if err = syncFile(f.File); err != nil {
			err = l.refuse(err, true)
		}
	}
	next := header{kind: logged, number: f.number + 1, salt: l.salt, before: ended(f.size, f.sum)}
	if err == nil {
		f.synced = f.written
		err = l.begin(next)
	}
	if err != nil {
		s.mu.Lock()
		s.snapshot = nil
		s.mu.Unlock()
		return head, err
	}
	next.kind, next.before = base, noFile
	return next, nil
}

// begin goes on in a new file. The last one is complete and synced, and the caller has the file's lock.
func (l *log) begin(head header) error {
	f := &l.file
	if err := install(l.folder, head, nil); err != nil {
		return err
	}
	path := (&files{folder: l.folder}).path(logged, head.number)
	err := syncNames(l.folder)
	if err == nil {
		err = step("open", path)
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(path, os.O_WRONLY, 0)
	}
	if err != nil { // its first line says that the last one does not go on
		return l.refuse(err, true)
	}
	old := f.File
	f.File, f.number, f.size, f.sum = file, head.number, int64(len(head.String())), 0
	f.since += f.size
	return old.Close()
}

// baseWriter writes a base behind its first line.
type baseWriter struct {
	file     *os.File
	ended    <-chan struct{}
	seed     uint32
	part     effects
	text     []byte
	size     int64
	unsynced int
}

func (w *baseWriter) write(file *os.File, s *Store) (err error) {
	w.file = file
	keys := 0
	emit := func(args ...string) {
		if w.part.add(args); len(w.part.text) >= basePart && err == nil {
			err = w.flush()
		}
	}
	var kept, spare []keptKey
	for last := false; !last && err == nil; {
		kept, last = s.walk(spare)
		for i := range kept {
			export(kept[i].key, kept[i].value, kept[i].expires, emit)
		}
		keys += len(kept)
		clear(kept)
		spare = kept
		select {
		case <-w.ended:
			return errClosing
		default:
		}
	}
	if err == nil && w.part.count > 0 {
		err = w.flush()
	}
	if err == nil {
		_, err = file.WriteString(end(keys))
	}
	return err
}

func (w *baseWriter) flush() (err error) {
	w.text, _ = appendRecord(w.text[:0], w.seed, w.part)
	w.part = effects{text: w.part.text[:0]}
	if err = step("write", w.file.Name()); err == nil {
		_, err = w.file.Write(w.text)
	}
	w.size += int64(len(w.text))
	if w.unsynced += len(w.text); err == nil && w.unsynced >= baseSync {
		w.unsynced = 0
		err = syncFile(w.file)
	}
	return err
}
