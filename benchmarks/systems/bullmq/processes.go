package bullmq

import (
	"context"
	"slices"
	"sync"
)

// processes are those that were started for a server and that nobody uses just now.
type processes struct {
	ctx    context.Context // of the server; its end kills them
	system System
	url    string

	mu   sync.Mutex
	free []*process
}

// take returns a process that runs the script: one that has run before, if there is one.
func (ps *processes) take(script string) (*process, error) {
	ps.mu.Lock()
	at := slices.IndexFunc(ps.free, func(p *process) bool { return p.script == script })
	if at >= 0 {
		p := ps.free[at]
		ps.free = slices.Delete(ps.free, at, at+1)
		ps.mu.Unlock()
		return p, nil
	}
	ps.mu.Unlock()
	return ps.system.start(ps.ctx, ps.url, script)
}

// give makes a process free that has closed all its connections.
func (ps *processes) give(p *process) {
	p.listen(nil)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.free = append(ps.free, p)
}

// close ends those that are free; all are, once every store is closed.
func (ps *processes) close() {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, p := range ps.free {
		_ = p.close()
	}
	ps.free = nil
}
