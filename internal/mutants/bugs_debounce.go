package main

// bounce is what holds keys that debounce.
var bounce = suite("debounce")

// debounceMutants are bugs of keys that debounce.
var debounceMutants = []Mutant{
	{"debounce: what was claimed is still replaced", "keyed.open",
		`c.state == 'R1f' or`, `c.state == 'R1f' or c.state == 'A1' or`, bounce},
	{"debounce: one that is due is not replaced", "keyed.open",
		`c.state == 'R1f' or`, ``, bounce},
	{"debounce: one that an operator holds is not replaced", "keyed.open",
		` or c.state == 'R4f'`, ``, bounce},
	{"debounce: one that was held begins to run", "debounce.follow",
		`target.was.state == 'R4f' and 'R4f' or`, ``, bounce},
	{"debounce: the input stays", "debounce.write",
		`  say('input', size > 0 and size <= record.inline and item.payload or nil)
`, ``, bounce},
	{"debounce: a large input stays", "debounce.write",
		`    record.write(ctx, keys.input(ctx.r, id), item.payload)
`, `    do end
`, bounce},
	{"debounce: a large input that a small one replaced is left", "debounce.write",
		`    redis.call('UNLINK', keys.input(ctx.r, id))
`, `    do end
`, bounce},
	{"debounce: tags are added to those before", "debounce.write",
		`  if was.has_tags then redis.call('UNLINK', keys.tags(ctx.r, id)) end
`, ``, bounce},
	{"debounce: the tags are not stored", "debounce.write",
		`  if #tags > 0 then redis.call('HSET', keys.tags(ctx.r, id), unpack(tags)) end
`, ``, bounce},
	{"debounce: what the policy retries stays", "debounce.write",
		`    redis.call('HDEL', keys.attempts(ctx.r, id), 'categories')
`, `    do end
`, bounce},
	{"debounce: the lane stays", "lua/lib/debounce.lua", `'creator', 'route'`, `'creator'`, bounce},
	{"debounce: the deadline stays", "lua/lib/debounce.lua", `'deadline', `, ``, bounce},
	{"debounce: the alarm of a deadline that is gone stays", "debounce/move",
		`  if t.deadline or was.deadline then`, `  if t.deadline then`, bounce},
	{"debounce: a deadline that is new has no alarm", "debounce/move",
		`  if t.deadline or was.deadline then`, `  if was.deadline then`, bounce},
	{"debounce: the old route counts it still", "debounce/move",
		`    route.used(ctx, was.route, -1)
`, ``, bounce},
	{"debounce: its own time stays", "debounce/move",
		`    indexes.delay(ctx, item.at, id)
`, `    if was.state ~= 'R2af' then indexes.delay(ctx, item.at, id) end
`, bounce},
	{"debounce: one that was due stays in its queue", "debounce/move",
		`if was.state ~= code or code == 'R1f' then`, `if false then`, bounce},
	{"debounce: its place among equals is that of the last submit", "debounce/move",
		`created_at = was.created_at`, `created_at = ctx.t`, bounce},
	{"debounce: the bound counts from each submit", "debounce.follow",
		`tonumber(target.was.created_at) + item.most`, `ctx.now + item.most`, bounce},
	{"debounce: there is no bound", "debounce.follow",
		`if item.most > 0 and latest < at then`, `if false then`, bounce},
	{"debounce: a repeated submit is applied again", "debounce.known",
		`local applied = marked(marks, item) and id or`, `local applied =`, bounce},
	{"debounce: a repeated submit of the execution before makes another", "debounce.known",
		`marked(marks, item) and id or marked(older, item) and before`, `marked(marks, item) and id`, bounce},
	{"debounce: a repeated submit of one that was purged makes another", "debounce.known",
		` or purge.read(ctx, applied))`, `)`, bounce},
	{"debounce: marks grow for ever", "debounce/add",
		`#marks > 13 * most_marks`, `false`, bounce},
	{"debounce: the last submit has no mark", "debounce.follow",
		`  target.sent = add(target.sent or '', item)
`, `  target.sent = target.sent or ''
`, bounce},
	{"debounce: of equal keys in one call the first counts", "debounce.follow",
		`twin.group, twin.payload, twin.digest, twin.most = item.group, item.payload, item.digest, item.most`, `twin.digest = item.digest`, bounce},
	{"debounce: a bound below the delay is accepted", "debounce.known",
		`item.most > 0 and ctx.now + item.most < item.group.template.delay`, `false`, bounce},
	{"debounce: no delay is accepted", "debounce.known",
		`if not item.group.template.delay then`, `if false then`, bounce},
	{"debounce: any bound is accepted", "keyed/parse",
		`args.int(most, 0, 10 * year)`, `args.int(most, 0, 9007199254740991)`, bounce},
	{"debounce: a closed lane lets it be replaced", "ff_create_execution",
		`(ctx, item, seen[item.key]) or create.admit(ctx, item)`, `(ctx, item, seen[item.key]) or not item.over and create.admit(ctx, item)`, bounce},
	{"debounce: the answer does not say what was replaced", "internal/engine.Engine.CreateExecutions",
		`mark == '~'`, `false`, bounce},
	{"debounce: a replay takes the key back", "keyed.retake",
		`key and string.byte(own, -1) ~= 126`, `key`, bounce},
	{"debounce: a replay is refused while another waits", "keyed.rival",
		`  if key and string.byte(own, -1) == 126 then return nil end
`, ``, bounce},
	{"debounce: a purge leaves the key", "keyed.names",
		` or string.byte(own, -1) == 126 and text ~= nil and string.sub(text, 1, #own) == own`, ``, bounce},
	{"audit: a lost key that debounces stays lost", "ff_audit.key",
		`local lost = keyed.open(c) and`, `local lost = false and`, bounce},
	{"audit: a key that debounced is missing once claimed", "ff_audit.key",
		`local lost = keyed.open(c) and`, `local lost =`, bounce},
	{"debounce: keys that debounce are idempotency keys", "internal/ids.Debounced",
		`"flowfabric debounce v1"`, `"flowfabric idempotency v1"`, bounce},
	{"debounce: several calls of equal keys go at the same time", "internal/coalesce.Coalescer.SubmitMany",
		`key != nil && key.Debounce`, `key != nil && false`, in("internal/coalesce", "^TestDebouncedInOrder$")},
}

// gathering is what holds batch handlers.
var gathering = in("handler", "^TestBatch")

// batchMutants are bugs of batch handlers.
var batchMutants = []Mutant{
	{"batch: a full call waits for more", "handler.gatherer.enter",
		`len(b.items) == g.size.Size`, `false`, gathering},
	{"batch: lanes meet in one call", "handler.gatherer.enter",
		`place{cfg.Worker, cfg.Route.Namespace, cfg.Route.Lane}`, `place{cfg.Worker, cfg.Route.Namespace, ""}`, gathering},
	{"batch: namespaces meet in one call", "handler.gatherer.enter",
		`place{cfg.Worker, cfg.Route.Namespace, cfg.Route.Lane}`, `place{cfg.Worker, "", cfg.Route.Lane}`, gathering},
	{"batch: one that leaves stays in the call", "handler.gatherer.leave",
		`return other == item`, `return false`, gathering},
	{"batch: the loss of one ends the call", "handler.batch.lost",
		`last := b.left == 0`, `last := true`, gathering},
	{"batch: a call goes on when no item is left", "handler.batch.lost",
		`last := b.left == 0`, `last := false`, gathering},
	{"batch: the timeout of one concerns no other", "handler.batch.lost",
		`errors.Is(cause, flowfabric.ErrAttemptTimeout) ||`, ``, gathering},
	{"batch: a later word counts", "handler.Item.end",
		`!i.ended &&`, ``, gathering},
	{"batch: what was not ended is completed", "handler.BindBatch",
		`if item.ended && item.err == nil {`, `if item.err == nil {`, gathering},
	{"batch: a panic is an ordinary failure", "handler.Item.failure",
		`return plainFailure(codes.CategoryPanic, err)`, `return plainFailure(codes.CategoryHandlerError, err)`, gathering},
	{"batch: steps run", "handler.BindBatch",
		`		t.bar(errInBatch)
`, ``, gathering},
	{"batch: what waits stays in a drain", "handler.place.draining",
		`return p.worker.Draining`, `return nil`, gathering},
}
