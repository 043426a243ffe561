package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/keys"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/stream"
)

// Change is an entry of an audit trail.
type Change struct {
	trail.Note
	At     time.Time // by the server's clock
	id     stream.Cursor
	source int
}

// Position orders the entries of all sources.
func (c Change) Position() Position {
	return Position{Score: int64(c.id.Ms), Member: fmt.Sprintf("%020d %06d", c.id.Seq, c.source)}
}

// TrailSources is how many trails there are: one for each partition of executions and of gates.
func (e *Engine) TrailSources() int { return len(e.roots) + len(e.gates) }

// trailRoot is the root of a source.
func (e *Engine) trailRoot(source int) string {
	for _, roots := range [][]string{e.roots, e.gates} {
		if source < len(roots) {
			return roots[source]
		}
		source -= len(roots)
	}
	return ""
}

// ReadTrail reads up to limit entries (1..1,000) of one source that lie before a position, the newest first; the zero
// position is behind the newest. Plain XREVRANGE. What cannot be read is left out.
func (e *Engine) ReadTrail(ctx context.Context, source int, before Position,
	limit int) (changes []Change, more bool, err error) {
	if source < 0 || source >= e.TrailSources() || limit < 1 || limit > 1000 {
		return nil, false, fmt.Errorf("read trail: %w: source %d of %d, limit %d, want 1..1000",
			flowfabric.ErrInvalidInput, source, e.TrailSources(), limit)
	}
	end := "+"
	if before != (Position{}) {
		seq, other, _ := strings.Cut(before.Member, " ")
		n, err := strconv.ParseUint(seq, 10, 64)
		at, err2 := strconv.Atoi(other)
		if err != nil || err2 != nil || before.Score < 0 {
			return nil, false, fmt.Errorf("read trail: %w: no position", flowfabric.ErrInvalidInput)
		}
		end = strconv.FormatInt(before.Score, 10) + "-" + strconv.FormatUint(n, 10)
		if source >= at {
			end = "(" + end
		}
	}
	key := keys.Partition(e.trailRoot(source)).Trail()
	entries, err := e.plain(ctx, func(c rueidis.Client) rueidis.Completed {
		return c.B().Xrevrange().Key(key).End(end).Start("-").Count(int64(limit)).Build()
	}).AsXRange()
	if err != nil {
		return nil, false, CallError("read trail", err)
	}
	for _, entry := range entries {
		id, err := ParseStreamID(entry.ID)
		at, text, _ := strings.Cut(entry.FieldValues["n"], " ")
		ms, err2 := strconv.ParseInt(at, 10, 64)
		note, ok := trail.Parse(text)
		note.Why = e.text(note.Why)
		if err == nil && err2 == nil && ok {
			changes = append(changes, Change{Note: note, At: time.UnixMilli(ms).UTC(), id: id, source: source})
		}
	}
	return changes, len(entries) == limit, nil
}
