package tasks

import (
	"context"

	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// Turn is what a task tells of the turns of its run, see lua/lib/talk.lua.
type Turn struct {
	// Stop is the request of the stop that the run is to heed; "" for none.
	Stop func() string
	// By tells who asked for it, and why, as far as that is known.
	By func(ctx context.Context) (by, reason string, err error)
	// Listen has f called when a stop comes, with 0, and when a message does, with its number; nil ends that. What came
	// before is told again. f must not block.
	Listen func(f func(message uint64))
	// Recorded tells whether a step of this name is recorded, Answered whether a wait of this name, or one for
	// children, was answered, and Received whether a receipt is recorded. None takes the name.
	Recorded, Answered, Received func(name string) bool
	// Announced tells whether the children of a wait of this name may have been made, of those that readers see.
	Announced func(wait string) bool
	// Unasked is the name of the wait whose answer this run has not asked for; "" for none.
	Unasked func() string
	// Take takes messages under a name that no receipt of handler.Receive has, as waits.Run.Take does.
	Take func(ctx context.Context, q engine.Receiving) ([]suspend.Message, error)
	// Drain is handler.Task.Drain of up to so many messages.
	Drain func(ctx context.Context, mailbox string, limit int) ([]suspend.Message, error)
	// Ask is handler.Task.AskAll.
	Ask func(ctx context.Context, a Asking) ([]suspend.Answer, error)
	// Over is whether an agent of this run of the handler has ended its last turn.
	Over *bool
}

// Said is the value of a step that is something to the turn of its run: engine.TurnOver or another.
type Said interface{ Turn() string }

// Stoppable is one that would end the turn. Heed is called in the step when that is refused because a stop waits, and
// makes of it what is recorded instead.
type Stoppable[T any] interface {
	Said
	Heed(ctx context.Context) (T, error)
}

// Asking is several questions to people.
type Asking struct {
	Name      string // of the wait
	Questions []suspend.Question
	// Mailbox ends the wait with a message to it: who has not answered then has suspend.CauseMessage. "": none does.
	Mailbox string
	// Quit tells that the questions at these places are not to be asked any more. They have suspend.CauseOperator. nil:
	// all are.
	Quit func(open []int) bool
}
