package keeper_test

import (
	"testing"
	"time"
)

// A look that waited while a claim was in flight finds that its answer was lost, and does not look either: what the
// claim took is named by its repeat.
func TestLookThatWaitedForALostClaim(t *testing.T) {
	inBubble(t, 4, func(b *bench) {
		first := b.mustClaim(1)[0]
		b.server.set("claim", lost)
		b.server.hook = func(method string) {
			if method == "claim" {
				b.keeper.Reconnected(0)
				time.Sleep(time.Second) // the look waits for its turn by now
			}
		}
		looks := b.server.count("held")
		if _, err := b.claim(2); err == nil {
			b.Fatal("the reply was not lost")
		}
		time.Sleep(time.Second)
		if n := b.server.count("held") - looks; n != 0 || b.server.count("release") != 0 {
			b.Fatalf("%d looks, %d hand-backs while the claim was unresolved", n, b.server.count("release"))
		}
		b.server.set("claim", none)
		if held := b.mustClaim(1); len(held) != 2 || !first.Trusted() {
			b.Fatalf("%d held", len(held))
		}
	})
}
