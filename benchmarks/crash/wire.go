package crash

import (
	"bufio"
	"net"
	"path/filepath"
	"sync"

	"github.com/sourcegraph/conc"
)

// wire is between the workers of a run and the store. It passes one request of a connection on after the other, and
// asks the watch at each that may write: before it is passed on, and when its answer has come but not gone on.
//
//	worker ──request──▶ before a write? ──▶ store
//	worker ◀──────────── after a write? ◀──answer──
type wire struct {
	listener net.Listener
	store    string // path of its socket
	watch    *watch
	talk     func() dialect
	running  conc.WaitGroup

	mu   sync.Mutex
	open []*link
}

// dialect reads one connection of a protocol.
type dialect interface {
	// request reads what the worker sends until it waits for an answer. writes is the name of a request that may write,
	// else "". answered is whether there will be an answer.
	request(r *bufio.Reader) (raw []byte, writes string, answered bool, err error)
	// reply reads what the store sends, and says whether that ends an answer.
	reply(r *bufio.Reader) (raw []byte, ends bool, err error)
}

// openWire listens at path.
func openWire(path, store string, w *watch, talk func() dialect) (*wire, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	out := &wire{listener: listener, store: store, watch: w, talk: talk}
	out.running.Go(out.accept)
	return out, nil
}

// close ends all connections.
func (w *wire) close() {
	_ = w.listener.Close()
	w.cut()
	w.running.Wait()
}

// cut tells the store that all workers so far are gone, as it learns it when their process dies, and waits until what
// had reached it is done.
func (w *wire) cut() {
	w.mu.Lock()
	open := w.open
	w.open = nil
	w.mu.Unlock()
	for _, l := range open {
		_ = l.worker.Close()
		_ = l.store.CloseWrite()
	}
	for _, l := range open {
		<-l.ended
	}
}

func (w *wire) accept() {
	for {
		worker, err := w.listener.Accept()
		if err != nil {
			return
		}
		store, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: w.store, Net: "unix"})
		if err != nil {
			_ = worker.Close()
			continue
		}
		l := &link{watch: w.watch, dialect: w.talk(), worker: worker, store: store, expected: make(chan string, 1),
			answered: make(chan struct{}, 1), ended: make(chan struct{})}
		w.mu.Lock()
		w.open = append(w.open, l)
		w.mu.Unlock()
		w.running.Go(l.requests)
		w.running.Go(l.replies)
	}
}

// link is one connection.
type link struct {
	watch    *watch
	dialect  dialect
	worker   net.Conn
	store    *net.UnixConn
	expected chan string   // the request that is not answered yet: its name if it may write
	answered chan struct{} // its answer has been passed on
	ended    chan struct{} // no answers come any more
}

func (l *link) requests() {
	defer l.store.CloseWrite() // what reached the store before is still done
	defer l.worker.Close()
	r := bufio.NewReader(l.worker)
	for {
		raw, writes, answered, err := l.dialect.request(r)
		if err != nil || writes != "" && l.watch.reached(before, writes) {
			return
		}
		if answered {
			l.expected <- writes
		}
		if _, err := l.store.Write(raw); err != nil {
			return
		}
		if !answered {
			continue
		}
		select {
		case <-l.answered:
		case <-l.ended:
			return
		}
	}
}

func (l *link) replies() {
	defer close(l.ended)
	defer l.worker.Close()
	defer l.store.Close()
	r := bufio.NewReader(l.store)
	for {
		raw, ends, err := l.dialect.reply(r)
		if err != nil {
			return
		}
		answers := false
		if ends {
			select {
			case writes := <-l.expected:
				answers = true
				if writes != "" && l.watch.reached(after, writes) {
					return
				}
			default: // nobody asked for it: a message of a subscription
			}
		}
		_, _ = l.worker.Write(raw) // a worker that is gone has closed; the store's end tells when all is done
		if answers {
			l.answered <- struct{}{}
		}
	}
}

// socketOf is the address of a socket in the form of a driver's URL.
func socketOf(dir string) (path, url string) {
	path = filepath.Join(dir, "w.sock")
	return path, "unix://" + path
}
