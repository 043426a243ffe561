package store

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// Options say how [Open] keeps a folder.
type Options struct {
	Always bool             // every call is synced before it is answered; otherwise once a second
	Clock  func() time.Time // as in [New]
	Logger *slog.Logger     // default slog.Default()
}

// Open reads the store that a folder keeps, or begins one there. The folder belongs to it until [Store.Close]; a
// second process gets an error that says who has it. What the end of a machine has left of the last call is cut off
// with a warning; any other damage is an error. Errors that need a decision wrap flowfabric.ErrConfig.
func Open(folder string, o Options) (s *Store, err error) {
	if err := makeFolder(folder); err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	lock, err := own(folder)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	defer func() {
		if err != nil {
			s, err = nil, errors.Join(fmt.Errorf("store: %w", err), lock.Close())
		}
	}()
	s = New(o.Clock)
	l := &log{folder: folder, always: o.Always, logger: cmp.Or(o.Logger, slog.Default()), lock: lock,
		ended: make(chan struct{}), wake: make(chan struct{}, 1), grown: make(chan struct{}, 1)}
	l.group.wrote.L = &l.group
	s.log = l
	f, err := listFiles(folder)
	if err != nil {
		return nil, err
	}
	if err = s.recover(&f); err != nil {
		return nil, err
	}
	if err = f.removeOld(); err != nil {
		return nil, errors.Join(err, l.file.Close())
	}
	l.jobs.Go(l.keep)
	l.jobs.Go(s.rewriteWhenGrown)
	return s, nil
}

// recover reads the files and makes the log ready to go on in the last one.
func (s *Store) recover(f *files) error {
	l := s.log
	s.now = s.clock()
	s.ms = s.now.UnixMilli()
	l.reading = true
	defer func() { l.reading = false }()
	last, err := f.read(reading{record: s.repeat, torn: l.cut, base: func(keys int) error {
		if keys != s.keys.count {
			return &damage{0, fmt.Sprintf("it has %d keys, but its last line says %d", s.keys.count, keys)}
		}
		return nil
	}})
	if err != nil {
		return err
	}
	if last.salt == "" {
		return s.beginFolder()
	}
	l.salt, l.file.number, l.file.size, l.file.sum = last.salt, last.number, last.size, last.sum
	l.file.since, l.file.most = last.logs, dueAfter(last.base)
	return s.goOn(f.path(logged, last.number))
}

// beginFolder begins the first log.
func (s *Store) beginFolder() error {
	l := s.log
	salt := make([]byte, 8)
	_, _ = rand.Read(salt)
	l.salt = fmt.Sprintf("%x", salt)
	head := header{kind: logged, salt: l.salt, before: noFile}
	if err := install(l.folder, head, nil); err != nil {
		return err
	}
	if err := syncNames(l.folder); err != nil {
		return err
	}
	l.file.size = int64(len(head.String()))
	l.file.since, l.file.most = l.file.size, dueAfter(0)
	return s.goOn((&files{folder: l.folder}).path(logged, 0))
}

// goOn opens the last log to append to it. What its process before wrote without a sync is synced.
func (s *Store) goOn(path string) (err error) {
	l := s.log
	l.seed = header{salt: l.salt}.seed()
	if l.file.File, err = os.OpenFile(path, os.O_WRONLY, 0); err != nil {
		return err
	}
	if err = syncFile(l.file.File); err != nil {
		return errors.Join(err, l.file.Close())
	}
	return nil
}

// cut cuts off the end of the last log and warns.
func (l *log) cut(path string, r *records, d *damage) error {
	bytes, err := cut(path, r, d)
	if err == nil {
		l.logger.Warn("the log of the store ended in the middle of a record, which was cut off",
			"file", path, "offset", d.offset, "bytes", bytes)
	}
	return err
}

// cut removes the end of the last log, which its process or its machine did not live to write as a whole, and says
// how many bytes that were. If a whole record follows, it is damage.
func cut(path string, r *records, d *damage) (bytes int64, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	follows, err := goodBehind(file, r.head, d.offset)
	if err != nil {
		return 0, err
	}
	if follows >= 0 {
		return 0, &damage{d.offset, fmt.Sprintf("%s, but a whole record follows at offset %d", d.what, follows)}
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	if err = step("truncate", path); err == nil {
		err = file.Truncate(d.offset)
	}
	if err == nil {
		err = syncFile(file)
	}
	return info.Size() - d.offset, err
}

// repeat carries out a record.
func (s *Store) repeat(commands [][]string, at int64) error {
	for _, args := range commands {
		if !s.Writes(args[0]) {
			return decide("offset %d: this version has no command %q that writes", at, args[0])
		}
		if r := s.Do(args); r.Kind == functions.KindError {
			return decide("offset %d: %q answers %q", at, args[0], r.Text)
		}
	}
	s.record()
	return nil
}
