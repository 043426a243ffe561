package main

// retentionMutants break for how long what ended is kept, what goes with it, and what is listed while it waits.
var retentionMutants = []Mutant{
	{"policy: a retention of ten years and a second", "policy/judge",
		`args.int(keep, 1, 315360000)`, `args.int(keep, 1, 315360001)`, in("internal/model", "^TestProperty$")},
	{"policy: the retention is read as frames", "policy/judge",
		`    numbers = string.sub(numbers, 1, -2 - #keep)`, `    numbers = string.gsub(numbers, '%d+,' .. keep .. '$', keep)`, suite("counting")},
	{"policy: the comma of the retention stays", "policy/judge",
		`-2 - #keep`, `-1 - #keep`, lanes},
	{"create: the retention of the policy is lost", "create.judge",
		`    if keep ~= '' then c.retention = keep end`, ``, lanes},
	{"home: the lane comes before the policy", "indexes.kept",
		`local keep = own and tonumber(own) or lane.of(ctx, route).keep`, `local keep = lane.of(ctx, route).keep > 0 and lane.of(ctx, route).keep or tonumber(own or '0')`, lanes},
	{"home: retention is in ms", "indexes.kept",
		`keep > 0 and keep * 1000 or`, `keep > 0 and keep or`, lanes},
	{"home: an end does not lower wake", "indexes.apply",
		`    if not ctx.wake or ctx.wake > ctx.moves.purge then root.need(ctx, ctx.moves.purge) end`, ``, suite("counting")},
	{"home: routes are not counted", "route.used",
		`  ctx.moves.used[id] = (ctx.moves.used[id] or 0) + change`, ``, lanes},
	{"home: a batch counts once", "route.used",
		`  ctx.moves.used[id] = (ctx.moves.used[id] or 0) + change`, `  ctx.moves.used[id] = change`, suite("create")},
	{"home: a route goes with the last but one", "indexes.apply",
		`keys.route_use(r), route_id, change) <= 0`, `keys.route_use(r), route_id, change) <= 1`, lanes},
	{"home: a route never goes", "indexes.apply",
		`keys.route_use(r), route_id, change) <= 0`, `keys.route_use(r), route_id, change) < 0`, lanes},
	{"home: what is suspended is listed nowhere", "indexes.park",
		`  redis.call('ZADD', keys.parked(ctx.r), at or ctx.t, id)`, ``, suite("suspend")},
	{"home: what is resumed stays parked", "indexes.leave",
		`    redis.call('ZREM', keys.parked(ctx.r), id)`, ``, suite("suspend")},
	{"route: a removed one keeps its id", "indexes.forget",
		`  if row ~= '' and redis.call('HGET', keys.route_ids(r), row) == id then redis.call('HDEL', keys.route_ids(r), row) end`, ``, lanes},
	{"route: a removed one is still told", "indexes.forget",
		`    redis.call('ZREM', keys.route_log(r), id)`, ``, lanes},
	{"route: a removed one keeps its count", "indexes.forget",
		`  redis.call('HDEL', keys.route_use(r), id)`, ``, lanes},
	{"route: ids are used again", "route/add_class",
		`reply.int(redis.call('HINCRBY', ctx.r, 'routes', 1))`, `reply.int(redis.call('ZCARD', keys.route_log(ctx.r)) + 1)`, lanes},
	{"purge: the route is not told", "purge.run",
		`route.used(ctx, c.route, -1)`, `route.used(ctx, c.route, 0)`, lanes},
	{"purge by hand: the route is not told", "ff_purge_execution",
		`  flow.apply(ctx)
`, ``, in("internal/model", "^TestProperty$")},
	{"tick: what ended is kept a millisecond longer", "ff_tick_do.retention",
		`keys.done(ctx.r), '-inf', reply.int(ctx.now), 'LIMIT'`, `keys.done(ctx.r), '-inf', reply.int(ctx.now - 1), 'LIMIT'`, lanes},
	{"tick: nothing is ever purged", "ff_tick",
		`  if ff_tick_do.is_due(ctx, keys.done(ctx.r)) then ff_tick_do.retention(ctx, math.max(20, 100 - n.touched), n) end`, ``, lanes},
	{"tick: a longer retention of the lane comes too late", "ff_tick_do.retention",
		`      if at > ctx.now and not c.purged_until then
        redis.call('ZADD', keys.done(ctx.r), reply.int(at), due[i])
      elseif`, `      if`, lanes},
	{"tick: what is kept longer is not filed anew", "ff_tick_do.retention",
		`        redis.call('ZADD', keys.done(ctx.r), reply.int(at), due[i])
      elseif`, `        n.touched = n.touched
      elseif`, lanes},
	{"tick: a stray entry of what ended stays for ever", "ff_tick_do.retention",
		`      redis.call('ZREM', keys.done(ctx.r), due[i])`, ``, suite("counting")},
	{"tick: a purge leaves no tombstone", "ff_tick_do.retention",
		`purge.run(ctx, c, due[i], purge.keep(due[i]))`, `purge.run(ctx, c, due[i], 1)`, lanes},
	{"tick: the tombstone of a key goes after an hour", "purge.keep",
		`and 3600000 or 86400000`, `and 3600000 or 3600000`, suite("retention")},
	{"tick: the tombstone of a random id stays for a day", "purge.keep",
		`and 3600000 or 86400000`, `and 86400000 or 86400000`, suite("retention")},
	{"tick: a purge does not reach the routes", "ff_tick_do.retention",
		`        n.more = true
      end
    end
  end
  flow.apply(ctx)`, `        n.more = true
      end
    end
  end`, lanes},
	{"tick: purges wait for everything else", "ff_tick_do.retention",
		`    if n.touched >= most then`, `    if n.touched >= 100 then`, suite("replicas")},
	{"tick: a purge of many attempts counts as one", "ff_tick_do.retention",
		`n.touched + 1 + math.floor(math.min(200, core.started(c)) / 4)`, `n.touched + 1`, suite("counting")},
	{"tick: sleeps although something is to be purged", "ff_tick_do.later",
		`    local at = head[2] and args.score(head[2]) + (i == 3 and 3600000 or 0)`, `    local at = i ~= 2 and head[2] and args.score(head[2]) + (i == 3 and 3600000 or 0)`, suite("retention|counting")},
	{"tick: sleeps although a schedule is due", "ff_tick_do.later",
		`    local at = head[2] and args.score(head[2]) + (i == 3 and 3600000 or 0)`, `    local at = i ~= 1 and head[2] and args.score(head[2]) + (i == 3 and 3600000 or 0)`, suite("schedules")},
	{"tick: wakes every ten seconds for a purge of tomorrow", "ff_tick_do.next_due",
		`if at and i < 5 then at = math.min(at, ctx.now + root.span) end`, `if at then at = math.min(at, ctx.now + root.span) end`, lanes},
	{"keys: the registry of workers leaves the slot", "lua/lib/keys.lua",
		`return r .. ':workers' end`, `return 'workers' end`, Test{"./internal/conformance", "^TestCluster$/^(replicas)$"}},
}
