// Package handler owns the code side of an execution: what a kind of work is called and how it is encoded
// ([Definition]), which function runs it ([Binding]), what that function may do while it runs ([Task],
// [Step]), and what its return means ([Outcome]).
//
//	producer            In ──Codec.Encode──▶ input ──▶ (stored with the execution)
//	                                                        │ claim
//	worker   Middleware ─▶ Binding.Run ──Codec.Decode──▶ fn(ctx, *Task, In)
//	                           │                            ├─ Task.Frame ──▶ frames of the attempt, in batches
//	                           │                            ├─ Step ──▶ flush frames, then one recorded value
//	                           │                            └─ Await, WaitChildren ──▶ an error to return
//	                           ▼
//	         (Out, error) ─classify─▶ Outcome ──▶ one fenced call of package runtime
//
// Nothing here talks to a server by itself: the maker of a task gives it what it needs, so the same handler runs in a
// worker, under the testing kit (fftest), or in a plain unit test: [Binding.Run] with a nil task.
//
//	var Order = handler.Define[string, string]("order", handler.Retry(5, time.Second, time.Minute))
//
//	func order(ctx context.Context, t *handler.Task, item string) (string, error) {
//		receipt, err := handler.Step(ctx, t, "charge", func(ctx context.Context) (string, error) {
//			return charge(ctx, item) // not repeated once it is recorded
//		})
//		if err != nil {
//			return "", err // retried; handler.Permanent(err) is not
//		}
//		return "sent with " + receipt, t.Frame(ctx, "log", "sent "+item)
//	}
//
// A worker runs handler.Bind(Order, order), see package runtime; client.Submit(ctx, c, Order, "tea") gives it work.
//
// # What a return means
//
//	value                   complete
//	error                   fail, retried by the stored policy; see Permanent, RetryAfter, Category
//	Delay, Cancel           delay (no attempt consumed), cancel
//	panic                   fail, category handler_panic, with the stack in the log
//	ctx ended: draining     release: handed back at once, no attempt consumed
//	ctx ended: lease lost,
//	cancelled, deadline     abandon: the server has decided or will; nothing to settle
//	ctx ended: timeout      fail, category attempt_timeout
//	ctx ended: over budget  with HardFail fail, category budget_exceeded, no retry; with HardBlock it goes back to its
//	                        queue, no attempt consumed, until there may be room; with HardAsk it is suspended until
//	                        a person has answered; whatever was returned. With HardReject the context goes on, and an
//	                        error that wraps ErrOverBudget is fail, category budget_exceeded
//
// # What a call may cost
//
// A handler reserves the most that a call may use before it makes it ([Task.Reserve]), and settles what it used. Then
// no hard limit of a gate is passed, whatever crashes. [Task.Spend] is for what is known only afterwards.
//
// # What can go wrong, and what follows
//
//   - The process dies, or the lease is lost. A later run runs the handler again from the top. A [Step] that was
//     recorded returns its value without running; one that was not runs again. So the code between steps must be
//     harmless to repeat, and a step's effect happens at least once: give external systems a key
//     (the fence's epoch, or execution id and step name).
//   - A step ran but its value cannot be recorded (store away, lease lost). Step returns the error; the effect has
//     happened and the next run repeats it.
//   - The process dies between a reservation and its settlement. It is charged in full when the lease is over: the call
//     may have been paid.
//   - The handler was changed. A recorded step that the new code never asks for stays stored and is reported
//     (a warning); a recorded value that no longer decodes is a permanent failure.
//   - The input does not decode: category extractor_payload_decode, permanent; the function is not called.
//   - The result is larger than 1 MiB or cannot be encoded: a permanent failure that names the limit.
//   - The handler starts goroutines of its own and one panics: nobody can catch that. Use sourcegraph/conc,
//     which carries a panic to the waiter.
package handler
