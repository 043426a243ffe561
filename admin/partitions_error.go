package admin

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

// endless is later than anything that ends by itself: the server files waitpoints without an end under the year 2286.
const endless = 9_999_999_999_999

// partitionErrors puts the errors of many partitions into few words: one line for each kind, with the first of its
// kind.
type partitionErrors struct {
	groups []*partitionGroup
}

type partitionGroup struct {
	code    string
	of      []uint16 // partitions
	err     error    // of the first of them
	kid     string   // of ErrState, with what follows
	open    int
	needed  int64
	endless bool
}

func (e *partitionErrors) add(partition uint16, err error) {
	code := flowfabric.CodeOf(err)
	var g *partitionGroup
	for _, known := range e.groups {
		if known.code == code {
			g = known
		}
	}
	if g == nil {
		g = &partitionGroup{code: code, err: err}
		e.groups = append(e.groups, g)
	}
	g.of = append(g.of, partition)
	if refused, ok := errors.AsType[*flowfabric.Error](err); ok && errors.Is(err, denied.GraceTooShort) {
		open, _ := strconv.Atoi(denied.Slot(refused, 1)) // 0 for a reply that this library does not know
		needed, _ := strconv.ParseInt(denied.Slot(refused, 2), 10, 64)
		g.kid = denied.Slot(refused, 0)
		g.open += open
		if needed >= endless {
			g.endless = true
		} else {
			g.needed = max(g.needed, needed)
		}
	}
}

// sum is nil when nothing was added.
func (e *partitionErrors) sum(verb string, partitions int) error {
	if len(e.groups) == 0 {
		return nil
	}
	var lines []string
	all := &PartitionsError{Total: partitions}
	for _, g := range e.groups {
		lines = append(lines, fmt.Sprintf("%d of %d partitions: %s", len(g.of), partitions, g))
		all.Failed += len(g.of)
		all.causes = append(all.causes, g.err)
	}
	all.text = verb + ": " + strings.Join(lines, "; ")
	return all
}

func (g *partitionGroup) String() string {
	if !errors.Is(g.err, denied.GraceTooShort) {
		return fmt.Sprintf("%v (%s)", g.err, g.names())
	}
	until := "some of them have no end"
	if !g.endless {
		until = "the last one until " + time.UnixMilli(g.needed).UTC().Format(time.RFC3339)
	}
	return fmt.Sprintf(
		"%s: waitpoints open under kid %q: %d, %s; rotate with a longer grace, or with Force and then admin.ReissueToken for each",
		g.code, g.kid, g.open, until)
}

// names lists the partitions of the group, the first sixteen of them.
func (g *partitionGroup) names() string {
	if len(g.of) == 1 {
		return fmt.Sprintf("partition %d", g.of[0])
	}
	var b strings.Builder
	b.WriteString("partitions")
	for i, p := range g.of {
		if i == 16 {
			fmt.Fprintf(&b, " and %d more", len(g.of)-i)
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", p)
	}
	return b.String()
}

// PartitionsError is returned by a call to all partitions when some of them failed. It matches what any of these
// answered; the others have done what was asked, and the call may be repeated.
type PartitionsError struct {
	Failed int // partitions that failed, at least 1
	Total  int // partitions that were asked

	text   string
	causes []error
}

func (e *PartitionsError) Error() string { return e.text }

// Unwrap returns one error for each kind of answer.
func (e *PartitionsError) Unwrap() []error { return e.causes }

// foldAnswers sums up what partitions answered to one change.
func foldAnswers[R any](verb string, answers []engine.InPartition[R]) error {
	var failed partitionErrors
	for _, a := range answers {
		if a.Err != nil {
			failed.add(a.Partition, a.Err)
		}
	}
	return failed.sum(verb, len(answers))
}
