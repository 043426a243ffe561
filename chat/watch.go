package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// heartbeat is how long a stream stays silent before it sends a comment.
const heartbeat = 15 * time.Second

// Events after which a front end has something to read again.
var changing = []kind{kindSaid, kindBegan, kindAsked, kindQuestion, kindAnswered, kindStopped, kindDropped, kindIdle,
	kindEnded}

// seenNow is an event of watch: enough to know that something has changed, without the text of messages.
type seenNow struct {
	Messages int   `json:"messages"`
	Busy     bool  `json:"busy"` // an answer is being made
	State    doing `json:"state"`
	Asks     int   `json:"asks"` // open questions
}

func (g glance) seen() seenNow {
	return seenNow{g.messages, g.doing == doingAnswer, g.doing, len(g.asks)}
}

// watch sends an event for each change that another front end may have made: a message, the beginning or the end of a
// turn, a question, an answer.
func (h *Handler) watch(c *request) error {
	room, err := h.visit(c)
	if err != nil {
		return err
	}
	f := room.follow(place{now: true})
	c.streams()
	c.w.WriteHeader(http.StatusOK)
	if c.q.Method == http.MethodHead {
		return nil
	}
	text := []byte("retry: 1000\n\n")
	for n := 1; ; n++ {
		now := room.glance().seen()
		data, err := json.Marshal(now)
		if err != nil || !send(c.w, fmt.Appendf(text, "id: %d\ndata: %s\n\n", n, data)) {
			return nil
		}
		text = nil
		err = h.waitChange(c, f)
		deleted := errors.Is(err, flowfabric.ErrNotFound) || errors.Is(err, flowfabric.ErrResultPurged)
		switch {
		case err == nil:
		case deleted && now.State != doingEnded:
			send(c.w, []byte(`data: {"messages":0,"busy":false,"state":"ended","asks":0}`+"\n\n"))
			return nil
		default: // until a request replays it
			send(c.w, []byte("retry: 5000\n\n"))
			return nil
		}
	}
}

// waitChange waits until something has changed. An error says that there is nothing more to wait for, or nobody.
func (h *Handler) waitChange(c *request, f *follower) error {
	for {
		ctx, stop := context.WithTimeout(c.ctx(), heartbeat)
		events, err := f.next(ctx)
		stop()
		switch {
		case err == nil && slices.ContainsFunc(events, func(t *told) bool { return slices.Contains(changing, t.kind) }):
			return nil
		case err == nil:
		case !errors.Is(err, context.DeadlineExceeded) || c.ctx().Err() != nil:
			return err
		case !send(c.w, []byte(": \n\n")):
			return io.EOF
		}
	}
}

// send writes a piece of a stream at once.
func send(w http.ResponseWriter, text []byte) bool {
	control := http.NewResponseController(w)
	_ = control.SetWriteDeadline(time.Now().Add(2 * heartbeat)) // not every writer knows how
	if _, err := w.Write(text); err != nil {
		return false
	}
	return control.Flush() == nil
}
