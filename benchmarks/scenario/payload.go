package scenario

import (
	"context"
	"fmt"
)

// payloadSizes is drain with payloads of other sizes.
func payloadSizes(ctx context.Context, b *Bench) error {
	usual := b.Payload
	defer func() { b.Payload = usual }()
	sizes := make([]string, len(b.Payloads))
	for i, bytes := range b.Payloads {
		sizes[i] = fmt.Sprintf("%d B", bytes)
	}
	return b.across(sizes, func(i int, file filing) error {
		b.Payload = b.Payloads[i]
		if err := b.open(ctx); err != nil {
			return err
		}
		if err := b.fill(ctx, b.Items); err != nil {
			return err
		}
		f, commands, err := b.worked(ctx, b.Items, func(*counter) error { return nil })
		if err == nil {
			file("", f, commands)
		}
		return err
	})
}
