package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// What programs store is sealed where a call is made, and opened where an answer is read. What cannot be opened stays
// sealed, and whoever needs it says so: a claim must not fail because of an input that its worker cannot read.

// Box seals and opens for this engine; nil if nothing is encrypted.
func (e *Engine) Box() *sealed.Box { return e.cfg.Box }

// seal returns a payload as it is stored. A cipher that fails now may work later, so the error is one that calls are
// repeated after.
func (e *Engine) seal(op string, plain []byte) ([]byte, error) {
	if e.cfg.Box == nil {
		return plain, nil
	}
	data, err := e.cfg.Box.Seal(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", op, flowfabric.ErrTransport, err)
	}
	return data, nil
}

// text is a text for people as this process may read it.
func (e *Engine) text(s string) string { return e.cfg.Box.OpenText(s) }

// texts opens those of a snapshot.
func (e *Engine) texts(s *Snapshot) {
	for _, text := range []*string{&s.Failure.Message, &s.CancelReason, &s.Progress.Message} {
		*text = e.text(*text)
	}
	for i := range s.AttemptLog {
		s.AttemptLog[i].Message = e.text(s.AttemptLog[i].Message)
	}
}

// opened opens payloads by their names, in place.
func (e *Engine) opened(m map[string][]byte) {
	if e.cfg.Box == nil {
		return
	}
	for name, data := range m {
		if sealed.Is(data) {
			m[name] = e.cfg.Box.Shown(data)
		}
	}
}

// sealItems returns new executions as they are stored, and which of them do not fit or could not be sealed.
func (e *Engine) sealItems(ctx context.Context, items []NewExecution) (_ []NewExecution, failed map[int]error) {
	if e.cfg.Box != nil {
		items = slices.Clone(items)
	}
	for i := range items {
		x := &items[i]
		err := e.fits(ctx, x.Namespace, x.Kind, x.Payload, x.Type)
		if err != nil {
			err = fmt.Errorf("ff_create_execution: %w", err)
		} else if e.cfg.Box != nil && !x.AsStored {
			x.Payload, err = e.seal("ff_create_execution", x.Payload)
		}
		if err == nil {
			continue
		}
		if failed == nil {
			failed = map[int]error{}
		}
		failed[i] = err
	}
	return items, failed
}

// sealMembers returns members of a flow as they are stored, if all of them fit.
func (e *Engine) sealMembers(ctx context.Context, op string, members []FlowMember) (_ []FlowMember, err error) {
	if e.cfg.Box != nil {
		members = slices.Clone(members)
	}
	for i := range members {
		m := &members[i]
		if err := e.fits(ctx, m.Namespace, m.Kind, m.Payload, nil); err != nil {
			if wrong, ok := errors.AsType[*kindschema.Misfit](err); ok {
				wrong.Node = m.Node
			}
			return nil, fmt.Errorf("%s: %w", op, err)
		}
		if e.cfg.Box != nil {
			if m.Payload, err = e.seal(op, m.Payload); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// sealFrames returns frames as they are stored, and leaves those of the caller alone.
func (e *Engine) sealFrames(frames []stream.Frame) (_ []stream.Frame, err error) {
	if e.cfg.Box == nil {
		return frames, nil
	}
	frames = slices.Clone(frames)
	for i := range frames {
		f := &frames[i]
		if f.Payload, err = e.seal("ff_append_frames", f.Payload); err == nil {
			f.Document, err = e.seal("ff_append_frames", f.Document)
		}
		if err != nil {
			return nil, err
		}
	}
	return frames, nil
}

// OpenFrames opens frames that were just read, in place, and marks those that stay sealed.
func (e *Engine) OpenFrames(frames []stream.Frame) {
	for i := range frames {
		if f := &frames[i]; sealed.Is(f.Payload) {
			f.Payload = e.cfg.Box.Shown(f.Payload)
			if f.Encrypted = sealed.Is(f.Payload); f.Encrypted {
				f.Encoding = stream.Bytes
			}
		}
	}
}

func (e *Engine) sealSignal(s suspend.SentSignal) (_ suspend.SentSignal, err error) {
	s.Payload, err = e.seal("signal", s.Payload)
	return s, err
}

// OpenResult opens what a wait was answered, in place.
func OpenResult(b *sealed.Box, r *suspend.Result) {
	if r == nil {
		return
	}
	r.Reason = b.OpenText(r.Reason)
	for i := range r.Signals {
		r.Signals[i].Payload = b.Shown(r.Signals[i].Payload)
	}
}

// OpenMessages opens messages, in place.
func OpenMessages(b *sealed.Box, list []suspend.Message) {
	for i := range list {
		list[i].Payload = b.Shown(list[i].Payload)
	}
}

// sealWhy seals why a change is made, in a note. The trail keeps all else of it as it is.
func (e *Engine) sealWhy(function, note string) string {
	if e.cfg.Box == nil || unsealed[function] {
		return note
	}
	most := limits.MaxReason
	if function == "ff_hold_execution" {
		most = limits.MaxDeadReason // all that it keeps
	}
	if n, ok := trail.Parse(note[1:]); ok && n.Why != "" {
		n.Why = e.cfg.Box.SealText(n.Why, most)
		return n.Text()
	}
	return note
}

// unsealed are the calls of operators whose reasons are about processes, partitions and gates, and stay readable; the
// library cuts those to fewer bytes than a sealed one has.
var unsealed = map[string]bool{"ff_mark_dead": true, "ff_freeze_partition": true, "ff_change_usage": true}
