package explain

import (
	"context"
	"fmt"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
)

// maxAsked is how many executions below one that waits for its children are looked at.
const maxAsked = 16

// asks finds the children that wait for an answer, and those further below. What cannot be read now is left out.
func asks(ctx context.Context, from Source, others []engine.Other, path []string, left *int) (all []engine.Asked) {
	for _, o := range others {
		if o.Apart || o.State.Public != flowfabric.Suspended || *left == 0 {
			continue
		}
		*left--
		f, err := from.Explain(ctx, o.ID)
		if err != nil || f.Suspension == nil || f.State.Public != flowfabric.Suspended {
			continue
		}
		down := append(slices.Clone(path), o.Node)
		if waitwords.OfChildren(f.Suspension.Condition) {
			all = append(all, asks(ctx, from, f.Others, down, left)...)
		}
		if keys := openKeys(f.Suspension.Waitpoints); len(keys) > 0 {
			all = append(all, engine.Asked{ID: o.ID, Path: down, Keys: keys})
		}
	}
	return all
}

// asking names up to four of them.
func asking(f engine.Facts) string {
	text := ""
	for i, x := range f.Asks {
		if i == 4 {
			return text + fmt.Sprintf(" So do %d more.", len(f.Asks)-i)
		}
		text += fmt.Sprintf(" %s (%s) waits for an answer (%s).", quote(strings.Join(x.Path, " › ")), x.ID,
			quoted(x.Keys))
	}
	return text
}
