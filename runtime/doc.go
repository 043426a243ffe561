// Package runtime runs handlers: it owns a worker from its configuration to its drain.
//
// Inside a program of your own:
//
//	w, err := runtime.New(cfg, handler.Bind(Def, fn))
//	err = w.Run(ctx) // until ctx ends
//
// As the whole program, with fx and signals:
//
//	err := runtime.Run(ctx, cfg, runtime.Handle(Def, fn))
//
// Inside somebody's fx application: [Module]. All three are that module: handlers are provided with their dependencies,
// the application's logger, registerer and tracer are used, a client can be injected, and [Slots] can be decorated.
//
//	             Subscribe ("w", "r", "l", "t")          Poll (jittered, seldom)
//	                    │ hot, not registered                  │
//	                    ▼                                      ▼
//	slots ──free──▶ scheduler ──round──▶ claim              ──▶ job ──▶ handler.Binding.Run
//	  ▲                 ▲                                        │            │ Outcome
//	  │                 └── More, partly filled ─────────────────┘            ▼
//	  └─────────────────── slot freed ◀── handler returned ──▶ settle (one fenced call, completions batched)
//
// A slot is taken before work is asked for, and is free again when its handler has returned; what is left to settle
// is bounded on its own. Short handlers have a few executions claimed ahead of the slots, as many as return while the
// next claim is made: they start the moment a handler returns, and go back to their queue if that takes longer than
// 10 ms, or when the worker drains. An empty claim registers this instance as a waiter; the server wakes exactly as
// many waiters as there is work. Between wake-ups a partition costs only its share of the fallback poll.
// Completions of members of flows claim in the same call, as a claim round of their partition: the work that
// they release mostly runs here, without a wake-up and a claim of its own.
//
// A worker serves the namespaces of [Config.Namespace], by default "default", and in addition those of
// [Config.Namespaces]. What waits in several of them, in one lane, shares it by weight (admin.SetLane), whatever each
// has waiting.
//
// Work with gates is granted first, not claimed: the worker asks them for up to 5 s, claims what all let
// pass, and gives the rest back without an attempt. What a gate refused is not handed out until it may
// have room, so that it takes no slot; what a handler spends is reported to its gates at once (handler.Task.Spend).
// The owner of a partition's tick tells gates what has ended there.
//
// # Failures
//
//   - A reply is lost: the claim number is repeated, the settling call is repeated; both say what really happened.
//   - The subscription is lost: all partitions are asked for work and all sessions renewed as soon as it is back, and
//     the poll finds what was missed meanwhile.
//   - A wake-up arrives while no slot is free, or during the drain: it is forwarded to the next waiter, and the
//     partition stays hot for when a slot is freed.
//   - The lease is lost: the handler's context ends with the cause, and whatever the handler returns is
//     dropped with one log line. The execution already belongs to somebody else.
//   - The instance name is another process's: a predecessor that crashed is waited for, a live one ends the start. Any
//     other trouble with the registration is logged and stops nothing.
//   - A handler panics: the attempt fails with category handler_panic; the worker goes on.
//   - The process is asked to stop: see [Worker.Run] for the order of the drain.
//   - The store is of a newer protocol, flushed, or refuses our credentials: the worker drains and Run returns
//     the reason. Everything else that goes wrong on the wire is retried.
package runtime
