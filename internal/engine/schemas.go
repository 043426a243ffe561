package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/kindschema"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/internal/wire"
)

// For how long a schema is believed before a submit has it looked up again, in the background; of how many kinds one
// is remembered; and how old one may be that refuses an input.
const (
	schemaBelieved = 10 * time.Second
	schemasKnown   = 4096
	schemaRefuses  = time.Second
)

// allSpaces is the namespace of workers that serve all of them.
const allSpaces = "*"

// schemas remembers those of kinds. Safe for concurrent use.
type schemas struct {
	mu    sync.RWMutex
	known map[schemaPlace]schemaKnown
}

type schemaPlace struct{ namespace, kind string }

type schemaKnown struct {
	schema   *kindschema.Schema // nil: nothing is said of the kind
	text     string             // of the schema
	versions [2]string          // of the namespace, and of all namespaces
	read     time.Time
	reading  bool
}

// begin returns what is known of a place, and whether the caller is to read it: at once if it is not known, in the
// background if it is old.
func (s *schemas) begin(at schemaPlace, now time.Time) (k schemaKnown, known, read bool) {
	s.mu.RLock()
	k, known = s.known[at]
	s.mu.RUnlock()
	if known && (k.reading || now.Sub(k.read) < schemaBelieved) {
		return k, true, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if k, known = s.known[at]; known && !k.reading {
		k.reading = true
		s.known[at] = k
		return k, true, true
	}
	return k, known, !known
}

func (s *schemas) keep(at schemaPlace, k schemaKnown) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil || len(s.known) >= schemasKnown {
		s.known = map[schemaPlace]schemaKnown{}
	}
	s.known[at] = k
}

// fits refuses an input that does not fit the schema that workers gave of its kind: a [*kindschema.Misfit]. This is
// the one place where inputs are checked. A schema is advice: no schema, or none that can be read, refuses nothing.
// A submit waits for the read of a schema if it is the first of its kind here, or would be refused by an old one. An
// input that was encoded from the type that the schema was made of fits: own is the schema of its type, if it is known.
func (e *Engine) fits(ctx context.Context, namespace, kind string, input []byte, own json.RawMessage) error {
	at, now := schemaPlace{namespace, kind}, time.Now()
	k, known, read := e.schemas.begin(at, now)
	switch {
	case !known:
		k = e.readSchema(ctx, at, schemaKnown{})
	case read:
		if !e.dials.start(func() { e.readSchema(e.dials.life, at, k) }) {
			return nil // the engine is closed
		}
	}
	if k.schema == nil || own != nil && string(own) == k.text {
		return nil
	}
	if sealed.Is(input) {
		if input = e.cfg.Box.Shown(input); sealed.Is(input) {
			return nil // with a key that this process does not have
		}
	}
	err := k.schema.Check(kind, input)
	if err == nil || now.Sub(k.read) < schemaRefuses {
		return err
	}
	return e.readSchema(ctx, at, k).schema.Check(kind, input)
}

// readSchema reads a schema unless the versions are those of the one that is known.
func (e *Engine) readSchema(ctx context.Context, at schemaPlace, was schemaKnown) schemaKnown {
	k := was
	k.read, k.reading = time.Now(), false
	defer func() { e.schemas.keep(at, k) }()
	fields := []string{"", at.kind}
	if !was.read.IsZero() {
		fields = fields[:1]
	}
	got, ok := e.schemaFields(ctx, at, fields)
	if !ok || got[0][0] == was.versions[0] && got[1][0] == was.versions[1] {
		return k
	}
	if len(fields) == 1 {
		if got, ok = e.schemaFields(ctx, at, []string{"", at.kind}); !ok {
			return k
		}
	}
	k.versions, k.schema, k.text = [2]string{got[0][0], got[1][0]}, nil, ""
	for _, fields := range got {
		if fields[1] == "" {
			continue
		}
		if pair, err := kindschema.Parse(fields[1]); err == nil && pair.Input != nil {
			k.schema, _ = kindschema.Compile(pair.Input) // by a newer version of this library, perhaps
			k.text = string(pair.Input)
		}
		break
	}
	return k
}

// schemaFields reads fields of the schemas of a namespace, and of those of all, in one round trip.
func (e *Engine) schemaFields(ctx context.Context, at schemaPlace, fields []string) (got [2][]string, ok bool) {
	builds := make([]func(rueidis.Client) rueidis.Completed, 2)
	for i, namespace := range []string{at.namespace, allSpaces} {
		builds[i] = func(c rueidis.Client) rueidis.Completed {
			return c.B().Hmget().Key(e.schemasOf(namespace)).Field(fields...).Build()
		}
	}
	for i, answer := range e.plainAll(ctx, builds) {
		list, err := answer.AsStrSlice()
		if err != nil || len(list) != len(fields) {
			return got, false
		}
		got[i] = list
	}
	return got, true
}

// schemasOf is the key of the schemas of a namespace.
func (e *Engine) schemasOf(namespace string) string {
	return keys.Of(e.schemaPartition(namespace)).Schemas(namespace)
}

func (e *Engine) schemaPartition(namespace string) uint16 {
	return ids.SchedulePartition(namespace, e.partitions)
}

// PutSchemas says what the inputs and results of kinds in a namespace are, "*" for all that have none of their own
// (lua/worker/ff_put_schemas.lua); a pair that says nothing forgets what was said of its kind. The schemas must have
// been checked ([kindschema.Pair.Compact]). The call may be repeated. ErrLimit above 256 kinds of a namespace.
func (e *Engine) PutSchemas(ctx context.Context, namespace string, all map[string]kindschema.Pair) error {
	var batch []wire.PutSchemasKind
	size := 0
	send := func() error {
		if len(batch) == 0 {
			return nil
		}
		_, _, err := ask[wire.PutSchemasReply](ctx, e, e.schemaPartition(namespace),
			wire.PutSchemas{Namespace: namespace, Kinds: batch})
		batch, size = nil, 0
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		text := kindschema.Text(all[kind])
		if size+len(text) > limits.MaxCallBytes || len(batch) == limits.MaxSchemas {
			if err := send(); err != nil {
				return err
			}
		}
		batch, size = append(batch, wire.PutSchemasKind{Kind: kind, Schema: text}), size+len(text)
	}
	return send()
}

// schemaPage is how many schemas are read at once: 4 MiB at most.
const schemaPage = 32

// Schemas are those of a namespace, with those of all namespaces for kinds that have none of their own.
func (e *Engine) Schemas(ctx context.Context, namespace string) (map[string]kindschema.Pair, error) {
	out := map[string]kindschema.Pair{}
	for _, from := range []string{allSpaces, namespace} {
		key := e.schemasOf(from)
		kinds, err := e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
			return c.B().Hkeys().Key(key).Build()
		}).AsStrSlice()
		if err != nil {
			return nil, CallError("read schemas", err)
		}
		kinds = slices.DeleteFunc(kinds, func(kind string) bool { return kind == "" })
		for part := range slices.Chunk(kinds, schemaPage) {
			texts, err := e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
				return c.B().Hmget().Key(key).Field(part...).Build()
			}).AsStrSlice()
			if err != nil {
				return nil, CallError("read schemas", err)
			}
			for i, text := range texts {
				if pair, err := kindschema.Parse(text); err == nil && kindschema.Text(pair) != "" {
					out[part[i]] = pair
				}
			}
		}
	}
	return out, nil
}
