package store

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
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
// with a warning; any other damage is an error. Errors that need a decision wrap [flowfabric.ErrConfig].
func Open(folder string, o Options) (s *Store, err error) {
	if err := os.MkdirAll(folder, folderMode); err != nil {
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
	logs, err := f.current()
	if err != nil {
		return err
	}
	if len(logs) == 0 {
		return s.beginFolder()
	}
	s.now = s.clock()
	s.ms = s.now.UnixMilli()
	l.reading = true
	defer func() { l.reading = false }()
	before := ""
	var baseSize int64
	if n := f.first(); n > 0 {
		r, err := s.readFile(f.path(base, n), base, n)
		if err != nil {
			return refused(f.path(base, n), err)
		}
		if r.keys != s.keys.count {
			return fmt.Errorf("%w: %s ends after %d keys, but says that it has %d", flowfabric.ErrConfig,
				f.path(base, n), s.keys.count, r.keys)
		}
		baseSize, l.salt = r.Offset(), r.head.salt
	}
	for i, n := range logs {
		path := f.path(logged, n)
		r, err := s.readFile(path, logged, n)
		if damaged := (*damage)(nil); i == len(logs)-1 && errors.As(err, &damaged) && damaged.offset > 0 {
			err = l.cut(path, r, damaged)
		}
		if err != nil {
			return refused(path, err)
		}
		if before != "" && r.head.before != before || l.salt != "" && l.salt != r.head.salt {
			return fmt.Errorf("%w: %s continues a file of length:checksum %s, but %s is %s: files of different times "+
				"were copied, or the end of that one is lost; restore both from one backup", flowfabric.ErrConfig, path,
				r.head.before, f.path(logged, n-1), before)
		}
		before, l.salt = ended(r.at, r.sum), r.head.salt
		l.file.number, l.file.size, l.queue.sum = n, r.at, r.sum
		l.file.since += r.at
	}
	l.file.most = dueAfter(baseSize)
	return s.goOn(f.path(logged, l.file.number))
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

// readFile carries out a file, up to its end or its damage.
func (s *Store) readFile(path string, k kind, number int) (r *records, err error) {
	file, r, err := openRecords(path, k, number)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	for err == nil {
		var commands [][]string
		if commands, err = r.next(); err == nil {
			err = s.repeat(commands, r.at)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
		if k == base && r.keys < 0 {
			err = &damage{r.at, "its last line is missing"}
		}
	}
	return r, err
}

// cut removes the end of the last log, which its process or its machine did not live to write as a whole. It is
// damage if a whole record follows.
func (l *log) cut(path string, r *records, d *damage) (err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	follows, err := goodBehind(file, r.head, d.offset)
	if err != nil {
		return err
	}
	if follows >= 0 {
		return &damage{d.offset, fmt.Sprintf("%s, and a whole record follows at offset %d", d.what, follows)}
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	l.logger.Warn("the log of the store ends in the middle of a record, which was cut off; no caller was told that it "+
		"is safe unless the disk or the machine failed", "file", path, "offset", d.offset, "bytes", info.Size()-d.offset)
	if err = step("truncate", path); err == nil {
		err = file.Truncate(d.offset)
	}
	if err == nil {
		err = syncFile(file)
	}
	return err
}

// refused tells what to do about damage.
func refused(path string, err error) error {
	d := (*damage)(nil)
	if !errors.As(err, &d) {
		return fmt.Errorf("%s: %w", path, err)
	}
	return fmt.Errorf("%w: %s is damaged at %w; `flowfabric store inspect %s --at %d` shows what is there; "+
		"restore a backup, or cut the file at that offset and remove the logs behind it to give up what follows",
		flowfabric.ErrConfig, path, d, path, d.offset)
}

// repeat carries out a record.
func (s *Store) repeat(commands [][]string, at int64) error {
	for _, args := range commands {
		if !s.Writes(args[0]) {
			return fmt.Errorf("%w: offset %d: this version has no command %q that writes", flowfabric.ErrConfig, at,
				args[0])
		}
		if r := s.Do(args); r.Kind == functions.KindError {
			return fmt.Errorf("%w: offset %d: %q answers %q", flowfabric.ErrConfig, at, args[0], r.Text)
		}
	}
	s.record()
	return nil
}
