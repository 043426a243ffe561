package httpapi

import (
	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/stream"
)

type transcript struct {
	Text     string         `json:"text" jsonschema:"the durable frames, one after the other"`
	Frames   []stream.Frame `json:"frames"`
	Lost     uint64         `json:"lost" jsonschema:"frames that were gone before they could be read"`
	Position string         `json:"position" jsonschema:"pass it to the events as after"`
	More     bool           `json:"more,omitempty" jsonschema:"this is the beginning, of about 4 MiB: what follows are its events after position"`
}

// maxTranscript is how many bytes of payloads are read for a transcript, about.
const maxTranscript = 4 << 20

func (c *call) transcript(id flowfabric.ExecutionID) (out transcript, err error) {
	s, err := c.h.client.Execution(id).Get(c.ctx())
	if err != nil {
		return out, err
	}
	var t stream.Transcript
	size, more := 0, false
	for e, err := range c.h.client.Execution(id).Tail(c.ctx(), client.Stored()) {
		if err != nil {
			return out, err
		}
		if more = size >= c.h.most; more {
			break
		}
		t.Add(e)
		size += len(e.Frame.Payload)
	}
	shown := c.redactorOf(id, s.Route)
	out = transcript{Frames: []stream.Frame{}, Lost: t.Lost(), Position: string(t.Position()), More: more}
	var text []byte
	for _, f := range t.Frames() {
		f = shown.frame(f)
		if f.Mode == stream.ModeDurable {
			text = append(text, sealed.Text(f.Payload)...)
		}
		out.Frames = append(out.Frames, f)
	}
	out.Text = string(text)
	return out, nil
}
