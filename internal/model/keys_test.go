package model_test

import "github.com/flowfabric/flowfabric-go/internal/model"

// held: one key after the other kind of hold, from who takes it first to who replays, purges and takes it again.
func (x *pair) held() {
	const key, first, second, third = "00000000-0000-8000-8000-00000000000a", subject,
		"00000002-0000-4000-8000-000000000000", "00000003-0000-4000-8000-000000000000"
	var requests = map[string]string{first: "00000000-0000-4000-8000-000000000101",
		second: "00000000-0000-4000-8000-000000000102"}
	for _, held := range []int64{0, -1, 3000} {
		x.start()
		submit := func(id, digest, want string) {
			x.t.Helper()
			got := x.make(call{Kind: "create", Submit: model.Submission{ID: id,
				Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Digest: digest,
				Key: key, Held: held}}).Code
			if got != want {
				x.t.Fatalf("held %d: %s is answered %s, want %s", held, id, got, want)
			}
		}
		replay := func(id, want string) {
			x.t.Helper()
			if got := x.make(call{Kind: "replay", ID: id, Replay: model.Replay{Request: requests[id], Force: true}}).
				Code; got != want {
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

// bounced: submits under one key that debounces, from the first to those of the next execution, with repeats of each;
// and such a key beside other keys.
func (x *pair) bounced() {
	const key, first, second, third, fourth = "00000000-0000-8000-8000-00000000000a", subject,
		"00000002-0000-4000-8000-000000000002", "00000003-0000-4000-8000-000000000003",
		"00000004-0000-4000-8000-000000000004"
	x.start()
	submit := func(id, lane string, delay, most int64, want string) {
		x.t.Helper()
		got := x.make(call{Kind: "create", Submit: model.Submission{ID: id,
			Route: model.Route{Namespace: "n", Lane: lane, Kind: "k"}, Key: key, Debounce: true,
			Delay: delay, Most: most}}).Code
		if got != want {
			x.t.Fatalf("%s is answered %s, want %s", id, got, want)
		}
		x.compare()
	}
	submit(first, "l", 1000, 5000, model.OK)
	submit(first, "l", 1000, 5000, model.Duplicate)
	submit(second, "m", 2000, 5000, model.Replaced)
	submit(second, "m", 2000, 5000, model.Replaced)
	x.advance(x.p.Now + 4500)
	x.tick()
	x.compare()
	submit(third, "m", 2000, 5000, model.Replaced) // it was due
	submit(second, "m", 2000, 5000, model.Replaced)
	x.advance(x.p.Now + 1000)
	submit("00000005-0000-4000-8000-000000000005", "l", 2000, 5000, model.Replaced) // the bound is over
	submit("00000009-0000-4000-8000-000000000009", "m", 2000, 5000, model.Replaced)
	x.make(call{Kind: "cancel", ID: first, Cancel: model.Cancellation{Source: "operator_override"}})
	submit(third, "m", 2000, 5000, model.Replaced)
	submit(fourth, "l", 2000, 0, model.OK)
	submit(third, "m", 2000, 5000, model.Replaced) // of the execution before
	x.make(call{Kind: "replay", ID: first, Replay: model.Replay{Request: "00000000-0000-4000-8000-000000000101"}})
	x.make(call{Kind: "create", Submit: model.Submission{ID: "00000006-0000-4000-8000-000000000006",
		Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Key: key}})
	x.make(call{Kind: "cancel", ID: fourth, Cancel: model.Cancellation{Source: "operator_override"}})
	x.make(call{Kind: "create", Submit: model.Submission{ID: "00000007-0000-4000-8000-000000000007",
		Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}, Key: key}})
	submit("00000008-0000-4000-8000-000000000008", "l", 2000, 0, model.Duplicate)
	x.compare()
}
