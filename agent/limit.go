package agent

import (
	"fmt"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// categoryLimit is the category of an execution that failed because its agent reached a limit; not retried.
const categoryLimit = "agent_limit"

// What a [LimitError] is about.
const (
	limitTurns    = "turns"
	limitTokens   = "tokens"
	limitTime     = "time"
	limitChildren = "children"
	limitDepth    = "depth"
)

// errUnapproved is why a run ends for which nobody approved a call.
var errUnapproved = fmt.Errorf("%w: nobody approved it", flowfabric.ErrWaitTimeout)

// LimitError says which limit of a [Config] ended a run: What is turns, tokens or time, and Limit its value,
// nanoseconds for time. A handler that returns it fails for good, category agent_limit. What is children or depth, and
// Limit how many, if a tool of [Child] has the option [EndsRun]; without it the model is told, and the run goes on.
type LimitError struct {
	What  string
	Limit int64
}

// Error names the limit and the field of the configuration.
func (e *LimitError) Error() string {
	what := fmt.Sprintf("%d model calls, see Config.MaxTurns", e.Limit)
	switch e.What {
	case limitTime:
		what = fmt.Sprintf("its model calls and tools took %v, see Config.MaxTime", time.Duration(e.Limit))
	case limitChildren:
		what = fmt.Sprintf("%d children, see Config.MaxChildren", e.Limit)
	case limitDepth:
		what = fmt.Sprintf("agents nested %d deep, see Config.MaxDepth", e.Limit)
	case limitTokens:
		what = fmt.Sprintf("it used %d tokens, see Config.MaxTokens", e.Limit)
	}
	return "the agent has reached a limit: " + what
}

// limit is the error of a run that may call neither the model nor a tool any more. It looks at recorded figures only,
// so that a run that is repeated stops at the same place.
func (r *run) limit() error {
	var over *LimitError
	switch cfg := r.cfg; {
	case r.done.Turns >= cfg.MaxTurns && cfg.Continue == nil:
		over = &LimitError{limitTurns, int64(cfg.MaxTurns)}
	case cfg.MaxTokens > 0 && r.done.Usage.Total() >= cfg.MaxTokens:
		over = &LimitError{limitTokens, cfg.MaxTokens}
	case cfg.MaxTime > 0 && r.took >= cfg.MaxTime:
		over = &LimitError{limitTime, int64(cfg.MaxTime)}
	default:
		return nil
	}
	return handler.Category(categoryLimit, handler.Permanent(over))
}
