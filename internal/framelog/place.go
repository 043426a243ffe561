package framelog

import (
	"math"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Place is a place in one attempt's stream. The zero value is before the first frame. One that came from a [Page] or
// a frame also knows how many frames lie before it, which makes the report of a trim gap exact. What follows a place
// in the middle of a run is the rest of that run; the next run is told of before its first frame.
type Place struct {
	id       stream.Cursor
	sequence uint64 // of the last frame at or before id
	durables uint64 // durable frames at or before id
	known    bool   // sequence and durables are meaningful
}

var greatest = stream.Cursor{Ms: math.MaxUint64, Seq: math.MaxUint64}

// PlaceAt is the place of an entry.
func PlaceAt(id stream.Cursor) Place { return Place{id: id, known: id == stream.Cursor{}} }

// PlaceOf is the place of a frame: reading after it continues with the next one.
func PlaceOf(f stream.Frame) Place {
	return Place{id: f.ID, sequence: f.Sequence, durables: f.Durables, known: true}
}

// justBefore is the place between a frame and whatever comes before it.
func justBefore(f stream.Frame) Place {
	p := PlaceOf(f)
	p.sequence -= min(p.sequence, 1)
	if f.Mode == stream.ModeDurable && p.durables > 0 {
		p.durables--
	}
	if p.id.Seq--; f.ID.Seq == 0 {
		p.id.Ms--
	}
	return p
}

// beforeRun is the place between the first frame of a run and whatever comes before it: the same for all who are told
// of the run, whatever they were shown or found stored.
func beforeRun(r stream.Resumption) Place {
	before := r.First.Seq - min(r.First.Seq, 1) // of the producer, as in every id of a frame
	return Place{id: stream.Cursor{Ms: r.First.Ms, Seq: before}, sequence: before, durables: r.Durables, known: true}
}

// orStart is p; the zero value stands for the beginning, before which there is nothing.
func (p Place) orStart() Place {
	p.known = p.known || p.id == stream.Cursor{}
	return p
}

// Cursor names the entry of the place.
func (p Place) Cursor() stream.Cursor { return p.id }

// gap is what lies between two places of a stream and cannot be read any more.
type gap struct {
	trimmed uint64 // durable frames
	missed  uint64 // frames of other modes, as far as both places are known
}

// advance moves c past f and returns what is missing between the two.
func (c *Place) advance(f stream.Frame, meta engine.StreamMeta) gap {
	missing := c.reach(justBefore(f), meta)
	*c = PlaceOf(f)
	return missing
}

// reach moves c on to a known place and returns what is missing between the two. When the place of c is not known,
// every durable frame before the other counts if c lies before the last trimmed one: an upper bound.
func (c *Place) reach(to Place, meta engine.StreamMeta) (missing gap) {
	switch {
	case c.known:
		missing = c.missing(to.sequence, to.durables)
	case meta.Trimmed > 0 && c.id.Compare(meta.TrimmedID) < 0:
		missing.trimmed = to.durables
	}
	*c = to
	return missing
}

// missing is what was never delivered between a known c and a place with so many frames before it.
func (c *Place) missing(frames, durables uint64) (g gap) {
	g.trimmed = durables - min(c.durables, durables)
	all := frames - min(c.sequence, frames)
	g.missed = all - min(g.trimmed, all)
	return g
}
