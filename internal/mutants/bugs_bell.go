package main

// bellMutants break the doorbell and the route table.
var bellMutants = []Mutant{
	{"bell: rings nobody", "doorbell.ring",
		`if count <= 0 then break end`, `if count >= 0 then break end`, suite("bell")},
	{"bell: rings one too many", "doorbell.ring",
		`wake_interest(ctx, all[i], count, message or 'w')`, `wake_interest(ctx, all[i], count + 1, message or 'w')`, suite("bell")},
	{"bell: rings workers that wait for anything", "doorbell.ring",
		`keys.interest(ctx.r, all[i]), member) == 1`, `keys.interest(ctx.r, all[i]), member) >= 0`, suite("bell")},
	{"bell: takes the unreachable for woken", "doorbell/wake_interest",
		`message) > 0 then`, `message) >= 0 then`, suite("bell")},
	{"bell: who was rung stays registered", "doorbell/wake_interest",
		`    redis.call('ZREM', zset, unpack(batch))
    for i`, `    if zset == '' then redis.call('ZREM', zset, unpack(batch)) end
    for i`, suite("bell")},
	{"bell: nobody hears of a new route", "doorbell.table_changed",
		`publish.to(keys.doorbell(ctx.r, batch[w]), 'r')`, `batch[w] = 'r'`, suite("bell")},
	{"bell: whom a new route did not reach is forgotten", "doorbell.table_changed",
		`redis.call('HSET', ctx.r, 'ring', upto)`, `redis.call('HDEL', ctx.r, 'ring')`, suite("operator|bell")},
	{"bell: a full worker passes nothing on", "urgent.forward",
		`doorbell.ring(ctx, members[i], nil, 1, level and 'w' .. reply.int(level))`, `0`, suite("operator")},
	{"route: the version of the table is not raised", "route.announce",
		`math.max(root.version(ctx) + 1, ctx.now)`, `root.version(ctx)`, suite("create|claim")},
	{"route: a lost id goes unnoticed after a failover", "route.announce",
		`math.max(root.version(ctx) + 1, ctx.now)`, `root.version(ctx) + 1`, suite("create")},
	{"route: a new row is not in the log", "route.announce",
		`  redis.call('ZADD', keys.route_log(ctx.r), version, class)`, ``, suite("create|claim")},
	{"route: the delta skips the next row", "route.delta",
		`'(' .. reply.int(known), '+inf'`, `'(' .. reply.int(known + 1), '+inf'`, suite("create|claim")},
	{"route: the delta repeats what is known", "route.delta",
		`'(' .. reply.int(known), '+inf'`, `reply.int(known), '+inf'`, suite("create|claim")},
	{"interest: it never expires", "ff_set_interest",
		`  redis.call('EXPIRE', key, 600)`, ``, suite("edge cases")},
	{"interest: without the route that exists nowhere", "ff_set_interest",
		`local members = { '0' }`, `local members = { '1' }`, suite("claim|bell")},
}
