// Package admission is the vocabulary of work that asks before it runs: budgets and quotas. It makes no call itself;
// package admin makes and changes them, and workers ask them.
//
//   - A budget ([Budget]) says how much may be used: of each dimension (tokens, cents, bytes) a hard and a soft
//     limit, for ever or for a period. Workers report what they use; work that asks a budget waits while it is
//     exhausted.
//   - A quota ([Quota]) says how often work may start in a window of time, and how much of it may run at once.
//   - Both are the gates of an execution. They are named when it is created, or come with a scope it is created in
//     (everything, a namespace, a lane, a tag), and stay what they were. All of them must let it pass.
//
// # Using them
//
// A budget for each tenant, asked by all that is submitted to the tenant's namespace (a is an admin.Admin):
//
//	err := a.PutBudget(ctx, admission.Budget{
//		Name:   "acme",
//		OnHard: admission.HardBlock, // default HardReject
//		Reset:  flowfabric.Millis(24 * time.Hour),
//		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}}, // what is not limited is only counted
//	})
//	err = a.AttachGates(ctx, admission.Scope{Namespace: "acme"}, []flowfabric.Gate{flowfabric.BudgetGate("acme")})
//
// The handler says what it uses, in the step that uses it: when the execution runs again, the step is not repeated,
// nor paid again.
//
//	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
//		text, used, err := llm.Generate(ctx, in.Topic)
//		return text, errors.Join(err, t.Spend(ctx, "tokens", used))
//	})
//
// A quota for an API that takes 600 calls a minute, and 20 at once:
//
//	err = a.PutQuota(ctx, admission.Quota{Name: "llm", Rate: 580, Window: flowfabric.Millis(time.Minute), Cap: 20})
//	exec, err := client.Submit(ctx, c, Write, Draft{"tides"}, flowfabric.Quotas("llm"))
//
// All fields, with bounds and defaults: [Budget] and [Quota]. **In both, a limit of 0 is no limit.** A budget that only
// warns (Warn) counts what passes a hard limit, and keeps nothing waiting. admin.Why says what an execution waits for.
package admission
