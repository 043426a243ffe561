package failed

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
)

// Most is how many failures are put into groups, the newest.
const Most = 10000

// maxExamples is how many executions of a group are named.
const maxExamples = 3

// Execution is one that failed.
type Execution struct {
	ID      flowfabric.ExecutionID
	Kind    string
	EndedAt time.Time
	flowfabric.Failure
}

// Key names a group in few characters: 16 hexadecimal digits that follow from its kind, category and shape. No shape
// looks like it, because a shape has no digits.
func Key(kind string, category flowfabric.Category, shape string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{kind, string(category), shape}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

// Matches tells whether a failure is of a group, which is named by its [Key], or has a shape, as [Shape] tells it.
func Matches(wanted, kind string, f flowfabric.Failure) bool {
	shape := Shape(f.Message)
	return wanted == shape || len(wanted) == 16 && wanted == Key(kind, f.Category, shape)
}

// Groups are failures in groups, as they are added: the newest first. The zero value has none.
type Groups struct {
	groups map[string]*apiv1.FailureGroup // by key
	shapes map[string]string              // by message
	from   time.Time
}

// Add counts a failure, which ended before those that were added before.
func (g *Groups) Add(x Execution) {
	if g.groups == nil {
		g.groups, g.shapes = map[string]*apiv1.FailureGroup{}, map[string]string{}
	}
	shape, known := g.shapes[x.Message]
	if !known {
		shape = Shape(x.Message)
		g.shapes[x.Message] = shape
	}
	key := Key(x.Kind, x.Category, shape)
	group := g.groups[key]
	if group == nil {
		group = &apiv1.FailureGroup{Key: key, Kind: x.Kind, Category: x.Category, Shape: shape, LastAt: x.EndedAt}
		g.groups[key] = group
	}
	group.Count++
	group.FirstAt, g.from = x.EndedAt, x.EndedAt
	if len(group.Examples) < maxExamples {
		group.Examples = append(group.Examples, x.ID)
	}
}

// All are the groups, the largest one first. more tells that there are older failures, which were not added.
func (g *Groups) All(more bool) apiv1.Failures {
	out := apiv1.Failures{Items: make([]apiv1.FailureGroup, 0, len(g.groups)), More: more, From: g.from}
	for _, group := range g.groups {
		out.Items = append(out.Items, *group)
	}
	slices.SortFunc(out.Items, func(a, b apiv1.FailureGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.LastAt.Compare(a.LastAt), cmp.Compare(a.Key, b.Key))
	})
	return out
}
