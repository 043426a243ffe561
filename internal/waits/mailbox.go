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

// Edited is the message that a rewind recorded for a step; ok is false if none did.
func (p *Run) Edited(step string) (m suspend.Message, ok bool, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	name := engine.EditName(step)
	kept, ok := p.took[name]
	if ok {
		put(&p.asked, waitName(name), true)
	}
	if !ok || kept.err != nil || len(kept.Messages) == 0 {
		return suspend.Message{}, false, kept.err
	}
	return kept.Messages[0], true, nil
}

// Received tells whether a receipt of this name is recorded.
func (p *Run) Received(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.took[name]
	return ok
}

// Take hands out messages; what an earlier run took under this name if that is recorded.
func (p *Run) Take(ctx context.Context, q engine.Receiving) ([]suspend.Message, suspend.Cause, error) {
	p.mu.Lock()
	kept, ok := p.took[q.Name]
	put(&p.asked, waitName(q.Name), true)
	p.mu.Unlock()
	if ok {
		return kept.Messages, kept.Why, kept.err
	}
	if ctx.Err() != nil {
		return nil, "", context.Cause(ctx)
	}
	if p.cfg.Opener == nil { // a task that works alone: nobody can send
		return nil, q.Why, nil
	}
	if p.cfg.Flush != nil {
		if err := p.cfg.Flush(ctx); err != nil {
			return nil, "", fmt.Errorf("flush frames: %w", err)
		}
	}
	r, recorded, err := p.cfg.Opener.ReceiveMessages(ctx, p.cfg.Claim.Fence, q)
	if err != nil {
		if p.cfg.Refused != nil {
			err = p.cfg.Refused(err)
		}
		return nil, "", err
	}
	if recorded {
		p.mu.Lock()
		defer p.mu.Unlock()
		put(&p.took, q.Name, receipt{Receipt: r})
	}
	return r.Messages, r.Why, nil
}
