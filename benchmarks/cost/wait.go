package cost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/waitwords"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// token is what the benchmark presents; any text does, because the server knows its digest only.
const token = "bench:0000000000000000000000000000000000000000000000000000000000000000"

// wait suspends held executions on a fresh waitpoint each, and signals them. One by one is all there is.
func (b *bench) wait(ctx context.Context) error {
	if b.batch > 1 {
		return nil
	}
	if _, err := b.e.SeedTokenKey(ctx, suspend.TokenKey{Kid: "bench", Fingerprint: "0123456789abcdef"}); err != nil {
		return err
	}
	rounds := b.share() / held
	sum := sha256.Sum256([]byte(token))
	minted := engine.Minted{Key: "go", Kid: "bench", Nonce: "00112233445566778899aabbccddeeff",
		Digest: hex.EncodeToString(sum[:])}
	waitpoints := make([][]flowfabric.UUID, len(b.lanes))
	for range rounds {
		err := b.each(ctx, func(ctx context.Context, l *lane) error {
			if _, err := b.e.CreateExecutions(ctx, l.partition, b.items(l, held)); err != nil {
				return err
			}
			return b.claim(ctx, l)
		})
		if err != nil {
			return err
		}
		err = b.timed(ctx, "suspend", held*len(b.lanes), func() error {
			return b.each(ctx, func(ctx context.Context, l *lane) error {
				waitpoints[l.partition] = waitpoints[l.partition][:0]
				for _, f := range l.fences {
					m := minted
					m.ID = mint.UUID()
					waitpoints[l.partition] = append(waitpoints[l.partition], m.ID)
					_, err := b.e.SuspendExecution(ctx, f,
						engine.Suspension{ID: mint.UUID(), Name: "go", Reason: "waiting_for_signal",
							Behaviour: "fail", Condition: "L\x1f1\x1f1\x1f", Bindings: []engine.Binding{{Minted: m}}})
					if err != nil {
						return err
					}
				}
				return nil
			})
		})
		if err != nil {
			return err
		}
		err = b.timed(ctx, "signal", held*len(b.lanes), func() error {
			return b.each(ctx, func(ctx context.Context, l *lane) error {
				for i, f := range l.fences {
					d, err := b.e.DeliverSignal(ctx, f.Execution, waitpoints[l.partition][i], minted.Digest,
						suspend.SentSignal{Name: "go", Payload: []byte("true")})
					if err != nil || d.Effect != waitwords.EffectSatisfied {
						return fmt.Errorf("signal: effect %q, %w", d.Effect, err)
					}
				}
				l.fences = nil
				return nil
			})
		})
		if err != nil {
			return err
		}
		if err := b.each(ctx, b.claim); err != nil {
			return err
		}
		if err := b.each(ctx, b.complete); err != nil {
			return err
		}
	}
	return nil
}
