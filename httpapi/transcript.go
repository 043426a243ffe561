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
	Children []childOutput  `json:"children,omitempty" jsonschema:"children whose output is shown in that of the execution"`
	Position string         `json:"position" jsonschema:"pass it to the events as after"`
	More     bool           `json:"more,omitempty" jsonschema:"this is the beginning, of about 4 MiB: what follows are its events after position"`
}

// childOutput is the transcript of a child.
type childOutput struct {
	stream.Child
	Text   string         `json:"text" jsonschema:"the durable frames, one after the other"`
	Frames []stream.Frame `json:"frames"`
	Lost   uint64         `json:"lost" jsonschema:"frames that were gone before they could be read"`
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
	out = transcript{Lost: t.Lost(), Position: string(t.Position()), More: more}
	out.Text, out.Frames = c.redactorOf(id, s.Route).output(&t)
	for child, said := range t.Children() {
		shown, err := c.redactor(child.ID)
		if err != nil { // it was purged meanwhile
			continue
		}
		of := childOutput{Child: child, Lost: said.Lost()}
		of.Text, of.Frames = shown.output(said)
		out.Children = append(out.Children, of)
	}
	return out, nil
}

// output is for the frames of a transcript, and their text.
func (r *redactor) output(t *stream.Transcript) (string, []stream.Frame) {
	var text []byte
	frames := []stream.Frame{}
	for _, f := range t.Frames() {
		f = r.frame(f)
		if f.Mode == stream.ModeDurable {
			text = append(text, sealed.Text(f.Payload)...)
		}
		frames = append(frames, f)
	}
	return string(text), frames
}
