package main

// clockMutants break what keeps a step of the server's clock from costing more than it must.
var clockMutants = []Mutant{
	{"clock: a tick does not notice a step back", "ff_tick",
		`  ff_tick_do.stepped(ctx)
`, ``, suite("clock")},
	{"clock: a tick does not say when it was", "ff_tick",
		`'owner', owner, 'ticked', ctx.t, 'wake'`, `'owner', owner, 'wake'`, suite("clock")},
	{"clock: closed routes wait for the other clock", "ff_tick_do.stepped",
		`local again = { keys.sessions(ctx.r), keys.closed(ctx.r) }
  for i = 1, 2 do`, `local again = { keys.sessions(ctx.r), keys.closed(ctx.r) }
  for i = 1, 1 do`, suite("clock")},
	{"clock: a session keeps the expiry of the other clock", "session.cut",
		`if s.exp > ctx.now + s.ttl then`, `if false then`, suite("clock")},
	{"clock: a tick prolongs what lives", "session.cut",
		`if s.exp > ctx.now + s.ttl then`, `if true then`, suite("clock|tick|time")},
	{"clock: a live session ends with the step", "session.cut",
		`    s.exp = ctx.now + s.ttl
`, `    s.exp = ctx.now
`, suite("clock")},
	{"clock: a wake time of the other clock makes no tick overdue", "root.overdue",
		`ctx.wake > ctx.now + 1000 and root.stepped(ctx) and '1' or '0'`, `'0'`, suite("clock")},
	{"clock: a poll does not see a step back", "ff_poll",
		` or root.stepped(ctx)) then`, `) then`, suite("clock")},
	{"clock: a name stays taken until the other clock's time", "registry.read",
		` and not registry.stale(ctx, v[5])`, ``, suite("clock")},
	{"clock: a worker that is gone is shown alive", "ff_list_workers",
		`if registry.stale(ctx, v[2]) then`, `if false then`, suite("clock")},
	{"clock: a quota counts starts of the future", "quota.started",
		`'(' .. reply.int(ctx.now - q.window), quota.ahead(ctx))`, `'(' .. reply.int(ctx.now - q.window), '+inf')`, suite("clock")},
	{"clock: starts of the future come back", "quota.trim",
		`  if #ahead > 0 then redis.call('ZREM', key, unpack(ahead)) end
`, ``, suite("clock")},
	{"clock: who waited before the step is queued for", "quota.until_rate",
		`'(' .. reply.int(ctx.now - 30000), quota.ahead(ctx))`, `'(' .. reply.int(ctx.now - 30000), '+inf')`, suite("clock")},
	{"clock: a slot is not asked about until the other clock's time", "quota.suspects",
		`  if #out == 16 then return out end`, `  if #out >= 0 then return out end`, suite("clock")},
}
