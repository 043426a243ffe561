package agenttest

import (
	"context"
	"fmt"
	"math"
	"strconv"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
)

// Score is what a person, or a program that judges, thinks of an execution, also long after it has ended. It is stored
// as tags: score.NAME has the number, and score.NAME.text the text. So lists and filters of tags find it, and it is
// gone when the execution is purged.
type Score struct {
	Name  string  // words of a-z, 0-9 and _, joined by dots, each beginning with a letter; at most 53 bytes
	Value float64 // finite
	Text  string  // at most 256 bytes; "" for none
}

// Set stores the score, in the place of one of the same name. It may be called at any time and concurrently.
//
// Errors: those of admin.Admin.SetTags, flowfabric.ErrInvalidInput also for a number that is not finite.
func (s Score) Set(ctx context.Context, a *admin.Admin, id flowfabric.ExecutionID,
	opts ...flowfabric.ActOption) error {
	if math.IsNaN(s.Value) || math.IsInf(s.Value, 0) {
		return fmt.Errorf("agenttest: %w: score %.80q is %v, want a finite number", flowfabric.ErrInvalidInput, s.Name,
			s.Value)
	}
	key, set := "score."+s.Name, map[string]string{}
	set[key] = strconv.FormatFloat(s.Value, 'f', -1, 64)
	if s.Text == "" {
		return a.SetTags(ctx, id, set, []string{key + ".text"}, opts...)
	}
	set[key+".text"] = s.Text
	return a.SetTags(ctx, id, set, nil, opts...)
}
