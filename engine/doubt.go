package engine

import (
	"context"
	"sync"
	"sync/atomic"
)

// doubts are the partitions whose last answer could not be read, or said that an older library gave it. While versions are
// mixed a server that lost its library may have got an older one, from whichever process met it first: that answers most
// calls as ever, and some in the shape of its time. So before the next call to such a partition the library is looked at
// again.
type doubts struct {
	some atomic.Int32 // len(roots), so that calls need no lock
	sync.Mutex
	roots map[string]bool
}

func (d *doubts) add(root string) {
	d.Lock()
	defer d.Unlock()
	if d.roots == nil {
		d.roots = map[string]bool{}
	}
	d.roots[root] = true
	d.some.Store(int32(len(d.roots)))
}

// take reports whether a partition is doubted, and trusts it again.
func (d *doubts) take(root string) bool {
	if d.some.Load() == 0 {
		return false
	}
	d.Lock()
	defer d.Unlock()
	doubted := d.roots[root]
	delete(d.roots, root)
	d.some.Store(int32(len(d.roots)))
	return doubted
}

// resolve compares the library of a doubted partition's node with ours, and replaces an older one. If that fails, the
// call that follows says why.
func (e *Engine) resolve(ctx context.Context, root string) {
	if e.scripts != nil || !e.doubts.take(root) {
		return
	}
	e.loading.Lock()
	defer e.loading.Unlock()
	if err := e.loadFor(ctx, root); err != nil {
		e.doubts.add(root)
	}
}
