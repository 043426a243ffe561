// Package admission is about work that asks before it runs: budgets, quotas, and what a worker does about them.
//
//   - A budget ([Budget]) says how much may be used: of each dimension (tokens, cents, bytes) a hard and a soft limit, for ever or for a
//     period. Workers report what they use; work that asks a budget waits while it is exhausted.
//   - A quota ([Quota]) says how often work may start in a window of time, and how much of it may run at once.
//   - Both are the gates of an execution. They are named when it is created, or come with a scope it is created in (everything, a
//     namespace, a lane, a tag), and stay what they were. All of them must let it pass.
//
// # Using them
//
// A budget for each tenant, asked by all that is submitted to the tenant's namespace (c is a client.Client):
//
//	err := c.CreateBudget(ctx, admission.Budget{
//		Name:   "acme",
//		OnHard: admission.HardBlock, // default HardReject
//		Reset:  24 * time.Hour,
//		Limits: map[string]admission.Limit{"tokens": {Hard: 1_000_000, Soft: 800_000}}, // what is not limited is only counted
//	})
//	err = c.AttachGates(ctx, admission.Scope{Namespace: "acme"}, []flowfabric.Gate{flowfabric.Budget("acme")})
//
// The handler says what it uses, in the step that uses it: when the execution runs again, the step is not repeated, nor paid again.
//
//	text, err := handler.Step(ctx, t, "draft", func(ctx context.Context) (string, error) {
//		text, used, err := llm.Generate(ctx, in.Topic)
//		return text, errors.Join(err, t.Spend(ctx, "tokens", used))
//	})
//
// A quota for an API that takes 600 calls a minute, and 20 at once:
//
//	err = c.CreateQuota(ctx, admission.Quota{Name: "llm", Rate: 580, Window: time.Minute, Cap: 20})
//	exec, err := client.Submit(ctx, c, Write, Draft{"tides"}, client.Quotas("llm"))
//
// All fields, with bounds and defaults: [engine.BudgetSpec] and [engine.QuotaSpec]. **In both, a limit of 0 is no limit.** A budget that only
// warns (Warn) counts what passes a hard limit, and keeps nothing waiting. What is in the way of an execution says admin.Why.
//
// # How it works
//
// The rest is for those who build a worker of their own: [Gate] claims for it and asks, [Deliver] tells budgets and quotas what ended.
// Whoever uses package runtime has both.
//
// Budgets and quotas have partitions of their own, so no single call can ask them and hand out work. The steps, each of which
// may be repeated, and after each of which the process may die:
//
//	worker                execution's partition         budgets          quotas
//	claim ──────────────▶ grant: held 5 s
//	Gate: may it run? ───────────────────────────────▶ room?
//	                      ─────────────────────────────────────────────▶ admit: a hold, in the slot until released
//	all do ─────────────▶ claimed: runs
//	some do not ────────▶ back in its queue; the
//	                      route closes until a time, or a wake
//	it stops running ───▶ outbox: said in the same call
//	Deliver (who ticks) ─────────────────────────────▶ refund ────────▶ release: who waits is woken
//	                      routes open ◀────────────────────────────────┘
//
// What fails, and then:
//
//   - The worker dies, or the call to claim what was granted is lost: the grant ends after 5 s, or with the session. The execution is
//     back in its queue, and the quotas hear of it through the outbox. No reclaim is counted.
//   - The outbox is not delivered: it stays. Telling a quota twice changes nothing.
//   - A hold that nobody releases, because a failover lost the word of it: after 10 s it is suspect. When the quota is full, whoever is
//     refused asks the execution's partition, which ends a grant that is over and says what is still held. No time alone frees a slot.
//   - A wake is lost: a closed route opens by itself, a quota's after at most 10 s (a window's when there is room, after an hour at most), a budget's after 30 s.
//   - A budget or quota does not answer, or is not there: nothing runs. The route is closed for 1 s, or 30 s.
//
// What is in several quotas is asked of them in the order of names; of budgets first, which does not use them up: work that passed a
// budget with little left may find it exhausted when it reports. Spec 70, design §6.
package admission
