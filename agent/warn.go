package agent

import (
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// warn tells the model, once each, that four fifths of a limit are used, before the limit ends the run. It looks at
// recorded figures only. The message stays in the conversation.
func (r *run) warn() {
	cfg := r.cfg
	if left := cfg.MaxTurns - r.done.Turns; r.done.Turns > 0 && cfg.Continue == nil && left <= max(1, cfg.MaxTurns/5) {
		text := fmt.Sprintf("%d model calls are left in this run.", left)
		if left == 1 {
			text = "1 model call is left in this run."
		}
		r.warnOf(limitTurns, text)
	}
	if left := cfg.MaxTokens - r.done.Usage.Total(); cfg.MaxTokens > 0 && left <= cfg.MaxTokens/5 {
		r.warnOf(limitTokens, fmt.Sprintf("%d tokens are left in this run.", left))
	}
	if left := cfg.MaxTime - r.took; cfg.MaxTime > 0 && left <= cfg.MaxTime/5 {
		r.warnOf(limitTime, fmt.Sprintf("%v are left in this run.", left.Round(time.Millisecond)))
	}
}

func (r *run) warnOf(what, text string) {
	if r.warned[what] {
		return
	}
	r.warned[what] = true
	r.says = append(r.says, Message{Role: User, From: limits.FromLimit + what,
		Parts: Text(text + " Finish, or say what is missing.")})
}
