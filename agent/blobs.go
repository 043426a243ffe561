package agent

import (
	"context"
	"fmt"
	"slices"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/digest"
)

// maxInline is how many bytes a part of a transcript has at most, if there is a store for more.
const maxInline = 1 << 10

// shelf is where a run has its blobs.
type shelf struct {
	store   blob.Store        // nil: nowhere
	pending map[string][]byte // of messages of the user, that need not be stored yet
}

// shelve cleans parts and puts references in the place of large data, which goes into data.
func (s *shelf) shelve(parts []Part, data map[string][]byte) []Part {
	parts = cleaned(parts)
	for i := range parts {
		if p := &parts[i]; s.store != nil && len(p.Data) > maxInline {
			p.Blob = blob.Ref(p.Data)
			data[p.Blob], p.Data = p.Data, nil
		}
	}
	return parts
}

// hold shelves what the user said. It is stored before something that is recorded refers to it, see flush: a run that
// only recalls does not store it again.
func (s *shelf) hold(m Message) Message {
	m.Parts = s.shelve(m.Parts, s.pending)
	return m
}

// flush stores what is pending.
func (s *shelf) flush(ctx context.Context) error {
	err := s.put(ctx, s.pending)
	if err == nil {
		clear(s.pending)
	}
	return err
}

// stored forgets what is pending of messages that were recorded.
func (s *shelf) stored(messages []Message) {
	for _, m := range messages {
		for _, p := range m.Parts {
			delete(s.pending, p.Blob)
		}
	}
}

// put stores data, several at once.
func (s *shelf) put(ctx context.Context, data map[string][]byte) error {
	if len(data) == 0 {
		return nil
	}
	p := pool.New().WithMaxGoroutines(readers).WithContext(ctx).WithCancelOnError().WithFirstError()
	for ref, bytes := range data {
		p.Go(func(ctx context.Context) error {
			got, err := s.store.Put(ctx, bytes)
			if err == nil && got != ref {
				err = fmt.Errorf("%w: Config.Blobs answered %.80q for %s", flowfabric.ErrInvalidInput, got, ref)
			}
			return err
		})
	}
	if err := p.Wait(); err != nil {
		return lasting(fmt.Errorf("agent: store a part of a message: %w", err))
	}
	return nil
}

// fetch gives the parts of messages their bytes. Messages is changed, what is in it is not.
func (s *shelf) fetch(ctx context.Context, messages []Message) error {
	if !slices.ContainsFunc(messages, func(m Message) bool { return slices.ContainsFunc(m.Parts, Part.away) }) {
		return nil
	}
	got, err := s.read(ctx, messages)
	if err != nil {
		return lasting(err)
	}
	for i, m := range messages {
		messages[i].Parts = slices.Clone(m.Parts)
		for j := range m.Parts {
			if p := &messages[i].Parts[j]; p.away() {
				p.Data = got[p.Blob]
				p.Size = int64(len(p.Data))
				*p = p.typed()
			}
		}
	}
	return nil
}

// away says that the bytes of a part are in the store.
func (p Part) away() bool { return p.Blob != "" && len(p.Data) == 0 }

// read reads what messages refer to, each blob once, several at once.
func (s *shelf) read(ctx context.Context, messages []Message) (map[string][]byte, error) {
	type read struct {
		ref  string
		data []byte
	}
	got := map[string][]byte{}
	all := pool.NewWithResults[read]().WithMaxGoroutines(readers).WithContext(ctx).WithCancelOnError().
		WithFirstError()
	for i, m := range messages {
		for j, p := range m.Parts {
			if _, asked := got[p.Blob]; asked || !p.away() {
				continue
			}
			got[p.Blob] = s.pending[p.Blob]
			if got[p.Blob] != nil {
				continue
			}
			all.Go(func(ctx context.Context) (read, error) {
				data, err := s.get(ctx, p.Blob)
				if err != nil {
					err = fmt.Errorf("agent: Messages[%d].Parts[%d]: %w", i, j, err)
				}
				return read{p.Blob, data}, err
			})
		}
	}
	reads, err := all.Wait()
	for _, r := range reads {
		got[r.ref] = r.data
	}
	return got, err
}

func (s *shelf) get(ctx context.Context, ref string) ([]byte, error) {
	if s.store == nil {
		return nil, handler.Permanent(fmt.Errorf("it is a blob, and %w (%w)", errNoBlobs, flowfabric.ErrInvalidInput))
	}
	return s.store.Get(ctx, ref)
}

// lasting marks what another attempt does not repair.
func lasting(err error) error {
	if digest.Final(err) {
		return handler.Permanent(err)
	}
	return err
}
