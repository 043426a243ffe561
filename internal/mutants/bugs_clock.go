package main

const clockRule = "a step back of the clock costs one lease time"

// clockMutants break what keeps a step of the server's clock from costing more than it must.
var clockMutants = []Mutant{
	{"clock: a tick does not notice a step back", clockRule, "ff_tick",
		`  ff_tick_do.stepped(ctx)
`, ``, suite("clock")},
	{"clock: a tick does not say when it was", clockRule, tickFile,
		`'owner', owner, 'ticked', ctx.t, 'wake'`, `'owner', owner, 'wake'`, suite("clock")},
	{"clock: closed routes wait for the other clock", clockRule, tickFile,
		`local again = { keys.sessions(ctx.r), keys.closed(ctx.r) }
  for i = 1, 2 do`, `local again = { keys.sessions(ctx.r), keys.closed(ctx.r) }
  for i = 1, 1 do`, suite("clock")},
	{"clock: a session keeps the expiry of the other clock", clockRule, sessionFile,
		`if s.exp > ctx.now + s.ttl then`, `if false then`, suite("clock")},
	{"clock: a tick prolongs what lives", clockRule, sessionFile,
		`if s.exp > ctx.now + s.ttl then`, `if true then`, suite("clock|ticking|time")},
	{"clock: a live session ends with the step", clockRule, sessionFile,
		`    s.exp = ctx.now + s.ttl
`, `    s.exp = ctx.now
`, suite("clock")},
	{"clock: a wake time of the other clock makes no tick overdue", clockRule, "lua/lib/root.lua",
		`ctx.wake > ctx.now + 1000 and root.stepped(ctx) and '1' or '0'`, `'0'`, suite("clock")},
	{"clock: a poll does not see a step back", clockRule, "lua/system/ff_poll.lua",
		` or root.stepped(ctx)) then`, `) then`, suite("clock")},
	{"clock: a name stays taken until the other clock's time", clockRule, registryFile,
		` and not registry.stale(ctx, v[5])`, ``, suite("clock")},
	{"clock: a worker that is gone is shown alive", clockRule, "lua/operate/ff_list_workers.lua",
		`if registry.stale(ctx, v[2]) then`, `if false then`, suite("clock")},
	{"clock: a quota counts starts of the future", clockRule, quotaFile,
		`'(' .. reply.int(ctx.now - q.window), quota.ahead(ctx))`, `'(' .. reply.int(ctx.now - q.window), '+inf')`, suite("clock")},
	{"clock: starts of the future come back", clockRule, quotaFile,
		`  if #ahead > 0 then redis.call('ZREM', key, unpack(ahead)) end
`, ``, suite("clock")},
	{"clock: who waited before the step is queued for", clockRule, quotaFile,
		`'(' .. reply.int(ctx.now - 30000), quota.ahead(ctx))`, `'(' .. reply.int(ctx.now - 30000), '+inf')`, suite("clock")},
	{"clock: a slot is not asked about until the other clock's time", clockRule, quotaFile,
		`  if #out == 16 then return out end`, `  if #out >= 0 then return out end`, suite("clock")},
}
