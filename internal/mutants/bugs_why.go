package main

const explainFile = "lua/read/ff_explain_execution.lua"

// whyMutants make explanations say what is not so.
var whyMutants = []Mutant{
	{"why: the place in the queue is one too far", "50 §14", explainFile, `rank and reply.int(rank)`, `rank and reply.int(rank + 1)`, suite("why")},
	{"why: instances whose registration ran out are idle", "design §6 doorbell", explainFile, `'(' .. ctx.t, '+inf'`, `'-inf', '+inf'`, suite("why")},
	{"why: when it is purged is not told", "50 §6.2", explainFile,
		`score and reply.int(args.score(score)) or '0'`, `score and '0' or '0'`, suite("why")},
	{"why: a freeze has no reason", "design §9", explainFile, `if refused[2] == 'partition_frozen' then`, `if false then`, suite("why")},
	{"why: the attempt before is forgotten", "50 §14", explainFile, `math.max(0, n - 2), n - 1`, `math.max(0, n - 1), n - 1`, suite("why")},
	{"why: what resumed it is forgotten", "20 §3.12", explainFile, `if not core.suspended(c) and not c.sg then`, `if not core.suspended(c) then`, suite("why")},
	{"why: a release of another claim counts", "50 §14", "engine/explain.go", ` || p[1] != core["e"]`, ``, suite("why")},
	{"why: some of the capabilities suffice", "design §5", "client/why_workers.go", `case len(lacks(w, r)) == 0:`, `case len(lacks(w, r)) < len(r.Capabilities):`, suite("why")},
	{"why: lost workers count", "40 §5", "client/why_workers.go", `			if w.Alive {`, `			if w.Alive || w.Dead || len(w.Instance) > 0 {`, suite("why")},
	{"why: workers of other namespaces count", "design §5", "client/why_workers.go", `return w.Info.Serves(r.Namespace) && slices`, `return slices`, suite("why")},
}
