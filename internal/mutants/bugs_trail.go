package main

// trailMutants break the audit trail.
var trailMutants = []Mutant{
	{"trail: what changed nothing is noted", "root.leave",
		`if ctx.note and answer[2] == 'OK' then`, `if ctx.note then`, suite("trail")},
	{"trail: nothing is noted", "root.leave",
		`    if ctx.note and answer[2] == 'OK' then trail.add(ctx) end`, ``, suite("trail")},
	{"trail: a note for each call of a request", "trail.add",
		`  if redis.call('HGET', ctx.r, 'noted') == note.request then return end`, ``, suite("trail")},
	{"trail: one note, whatever the request", "trail.add",
		`'noted', note.request)`, `'noted', '')`, suite("trail")},
	{"trail: a note that cannot be read is none", "trail.split",
		`  return note and number, note`, `  return number, note`, suite("trail")},
	{"trail: notes of any length", "trail.read",
		`  if #text > 4096 then return nil end`, ``, suite("trail")},
	{"trail: any parts make a note", "trail.read",
		`#parts ~= 9 or `, ``, suite("trail")},
	{"trail: the history does not say from where", "history.add",
		`ctx.note.from ~= ''`, `ctx.note.from == ''`, suite("trail")},
	{"trail: tags are changed by nobody", "ff_set_tags",
		`  if ctx.note and answer[2] == 'OK' then history.add(ctx, c, id, 'tagged', ctx.note.by, ctx.note.why) end`, ``, suite("trail")},
	{"trail: nobody freezes", "ff_freeze_partition",
		`  if note then trail.add({ r = k[1], t = reply.int(clock.now(k[1])), note = note }) end`, ``, suite("trail")},
	{"trail: a part of a change is a change", "internal/trail.With",
		`	if _, ok := ctx.Value(noteKey{}).(string); ok {
		return ctx
	}
`, ``, in("admin", "^TestEveryChangeIsInTheTrail$")},
	{"trail: who acts is not told", "internal/trail.With",
		`	if a.By != "" {`, `	if a.By == "" {`, api("^TestEveryRoute$")},
	{"trail: the last of a page begins the next", "internal/engine.Engine.ReadTrail",
		`		if source >= at {`, `		if source > at {`, in("admin", "^TestEveryChangeIsInTheTrail$")},
	{"trail: separators in texts", "internal/trail.plain",
		`r < 0x20 ||`, `r < 0x10 ||`, suite("trail")},
	{"api: a namespace's changes are everybody's", "httpapi.call.changes",
		`query.Namespace, err = c.namespace(q.text("namespace"))`, `_, err = c.namespace(q.text("namespace"))`, api("^TestTrailOfANamespace$")},
	{"api: changes are in no namespace", "httpapi.call.id",
		`		c.acting("", s.Route.Namespace)`, ``, api("^TestTrailOfANamespace$")},
}
