package crash

import "sync"

// kind is at what a worker is killed.
type kind int

const (
	never  kind = iota
	before      // a write of the worker has left it, and does not reach the store
	after       // a write is done, and its answer does not reach the worker
	moment      // the world outside sees the agent at a certain step
)

func (k kind) String() string {
	return [...]string{"never", "before a write", "after a write", "at a moment"}[k]
}

// point is one place to kill a worker: the n-th of its kind, from 1.
type point struct {
	kind kind
	n    int
}

// watch counts what the first worker of a run does, and kills it at one point.
type watch struct {
	at   point
	kill func() // returns when the process has ended

	mu    sync.Mutex
	seen  map[kind][]string // what was reached, by kind
	fired bool
	over  bool // the worker is dead, or another one works: nothing counts any more
}

// reached counts one more of the kind, and says whether the worker was killed for it, or is dead already.
func (w *watch) reached(k kind, what string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return false
	}
	if w.seen == nil {
		w.seen = map[kind][]string{}
	}
	w.seen[k] = append(w.seen[k], what)
	if k != w.at.kind || len(w.seen[k]) != w.at.n {
		return false
	}
	w.fired, w.over = true, true
	w.kill() // with the lock: nothing goes on before the process has ended
	return true
}

// stop ends the counting, and says whether the worker was killed.
func (w *watch) stop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	return w.fired
}

// last is what was reached last of the kind.
func (w *watch) last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.seen[w.at.kind]; len(s) > 0 {
		return s[len(s)-1]
	}
	return ""
}
