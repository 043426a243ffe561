package main

const (
	bellFile  = "lua/lib/bell.lua"
	routeFile = "lua/lib/route.lua"
)

// bellMutants break the doorbell and the route table.
var bellMutants = []Mutant{
	{"bell: rings nobody", "design §6 doorbell", bellFile,
		`if count <= 0 then break end`, `if count >= 0 then break end`, suite("bell")},
	{"bell: rings one too many", "design §6 doorbell", bellFile,
		`wake(ctx, all[i], count, 'w')`, `wake(ctx, all[i], count + 1, 'w')`, suite("bell")},
	{"bell: rings whoever waits for anything", "design §6 doorbell", bellFile,
		`keys.interest(ctx.r, all[i]), route) == 1`, `keys.interest(ctx.r, all[i]), route) >= 0`, suite("bell")},
	{"bell: takes the deaf for woken", "design §6 doorbell", bellFile,
		`message) > 0 then`, `message) >= 0 then`, suite("bell")},
	{"bell: who was rung stays registered", "design §6 doorbell", bellFile,
		`    redis.call('ZREM', zset, unpack(batch))
    for i`, `    if zset == '' then redis.call('ZREM', zset, unpack(batch)) end
    for i`, suite("bell")},
	{"bell: nobody hears of a new route", "design §5", bellFile,
		`publish.to(keys.bell(ctx.r, batch[w]), 'r')`, `batch[w] = 'r'`, suite("bell")},
	{"bell: whom a new route did not reach is forgotten", "design §6 doorbell", bellFile,
		`redis.call('HSET', ctx.r, 'ring', upto)`, `redis.call('HDEL', ctx.r, 'ring')`, suite("operator|bell")},
	{"bell: a full worker passes nothing on", "design §6 doorbell", bellFile,
		`heard + bell.ring(ctx, ready[i], 1)`, `heard + 0`, suite("operator")},
	{"route: the version of the table is not raised", "design §5", routeFile,
		`math.max(root.version(ctx) + 1, ctx.now)`, `root.version(ctx)`, suite("create|claim")},
	{"route: a lost id goes unnoticed after a failover", "design §5", routeFile,
		`math.max(root.version(ctx) + 1, ctx.now)`, `root.version(ctx) + 1`, suite("create")},
	{"route: a new row is not in the log", "design §5", routeFile,
		`  redis.call('ZADD', keys.route_log(ctx.r), version, id)`, ``, suite("create|claim")},
	{"route: the delta skips the next row", "design §5", routeFile,
		`'(' .. reply.int(known), '+inf'`, `'(' .. reply.int(known + 1), '+inf'`, suite("create|claim")},
	{"route: the delta repeats what is known", "design §5", routeFile,
		`'(' .. reply.int(known), '+inf'`, `reply.int(known), '+inf'`, suite("create|claim")},
	{"interest: it never expires", "design §5", "lua/worker/ff_set_interest.lua",
		`  redis.call('EXPIRE', key, 600)`, ``, suite("holes")},
	{"interest: without the route that exists nowhere", "design §5", "lua/worker/ff_set_interest.lua",
		`local members = { '0' }`, `local members = { '1' }`, suite("claim|bell")},
}
