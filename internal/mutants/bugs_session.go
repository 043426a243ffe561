package main

// sessionMutants break what keeps a session alive, what ends it, and what its holder is told.
var sessionMutants = []Mutant{
	{"session: alive at its very expiry", "session.read",
		`and s.exp > ctx.now`, `and s.exp >= ctx.now`, pinned("lease")},
	{"session: the sticky flag of death is not read", "session.read",
		`s.exp and not s.dead and s.exp > ctx.now`, `s.exp and s.exp > ctx.now`, suite("lease|operator")},
	{"session: a shorter lease is not indexed", "session.shorten",
		`exp < s.exp`, `exp > s.exp`, suite("lease")},
	{"session: a lost notice is not kept", "session.lost",
		`  redis.call('RPUSH', keys.lost(ctx.r, id), execution .. ' ' .. epoch .. ' ' .. cause)`, ``, suite("lease")},
	{"session: the generation of notices is not raised", "session.lost",
		`redis.call('HINCRBY', keys.session(ctx.r, id), 'lg', 1)`, `s.lg + 1`, suite("lease")},
	{"session: cause and epoch of a notice swapped", "session.lost",
		`epoch .. ' ' .. cause)`, `cause .. ' ' .. epoch)`, suite("lease")},
	{"session: the holder is not rung for a loss", "session.lost",
		`  publish.to(keys.doorbell(ctx.r, session.instance(id)), 'l')`, ``, suite("bell|lease")},
	{"session: the instance keeps the suffix", "session.instance",
		`'^(.*)~[^~]*$'`, `'^(.*)$'`, suite("bell")},

	{"renew: revives a dead session", "ff_session_renew",
		`if not s.alive then`, `if not s.exp then`, suite("lease|settle")},
	{"renew: forgets one notice too many", "ff_session_renew",
		`processed - s.lb, -1`, `processed - s.lb + 1, -1`, suite("lease")},
	{"renew: a page of 101 notices", "ff_session_renew",
		`LRANGE', lost, 0, 99`, `LRANGE', lost, 0, 100`, suite("lease")},
	{"renew: what a failover lost is not told again", "ff_session_renew",
		`if processed > s.lg then processed = s.lb end`, ``, suite("lease")},
	{"renew: does not remember what was processed", "ff_session_renew",
		`, 'lb', reply.int(processed))`, `)`, suite("lease")},
	{"renew: without notices it does not extend", "ff_session_renew",
		`    redis.call('HSET', key, 'exp', reply.int(ctx.now + ttl), 'ttl', reply.int(ttl))
    return`, `    return`, suite("lease")},
	{"renew: says more when there is none", "ff_session_renew",
		`generation < s.lg and '1'`, `generation <= s.lg and '1'`, suite("lease")},
	{"renew: a shorter lease is not indexed", "ff_session_renew",
		`  session.shorten(ctx, id, s, ctx.now + ttl)`, ``, suite("lease")},

	{"close: a session that holds work is closed", "ff_session_close",
		`if held > 0 then`, `if held > 1 then`, suite("lease|errors")},
	{"close: leaves no tombstone", "ff_session_close",
		`  redis.call('HSET', key, 'dead', '1')
  redis.call('EXPIRE', key, 600)`, `  redis.call('DEL', key)`, suite("lease|repeat")},
	{"close: stays in the index", "ff_session_close",
		`  redis.call('ZREM', keys.sessions(ctx.r), id)`, ``, suite("tick")},
	{"close: leaves the notices", "ff_session_close",
		`  redis.call('DEL', keys.lost(ctx.r, id))`, ``, suite("lease|interleavings")},
}
