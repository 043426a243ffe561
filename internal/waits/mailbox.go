package waits

import (
	"context"
	"fmt"

	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/sealed"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// receipt is one that is recorded, or why it cannot be read.
type receipt struct {
	engine.Receipt
	err error
}

func keptReceipt(box *sealed.Box, value []byte) receipt {
	r, err := engine.DecodeReceipt(value)
	engine.OpenMessages(box, r.Messages)
	return receipt{r, err}
}

// Receipt takes the next receipt of a mailbox for this run: the mailbox and a number. It also returns what the wait
// of this name was answered, nil if it was not.
func (p *Run) Receipt(ctx context.Context, mailbox string) (name string, answer *suspend.Result, err error) {
	if err := p.inside(ctx, "receipt from "+mailbox); err != nil {
		return "", nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return "", nil, fmt.Errorf("%w: the handler has returned", denied.TaskConsumed)
	}
	put(&p.counts, mailbox, p.counts[mailbox]+1)
	name = engine.ReceiptName(mailbox, p.counts[mailbox])
	put(&p.asked, waitName(name), true)
	answer, err = p.answer(name)
	return name, answer, err
}

// Take hands out up to limit messages; what an earlier run took under this name if that is recorded.
func (p *Run) Take(ctx context.Context, name, mailbox string, limit int,
	why suspend.Cause) ([]suspend.Message, suspend.Cause, error) {
	p.mu.Lock()
	kept, ok := p.took[name]
	p.mu.Unlock()
	if ok {
		return kept.Messages, kept.Why, kept.err
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	if p.cfg.Opener == nil { // a task that works alone: nobody can send
		return nil, why, nil
	}
	if p.cfg.Flush != nil {
		if err := p.cfg.Flush(ctx); err != nil {
			return nil, "", fmt.Errorf("flush frames: %w", err)
		}
	}
	r, recorded, err := p.cfg.Opener.ReceiveMessages(ctx, p.cfg.Claim.Fence,
		engine.Receiving{Name: name, Mailbox: mailbox, Limit: limit, Why: why})
	if err != nil {
		if p.cfg.Refused != nil {
			err = p.cfg.Refused(err)
		}
		return nil, "", err
	}
	if recorded {
		p.mu.Lock()
		defer p.mu.Unlock()
		put(&p.took, name, receipt{Receipt: r})
	}
	return r.Messages, r.Why, nil
}
