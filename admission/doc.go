// Package admission is the vocabulary of work that asks before it runs. It makes no call itself; package admin makes
// and changes gates, and workers ask them.
//
// A gate ([Gate]) has a name and up to three meters: amounts that may be used in a period, starts in a window of time,
// and how much runs at once. It is one of the gates of an execution if it was named when that was created, or came with
// a scope it was created in (everything, a namespace, a lane, a tag); they stay what they were. All of them must let it
// pass. A limit of a key (flowfabric.LimitKey) is a gate whose name says everything: nobody makes it.
//
// # Using them
//
// A budget for each tenant, asked by all that is submitted to the tenant's namespace (a is an admin.Admin):
//
//	err := a.PutGate(ctx, admission.Gate{
//		Name:   "acme",
//		OnHard: admission.HardBlock, // default HardReject
//		Reset:  flowfabric.Millis(24 * time.Hour),
//		// what is not limited is only counted
//		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}},
//	})
//	err = a.AttachGates(ctx, admission.Scope{Namespace: "acme"}, []flowfabric.Gate{"acme"})
//
// The handler reserves the most that a call may use, and settles what it used, in the step that makes the call: when
// the execution runs again, the step is not repeated, nor paid again. A call that does not fit is not made, and no hard
// limit is exceeded, whatever crashes.
//
//	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
//		r, err := t.Reserve(ctx, map[string]int64{"tokens": 4000})
//		if err != nil {
//			return "", err
//		}
//		text, used, err := llm.Generate(ctx, in.Topic, 4000)
//		if err != nil {
//			return "", err // it may have been paid: what is not settled is charged in full
//		}
//		return text, r.Settle(ctx, map[string]int64{"tokens": used})
//	})
//
// What is known only afterwards is reported: t.Spend(ctx, "bytes", sent). What was used already when a report is
// refused is over the limit.
//
// A gate for an API that takes 600 calls a minute, and 20 at once:
//
//	err = a.PutGate(ctx, admission.Gate{Name: "llm", Rate: 580, Window: flowfabric.Millis(time.Minute),
//		Concurrency: 20})
//	exec, err := client.Submit(ctx, c, Write, Draft{"tides"}, flowfabric.Gates("llm"))
//
// A gate with a Parent is below another one: what counts in it counts there, too.
//
// All fields, with bounds and defaults: [Gate]. **A limit of 0 is no limit.** A gate that only warns (Warn) counts what
// passes a hard limit, and keeps nothing waiting. admin.Why says what an execution waits for.
package admission
