package offer

import (
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Table is what is known of a partition's routes. The zero value knows nothing. Not safe for concurrent use.
type Table struct {
	Version uint64 // for the next claim; 0 asks for the whole table

	classes map[uint64]engine.Route // a class each, by its own route
	others  map[uint64]engine.Route // other routes that claims brought, not all of them
	whole   int                     // classes when the table was last read as a whole
}

// maxOthers is how many routes of claims are remembered; the reply to each claim has all that it needs.
const maxOthers = 4096

// maxGone is how many classes a table may have beyond twice those that there were when it was last read as a whole.
const maxGone = 16

// Learn merges the table delta of a reply. It tells whether a failover lost rows that were known: then nothing is,
// and what was derived of them is void.
func (t *Table) Learn(reply engine.ClaimReply) (lost bool) {
	if reply.Table < t.Version {
		*t = Table{}
		return true
	}
	if reply.TableFull {
		clear(t.classes)
	}
	if len(t.others) > maxOthers {
		clear(t.others)
	}
	if t.classes == nil {
		t.classes, t.others = map[uint64]engine.Route{}, map[uint64]engine.Route{}
	}
	for _, r := range reply.Others {
		t.others[r.ID] = r
	}
	for _, r := range reply.Routes {
		t.classes[r.ID] = r
	}
	t.Version = reply.Table
	if reply.TableFull {
		t.whole = len(t.classes)
	}
	if len(t.classes) > min(2*t.whole+maxGone, limits.MaxClasses) {
		// nobody tells of rows that went: ask for all there are
		t.Version = 0
	}
	return false
}

// Route is where a claim comes from.
func (t *Table) Route(id uint64) (r engine.Route, known bool) {
	if r, known = t.others[id]; !known {
		r, known = t.classes[id]
	}
	return r, known
}

// Classes is how many are known.
func (t *Table) Classes() int { return len(t.classes) }
