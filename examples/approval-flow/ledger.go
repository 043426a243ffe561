package main

import (
	"context"
	"fmt"
	"strings"
	"sync"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// ledger keeps what was really done, in this process or in a worker process, and how often. Safe for concurrent use.
type ledger struct {
	mu     sync.Mutex
	order  []string
	times  map[string]int
	tokens map[string]suspend.Token // by approver: their inbox
	news   chan struct{}            // closed, and replaced, with every entry
}

func newLedger() *ledger {
	return &ledger{times: map[string]int{}, tokens: map[string]suspend.Token{}, news: make(chan struct{})}
}

// did is what [Tools.Did] is told.
func (l *ledger) did(effect string, token suspend.Token) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.times[effect]++; l.times[effect] == 1 {
		l.order = append(l.order, effect)
	}
	if who, ok := strings.CutPrefix(effect, "ask "); ok {
		l.tokens[who] = token
	}
	close(l.news)
	l.news = make(chan struct{})
	return nil
}

// token waits until an approver has mail.
func (l *ledger) token(ctx context.Context, who string) (suspend.Token, error) {
	for {
		l.mu.Lock()
		token, news := l.tokens[who], l.news
		l.mu.Unlock()
		if !token.IsZero() {
			return token, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return suspend.Token{}, context.Cause(ctx)
		}
	}
}

// owner is the approver whom a waitpoint belongs to.
func (l *ledger) owner(waitpoint flowfabric.UUID) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	for who, token := range l.tokens {
		if token.Waitpoint() == waitpoint {
			return who
		}
	}
	return "somebody"
}

// String reads "build ran 1×, link to ivy mailed 1×, deploy ran 1×".
func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var parts []string
	for _, effect := range l.order {
		what := effect + " ran"
		if who, ok := strings.CutPrefix(effect, "ask "); ok {
			what = "link to " + who + " mailed"
		}
		parts = append(parts, fmt.Sprintf("%s %d×", what, l.times[effect]))
	}
	return strings.Join(parts, ", ")
}
