package main

// whyMutants make explanations say what is not so.
var whyMutants = []Mutant{
	{"why: the place in the queue is one too far", "ff_explain.queue", `rank and reply.int(rank)`, `rank and reply.int(rank + 1)`, suite("why")},
	{"why: instances whose registration ran out are idle", "ff_explain.listeners", `'(' .. ctx.t, '+inf'`, `'-inf', '+inf'`, suite("why")},
	{"why: when it is purged is not told", "ff_explain.purge",
		`score and reply.int(args.score(score)) or '0'`, `score and '0' or '0'`, suite("why")},
	{"why: a freeze has no reason", "ff_explain_execution", `if refused[2] == 'partition_frozen' then`, `if false then`, suite("why")},
	{"why: the attempt before is forgotten", "ff_explain.attempts", `math.max(0, n - 2), n - 1`, `math.max(0, n - 1), n - 1`, suite("why")},
	{"why: what resumed it is forgotten", "ff_explain.suspension", `if not core.suspended(c) and not c.resume_bytes then`, `if not core.suspended(c) then`, suite("why")},
	{"why: a release of another claim counts", "internal/engine.released", ` || p[1] != core["epoch"]`, ``, suite("why")},
	{"why: some of the capabilities suffice", "internal/explain.crew.able", `case len(lacks(w, r)) == 0:`, `case len(lacks(w, r)) < len(r.Capabilities):`, suite("why")},
	{"why: lost workers count", "internal/explain.muster", `			if w.Alive {`, `			if w.Alive || w.Dead || len(w.Instance) > 0 {`, suite("why")},
	{"why: workers of other namespaces count", "internal/explain.takes", `return w.Info.Serves(r.Namespace) && slices`, `return slices`, suite("why")},
}
