package framelog

import (
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/stream"
)

// what waits for a tailer is bounded in frames and in bytes.
func TestInboxIsBounded(t *testing.T) {
	for name, m := range map[string]message{
		"frames": {frames: make([]stream.Frame, 100), bytes: 1},
		"bytes":  {frames: make([]stream.Frame, 1), bytes: 400 << 10},
	} {
		box := newInbox(nil)
		box.push(m)
		box.push(m)
		if len(box.queue) != 2 || box.news != 0 {
			t.Errorf("%s: two messages fit", name)
		}
		box.push(m)
		box.push(m)
		if messages, n, _ := box.take(); len(messages) != 0 || n != newsBehind {
			t.Errorf("%s: %d messages, news %d; want none and behind", name, len(messages), n)
		}
		box.push(m)
		if messages, n, _ := box.take(); len(messages) != 1 || n != 0 {
			t.Errorf("%s: %d messages, news %d after that; want one", name, len(messages), n)
		}
	}
}

// A glance may be older than what was delivered since; it must not take the tailer back.
func TestPageOfAnOldStateKeepsTheSequence(t *testing.T) {
	at := PlaceOf(stream.Frame{ID: stream.Cursor{Ms: 5}, Sequence: 5})
	page := pageOf(at, nil, engine.StreamMeta{Exists: true, Count: 3, LastSequence: 3, LastID: stream.Cursor{Ms: 3}})
	if page.Next != at {
		t.Errorf("next is %+v, want %+v", page.Next, at)
	}
}
