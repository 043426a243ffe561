package store

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

// How often what is written is synced when a call does not wait for that, and how often a write is tried again.
const (
	syncEvery  = time.Second
	retryEvery = 100 * time.Millisecond
)

// mostSpare bounds the buffer that a log keeps while nothing waits in it.
const mostSpare = 1 << 20

// log is the append-only file of a store. Calls put their effects into a queue. A caller that waits writes all that is
// in it, also for those who wait meanwhile, so nothing stands between a call and its file.
//
// Locks are taken in this order: the file's, the store's, the queue's.
type log struct {
	reading bool // what is in the files is being carried out

	folder string
	always bool
	logger *slog.Logger
	lock   *os.File
	salt   string
	seed   uint32

	queue struct {
		sync.Mutex
		text []byte
		end  int64  // the position behind text. Positions count bytes since the store was opened
		sum  uint32 // checksum of the last record in text
	}
	safe atomic.Int64 // everything before it is as safe as promised

	file struct {
		sync.Mutex
		*os.File
		number  int
		size    int64
		sum     uint32 // checksum of the last record that is for it; 0: it has none
		unsaid  []byte // has left the queue and is not in the file
		spare   []byte // the queue's next buffer
		written int64  // position
		synced  int64  // position
		since   int64  // bytes of the logs since the last base
		most    int64  // more of them begin a rewrite
	}
	refusing atomic.Pointer[refusal]
	group    struct {
		sync.Mutex
		wrote   sync.Cond
		writing bool // one of those who wait writes
	}

	rewriting sync.Mutex
	rewrites  uint32

	jobs  conc.WaitGroup
	ended chan struct{} // is closed by Close
	close sync.Once
	wake  chan struct{} // a write has failed
	grown chan struct{} // the log is due for a rewrite
}

// refusal is why nothing is written.
type refusal struct {
	err   error
	reply reply
	final bool
}

// append takes the effects of a call, with the store locked, and returns the position behind them.
func (l *log) append(e effects) int64 {
	q := &l.queue
	q.Lock()
	defer q.Unlock()
	before := len(q.text)
	q.text, q.sum = appendRecord(q.text, l.seed, e)
	q.end += int64(len(q.text) - before)
	return q.end
}

// Wait returns once everything up to a position is as safe as the store promises: synced if it always syncs, else in
// the hands of the operating system, which keeps it when the process ends. It is called without the lock. After an
// error nobody knows what will be there after a restart.
func (s *Store) Wait(position int64) error {
	if s.log == nil || s.log.safe.Load() >= position {
		return nil
	}
	return s.log.wait(position)
}

// wait makes one of those who wait write for all. The others wait for the end of that and not for a lock, which they
// would be given one after another while new callers write alone.
func (l *log) wait(position int64) error {
	g := &l.group
	g.Lock()
	defer g.Unlock()
	for l.safe.Load() < position {
		if r := l.refusing.Load(); r != nil {
			return r.err
		}
		if g.writing {
			g.wrote.Wait()
			continue
		}
		g.writing = true
		g.Unlock()
		if l.always {
			runtime.Gosched() // those whose last sync has just ended may come along
		}
		l.file.Lock()
		_ = l.flush() // it refuses
		l.file.Unlock()
		g.Lock()
		g.writing = false
		g.wrote.Broadcast()
	}
	return nil
}

// flush writes what is in the queue. The caller has the file's lock.
func (l *log) flush() error {
	l.take()
	return l.write()
}

// take empties the queue.
func (l *log) take() {
	q := &l.queue
	q.Lock()
	defer q.Unlock()
	if len(q.text) > 0 {
		l.file.sum = q.sum
	}
	if len(l.file.unsaid) > 0 {
		l.file.unsaid = append(l.file.unsaid, q.text...)
		q.text = q.text[:0]
	} else {
		l.file.unsaid, q.text, l.file.spare = q.text, l.file.spare[:0], nil
	}
}

// write writes what has left the queue. What a full disk has not taken stays for the next time.
func (l *log) write() error {
	f := &l.file
	if r := l.refusing.Load(); r != nil && r.final {
		return r.err
	}
	if len(f.unsaid) > 0 {
		err := step("write", f.Name())
		n := 0
		if err == nil {
			n, err = f.WriteAt(f.unsaid, f.size)
		}
		f.size, f.since, f.written = f.size+int64(n), f.since+int64(n), f.written+int64(n)
		if err != nil {
			f.unsaid = f.unsaid[n:]
			return l.refuse(err, false)
		}
		if cap(f.unsaid) <= mostSpare {
			f.spare = f.unsaid[:0]
		}
		f.unsaid = nil
	}
	if l.always && f.synced < f.written {
		if err := syncFile(f.File); err != nil {
			return l.refuse(err, true)
		}
		f.synced = f.written
	}
	l.safe.Store(f.written)
	if r := l.refusing.Load(); r != nil && !r.final {
		l.refusing.Store(nil)
		l.logger.Info("the store can write again", "folder", l.folder)
	}
	if f.since > f.most {
		select {
		case l.grown <- struct{}{}:
		default:
		}
	}
	return nil
}

// refuse begins to refuse writes because of an error: until all is written or, after a failed sync, until a restart.
// Then nobody knows what the disk has: the system may have dropped what it could not write.
func (l *log) refuse(err error, final bool) error {
	now := l.refusing.Load()
	if now != nil && (now.final || !final) {
		return now.err
	}
	until := "; writes go on when it can be written"
	if final {
		until = "; restart when the disk is sound"
	}
	r := &refusal{err: fmt.Errorf("store: write to %s: %w", l.folder, err), final: final}
	r.reply = functions.Error("OOM the store cannot write to " + l.folder + ": " + err.Error() + until)
	l.refusing.Store(r)
	l.logger.Error("the store refuses writes", "folder", l.folder, "error", err, "final", final)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return r.err
}

// full reports whether an error says that a disk has no room.
func full(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// Refuses is the answer to every command and function that writes while nothing can be written, nil if all is well.
func (s *Store) Refuses() *functions.Reply {
	if s.log == nil {
		return nil
	}
	if r := s.log.refusing.Load(); r != nil {
		return &r.reply
	}
	return nil
}

// keep writes and syncs what no caller waits for, until the log is closed.
func (l *log) keep() {
	timer := time.NewTimer(syncEvery)
	defer timer.Stop()
	for {
		select {
		case <-l.ended:
			return
		case <-l.wake:
		case <-timer.C:
			l.file.Lock()
			_ = l.flush() // it refuses
			l.file.Unlock()
			_ = l.sync()
		}
		if r := l.refusing.Load(); r != nil && !r.final {
			timer.Reset(retryEvery)
		} else {
			timer.Reset(syncEvery)
		}
	}
}

// sync syncs what is written. Callers write meanwhile.
func (l *log) sync() error {
	l.file.Lock()
	file, written, synced := l.file.File, l.file.written, l.file.synced
	l.file.Unlock()
	if synced >= written {
		return nil
	}
	err := syncFile(file)
	l.file.Lock()
	defer l.file.Unlock()
	switch {
	case errors.Is(err, os.ErrClosed): // its successor has begun, and it was synced before that
		return nil
	case err != nil:
		return l.refuse(err, true)
	}
	l.file.synced = max(l.file.synced, written)
	return nil
}

// Close writes and syncs everything and gives the folder to others. Calls afterwards change only what is in memory.
func (s *Store) Close() (err error) {
	l := s.log
	if l == nil {
		return nil
	}
	l.close.Do(func() {
		close(l.ended)
		l.jobs.Wait()
		l.rewriting.Lock()
		defer l.rewriting.Unlock()
		l.file.Lock()
		defer l.file.Unlock()
		err = l.flush()
		if err == nil && l.file.synced < l.file.written {
			err = syncFile(l.file.File)
		}
		l.refuseClosed()
		err = errors.Join(err, l.file.Close(), l.lock.Close())
	})
	return err
}

func (l *log) refuseClosed() {
	err := fmt.Errorf("store: %s is closed", l.folder)
	l.refusing.Store(&refusal{err: err, reply: functions.Error("OOM the store is closed"), final: true})
}
