package model_test

import "github.com/flowfabric/flowfabric-go/internal/model"

// held: one key after the other kind of hold, from who takes it first to who replays, purges and takes it again.
func (x *pair) held() {
	const key, first, second, third = "00000000-0000-8000-8000-00000000000a", subject, "00000002-0000-4000-8000-000000000000", "00000003-0000-4000-8000-000000000000"
	var requests = map[string]string{first: "00000000-0000-4000-8000-000000000101", second: "00000000-0000-4000-8000-000000000102"}
	for _, held := range []int64{0, -1, 3000} {
		x.start()
		submit := func(id, digest, want string) {
			x.t.Helper()
			got := x.make(call{Kind: "create", Submit: model.Submission{ID: id, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Digest: digest,
				Key: key, Held: held}}).Code
			if got != want {
				x.t.Fatalf("held %d: %s is answered %s, want %s", held, id, got, want)
			}
		}
		replay := func(id, want string) {
			x.t.Helper()
			if got := x.make(call{Kind: "replay", ID: id, Replay: model.Replay{Request: requests[id], Force: true}}).Code; got != want {
				x.t.Fatalf("held %d: the replay of %s is answered %s, want %s", held, id, got, want)
			}
		}
		end := func(id string) {
			x.make(call{Kind: "cancel", ID: id, Cancel: model.Cancellation{Source: "operator_override"}})
		}
		submit(first, "d", model.OK)
		submit(first, "d", model.Duplicate)
		submit(second, "", model.Duplicate)
		submit(second, "e", "idempotency_conflict")
		end(first)
		if held != 0 {
			submit(second, "d", model.Duplicate)
		}
		if held < 0 {
			x.make(call{Kind: "purge", ID: first, Number: 86_400_000})
		}
		x.advance(x.p.Now + 3000)
		submit(second, "e", model.OK)
		if held < 0 {
			continue
		}
		replay(first, "key_taken")
		end(second)
		x.advance(x.p.Now + 3000)
		replay(first, model.OK)
		submit(third, "", model.Duplicate)
		replay(second, "key_taken")
		end(first)
		x.make(call{Kind: "purge", ID: second, Number: 86_400_000})
		submit(third, "", model.OK)
		x.compare()
	}
}
