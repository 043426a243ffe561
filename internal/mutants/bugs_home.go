package main

const (
	homeFile = "lua/lib/home.lua"
	rootFile = "lua/lib/root.lua"
	coreFile = "lua/lib/core.lua"
)

// homeMutants break the one home and the one alarm of an execution, its score, and the entrance of every function.
var homeMutants = []Mutant{
	{"home: what was settled stays held", "10-X3", homeFile,
		`    redis.call('ZREM', keys.held(r, sid), unpack(ids))`, ``, suite("settle")},
	{"home: what ended is not filed", "10-X1", homeFile,
		`    redis.call('ZADD', keys.done(r), unpack(pairs_))`, ``, suite("settle")},
	{"home: what left its queue stays in it", "10-X1", homeFile,
		`    redis.call('ZREM', q, unpack(ids))`, ``, suite("claim")},
	{"home: an empty route stays ready", "design §5", homeFile,
		`      redis.call('SREM', gate.ready(ctx, route), route)`, ``, suite("claim")},
	{"home: a route with work is not ready", "design §5", homeFile,
		`      redis.call('SADD', gate.ready(ctx, route), route)`, ``, suite("create")},
	{"home: a route that was emptied by a full slice stays ready", "design §5", homeFile,
		`count > #ids`, `count >= #ids`, suite("claim")},
	{"home: work that becomes claimable rings nobody", "design §6 doorbell", homeFile,
		`    bell.ring(ctx, route, #members / 2)`, ``, suite("bell")},
	{"home: every new item rings twice", "design §6 doorbell", homeFile,
		`    bell.ring(ctx, route, #members / 2)`, `    bell.ring(ctx, route, #members)`, suite("bell")},
	{"home: ready work does not lower wake", "design §8", "home.queue",
		`    root.need(ctx, ctx.now + 1000)`, ``, suite("create")},
	{"home: a delay does not lower wake", "design §8", homeFile,
		`  redis.call('ZADD', keys.delayed(ctx.r), reply.int(at), id)
  root.need(ctx, at)`, `  redis.call('ZADD', keys.delayed(ctx.r), reply.int(at), id)`, suite("create|settle|bell")},
	{"home: an alarm does not lower wake", "design §8", homeFile,
		`    redis.call('ZADD', keys.alarms(ctx.r), reply.int(at), id)
    root.need(ctx, at)`, `    redis.call('ZADD', keys.alarms(ctx.r), reply.int(at), id)`, suite("create|time|bell")},
	{"home: what leaves a delay stays delayed", "10-X1", homeFile,
		`    redis.call('ZREM', keys.delayed(ctx.r), id)`, ``, suite("cancel|time")},
	{"home: what leaves its holder stays held", "10-X3", homeFile,
		`    home.unhold(ctx, c.ss, id)
    if ctx.gates`, `    if ctx.gates`, suite("settle|cancel")},
	{"home: what ended is kept for an hour", "design §9", homeFile,
		`keep * 1000 or 86400000`, `keep * 1000 or 3600000`, suite("settle|golden")},

	{"root: an earlier timer does not lower wake", "design §8", rootFile,
		`if ctx.wake and ctx.wake <= wake then`, `if ctx.wake then`, suite("create|time|bell")},
	{"root: the owner of the tick is not rung", "design §8", rootFile,
		`  if root.owner(ctx) then publish.to(keys.bell(ctx.r, ctx.owner), 't') end`, ``, suite("bell")},
	{"root: nobody looks before something is due", "design §8", rootFile,
		`math.min(due, ctx.now + root.span)`, `due`, suite("create|time|golden")},
	{"root: a late tick is noticed a second late", "design §8", rootFile,
		`ctx.wake + 2000`, `ctx.wake + 3000`, pinned("time")},
	{"root: a frozen partition is not", "design §9", rootFile,
		`  if h[2] then return nil, reply.err('partition_frozen', r) end`, ``, suite("operator|errors")},
	{"root: a store of another protocol is not refused", "design §2.9", rootFile,
		`  if h[1] ~= '@PROTOCOL@' or argv[1]`, `  if argv[1]`, suite("errors")},
	{"root: a caller of another protocol is not refused", "design §2.9", rootFile,
		`h[1] ~= '@PROTOCOL@' or argv[1] ~= '@PROTOCOL@'`, `h[1] ~= argv[1]`, suite("server")},
	{"root: the number of the library is told as the store's", "design §2.9", rootFile,
		`given, 'library')`, `given, 'store')`, suite("server")},
	{"root: a missing partition is not refused", "design §2.9", rootFile,
		`  if not h[1] then return nil, reply.err('partition_missing', r) end`, `  if not h[1] then h[1] = argv[1] end`, suite("errors|server")},

	{"lane: priority has the wrong sign", "10 §3.1", "lua/lib/lane.lua",
		`tonumber(c.ct) - tonumber(c.pr)`, `tonumber(c.ct) + tonumber(c.pr)`, suite("settle|time|claim|operator")},
	{"lane: the score forgets priority", "10 §3.1", "lua/lib/lane.lua",
		`if not c.pr then return`, `if c.ct then return`, suite("settle|time|claim|operator")},
	{"core: the attempt is off by one", "10-I6", coreFile,
		`reply.int(tonumber(c.n) - 1)`, `reply.int(tonumber(c.n))`, suite("claim|settle")},
}
