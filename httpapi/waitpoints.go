package httpapi

import (
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

type waitpointBody struct {
	leased
	Key    string `json:"key" jsonschema:"1..128 bytes of printable ASCII; the same key has the same token in every run"`
	LifeMs int64  `json:"life_ms,omitempty" jsonschema:"until the execution waits for it: 1000..7 days, default 1 day"`
}

type closeWaitpointBody struct {
	leased
	Key string `json:"key" jsonschema:"of a waitpoint that was opened and that nothing waits for"`
}

type waitpointToken struct {
	Token string `json:"token" jsonschema:"its bearer may answer: pass it on inside a step. Empty when the waitpoint is closed"`
}

// signed makes a call that mints tokens and needs the partition to know a token key.
func (c *call) signed(partition uint16, call func() error) error {
	return c.h.conn.Keyring.Signed(partition, func() error { return c.h.seeds.Known(c.ctx(), call) })
}

func (c *call) openWaitpoint(f flowfabric.Fence, b *waitpointBody) (*waitpointToken, error) {
	if err := printable("/key", b.Key); err != nil {
		return nil, err
	}
	life := 24 * time.Hour
	if b.LifeMs != 0 {
		life = ms(b.LifeMs)
	}
	if err := valid.WaitpointLife(b.Key, life); err != nil {
		return nil, invalid("/life_ms", "%v", err)
	}
	var opened engine.Opened
	err := c.signed(f.Execution.Partition(), func() error {
		minted, _, err := c.h.conn.Keyring.Mint(f.Execution, b.Key)
		if err == nil {
			opened, err = c.h.conn.Engine.CreatePendingWaitpoint(c.ctx(), f, b.Key, minted, life)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	token, err := c.h.conn.Keyring.Token(f.Execution, opened)
	if err != nil {
		return nil, err
	}
	return &waitpointToken{token.Reveal()}, nil
}

// closeWaitpoint closes the waitpoint of a key; one that is closed stays so.
func (c *call) closeWaitpoint(f flowfabric.Fence, b *closeWaitpointBody) (*already, error) {
	if err := printable("/key", b.Key); err != nil {
		return nil, err
	}
	r, err := c.h.conn.Engine.ReadSuspension(c.ctx(), f.Execution)
	if err != nil {
		return nil, err
	}
	id, open := mint.UUID(), false // of nobody: the server judges the lease first
	for _, w := range r.Waitpoints {
		if w.Key == b.Key && !open {
			id, open = w.ID, w.Open()
		}
	}
	before, err := c.h.conn.Engine.CloseWaitpoint(c.ctx(), f, id)
	return &already{before}, err
}
