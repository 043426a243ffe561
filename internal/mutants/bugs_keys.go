package main

// keyed is what holds keys of submissions.
var keyed = suite("keys")

// keyMutants are bugs of the keys of submissions.
var keyMutants = []Mutant{
	{"keys: what has ended keeps its key", "keyed/taken",
		`  if till ~= '-' and core.terminal(c) and`, `  if false and`, keyed},
	{"keys: an end frees an idempotency key", "keyed/taken",
		`if till ~= '-' and core`, `if core`, keyed},
	{"keys: an end frees a key whose window is not over", "keyed/taken",
		`core.terminal(c) and policy.till(':' .. till) <= ctx.now`, `core.terminal(c)`, keyed},
	{"keys: a window ends although its execution has not", "keyed/taken",
		`core.terminal(c) and policy.till(':' .. till) <= ctx.now`, `policy.till(':' .. till) <= ctx.now`, keyed},
	{"keys: what is half purged has its key", "keyed/taken",
		` or c.purged_until then`, ` then`, suite("keys")},
	{"keys: equal keys in one call make two executions", "ff_create_execution",
		`not item.most and keyed.known(ctx, item, seen[item.key])`, `not item.most and keyed.known(ctx, item)`, keyed},
	{"keys: one that was refused has the key", "ff_create_execution",
		`    if not answer then
      answer =`, `    if item.key and not seen[item.key] then seen[item.key] = item end
    if not answer then
      answer =`, keyed},
	{"keys: another payload is no conflict", "keyed.known",
		`digest ~= '' and stored ~= '' and digest ~= stored`, `false`, keyed},
	{"keys: a unique key compares payloads", "keyed.known",
		`digest ~= '' and stored ~= '' and digest ~= stored`, `digest ~= stored`, keyed},
	{"keys: the answer does not name the execution", "keyed.known",
		`return '=' .. c.state .. ' ' .. id`, `return '=' .. c.state`, keyed},
	{"keys: a repeated call meets the key before itself", "ff_create_execution",
		`create.known(ctx, item, seen[item.id]) or
        item.most and`, `item.key and not item.most and keyed.known(ctx, item, seen[item.key]) or create.known(ctx, item, seen[item.id]) or
        item.most and`, keyed},
	{"keys: nobody gets the key", "keyed.take",
		`  record.write(ctx, keys.keyed(ctx.r, item.key), item.id .. ' ' .. item.till .. (item.sent or '') .. (item.rest or ''))
`, ``, keyed},
	{"keys: the record does not name its key", "create.write",
		`    named = record.holding(named, key)
`, ``, keyed},
	{"keys: the record of one with tags does not name its key", "create.write",
		`    if key then c.key = key end
`, ``, keyed},
	{"keys: a window counts as none", "keyed/parse",
		`ms == 0 and '0' or reply.int(ctx.now + ms)`, `'0'`, keyed},
	{"keys: a window of any length", "keyed/parse",
		`args.int(span, 0, year)`, `args.int(span, 0, 9007199254740991)`, keyed},
	{"keys: any text is a key", "keyed/parse",
		`not args.uuid(key) or `, ``, keyed},
	{"keys: an end does not look at the window", "indexes.done",
		`math.max(ctx.now + indexes.kept(ctx, route, own, code), policy.till(key))`, `ctx.now + indexes.kept(ctx, route, own, code)`, keyed},
	{"keys: the tick does not look at the window", "indexes.over",
		`math.max(ended + indexes.kept(ctx, c.route, c.retention, c.state), policy.till(c.key))`, `ended + indexes.kept(ctx, c.route, c.retention, c.state)`, keyed},
	{"keys: what failed is not kept for its window", "settle.finish",
		`c.retention, code, c.key)`, `c.retention, code)`, keyed},
	{"keys: what completed is not kept for its window", "settle.complete",
		`c.retention, 'T1', c.key)`, `c.retention, 'T1')`, keyed},
	{"keys: one with a window takes the plain path", "record/simple",
		`:[0~%-]$') ~= nil end`, `:[%d~-]+$') ~= nil end`, keyed},
	{"keys: a purge leaves the key", "purge.run",
		`  if c.key then keyed.free(ctx, c, id) end
`, ``, keyed},
	{"keys: a purge takes a key that another has", "keyed.free",
		`key and keyed.names(keyed.owner(key), own)`, `key`, keyed},
	{"keys: a replay does not look who has the key", "ff_replay_execution",
		`  if rival then return reply.err('key_taken', rival) end
`, ``, keyed},
	{"keys: a replay runs without its key", "ff_replay_execution",
		`  keyed.retake(ctx, c, id)
`, ``, keyed},
	{"keys: nobody is the rival of its own replay, not even itself", "keyed.rival",
		`if not text or text == own then`, `if not text then`, keyed},
	{"audit: a lost key stays lost", "ff_audit.key",
		`held and not rival and`, `false and`, keyed},
	{"audit: a free key is missing", "ff_audit.key",
		`  local held = not core.terminal(c) or`, `  local held = true or`, keyed},
	{"audit: two that have one key are right", "ff_audit.key",
		`if rival and not core.terminal(c) then`, `if false then`, keyed},
	{"audit: a key without execution stays", "ff_keys.keyed",
		`  if audit.note(ctx, 'orphan', 'y'`, `  if false and audit.note(ctx, 'orphan', 'y'`, keyed},
	{"audit: a key of one that names another stays", "ff_keys.keyed",
		`if own == key and keyed.names(text, named) then`, `if own then`, keyed},
}
