package stream

// Resumption tells that an attempt went on in another run: the handler began again, so it repeats what it had not
// recorded as a step. Runs of an attempt that append frames are numbered 1, 2, 3 …; the second and every later one
// has a Resumption.
//
// Who shows the frames of an attempt as one text drops those after Recorded when it meets a Resumption, see
// [Resumption.Repeats]: what follows takes their place.
type Resumption struct {
	Run uint32 `json:"run"` // its number, 2 or more
	// Epoch is of its claim; two runs share one if a wait was answered before it began.
	Epoch uint64 `json:"epoch,omitempty" see:"operator"`
	// Reason says why the run before it stopped: released (its worker handed it back, as a drain does), delayed (the
	// handler asked for a delay), suspended (it waited, or the answer was there already), children (it waited for
	// children, or they had ended already); "" when unknown.
	Reason string `json:"reason,omitempty" jsonschema:"why the run before it stopped"`
	First  Cursor `json:"first,omitzero"` // its first frame
	// Durables is how many durable frames of the attempt come before it.
	Durables uint64 `json:"-"`
	// Recorded is the sequence of the last frame that a recorded step covers, 0 for none. The steps of one run must
	// run one after the other for that to say which frames are repeated, and the frames must be appended inside them.
	Recorded uint64 `json:"recorded" jsonschema:"sequence of the last recorded frame: those after it are repeated"`
}

// repeats tells whether f is a frame of an earlier run that no recorded step covers.
func (r Resumption) repeats(f Frame) bool {
	return f.ID.Compare(r.First) < 0 && f.Sequence > r.Recorded
}
