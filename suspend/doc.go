// Package suspend has the words of waits: conditions and options, questions and answers, signals, messages, and the
// tokens by which outsiders signal. Package handler waits with them. An attempt stops for an hour or a month without
// holding a slot, a lease or a goroutine, until somebody signals it, an operator resumes it, or its timeout passes.
// Package approval serves the page that a link with a token opens.
//
//	handler ── Await / Wait / On ──▶ error ──▶ runtime: flush frames, suspend in one call
//	                                              │ signals came early and suffice: the lease is kept, the handler runs again
//	                                              ▼
//	                              parked: waitpoints open, nothing held
//	                                              │ signal (token) · approval or resume (operator) · timeout
//	                                              ▼
//	                              claimable again ──▶ next run: the same Await returns the answer
//
// A handler runs from the top in every run. What an earlier run did in steps is not repeated, and a wait that was
// answered returns its answer at once: answers are kept like steps, under the wait's name. So names are unique within
// a run, and loops number theirs.
//
//	func release(ctx context.Context, t *handler.Task, version string) (string, error) {
//		token, err := t.Pending(ctx, "approval", 24*time.Hour)
//		if err != nil {
//			return "", err
//		}
//		if _, err := handler.Step(ctx, t, "mail", func(ctx context.Context) (bool, error) { // mailed once
//			return true, mail(ctx, approval.Link("https://example.com/answers", token))
//		}); err != nil {
//			return "", err
//		}
//		answer, err := handler.Await[suspend.Answer](ctx, t, "approval", suspend.Within(72*time.Hour))
//		return answer.Choice, err // the first run returns an error, and holds nothing while it waits
//	}
//
// # Tokens
//
// A waitpoint is an address for signals; its [Token] is the right to use it. handler.Task.Pending opens a waitpoint and
// hands out its token before the handler waits, so that it can be mailed; signals that arrive early are kept. A token
// is an HMAC over everything that identifies the waitpoint, made with a token key, which is configuration of workers
// and clients ([EnvTokenKeys]); the server stores only the token's SHA-256. A sender needs no key.
//
// Operators need no token (see client.Approve), but the worker needs a token key even then, because every waitpoint
// is made with a token. embedded:// makes a key by itself; on any other server, one of embedded.Start too, set
// FLOWFABRIC_TOKEN_KEYS. Only waits for [Operator], [Timeout] and messages open no waitpoint and need no key.
//
// Tokens print as redacted, whatever prints them; [Token.Reveal] is the one way to the text.
//
// # Messages
//
// A waitpoint serves one wait, or several ([Remind]). For a conversation there are mailboxes: client.Send puts a
// message into one at any time until the execution ends, and handler.Receive takes the next one, or waits for it like
// handler.Await. What it returned is kept like a step. A mailbox is only a name: it needs no opening, no token and no
// token key. handler.Task.Drain takes what is there and does not wait.
//
//	for {
//		text, err := handler.Receive[string](ctx, t, "user", suspend.Within(time.Hour))
//		if err != nil || text == "bye" {
//			return err // as of Await
//		}
//		// answer it, in a step
//	}
//
// A handler can wait for an event that any program publishes: handler.Task.Expect says which ([Event]) before the
// handler does what leads to it, and handler.Await returns its data.
//
// # What can go wrong, and what follows
//
//   - The process dies after a token was handed out and before the wait: the waitpoint outlives the attempt, the next
//     one gets the same token from handler.Task.Pending, and waits on it.
//   - The call that suspends is not answered: it is repeated, and answered as the first time.
//   - A signal is delivered twice: with an idempotency key the second is answered like the first.
//   - A signal comes too late: flowfabric.ErrWaitpointClosed; it is not stored.
//   - The process dies after a message was received: the next run receives it again, and each receipt after it as
//     before.
//   - Nobody ever signals: the wait lasts for ever unless it has [Within]; what then happens is [OnTimeout].
package suspend
