package waits

import (
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/limits"
)

// Expect opens the waitpoint of a key, the first time, and has it take the next event of a subject that has all of
// these terms. If a crash came between the two, a later run does the second. It does nothing once the event has come,
// or the waitpoint is closed.
func (p *Run) Expect(ctx context.Context, key string, x engine.Expectation) error {
	if err := p.inside(ctx, "event "+key); err != nil {
		return err
	}
	w, err := p.open(ctx, engine.Minted{Key: key, Event: x.Subject}, limits.MaxWaitpointLife)
	if err != nil || p.cfg.Opener == nil {
		return err
	}
	if _, subject := ids.Subject(1, x.Namespace, x.Text); w.Event != subject.String() {
		return fmt.Errorf("%w: an earlier run opened waitpoint %s for something else", flowfabric.ErrInvalidInput, key)
	}
	if !w.Wanted {
		return nil
	}
	x.Execution, x.Waitpoint = p.cfg.Claim.Fence.Execution, w.ID
	token, err := p.cfg.Keyring.Token(x.Execution, w)
	if err != nil {
		return err
	}
	x.Digest = token.Digest()
	if err := p.cfg.Opener.ExpectEvent(ctx, x); err != nil {
		if p.cfg.Refused != nil {
			err = p.cfg.Refused(err)
		}
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	w.Wanted = false // a run that follows under this hold need not ask again
	put(&p.opened, key, w)
	return nil
}
