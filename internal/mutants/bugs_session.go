package main

const (
	sessionFile = "lua/lib/session.lua"
	renewFile   = "lua/worker/ff_session_renew.lua"
	closeFile   = "lua/worker/ff_session_close.lua"
)

// sessionMutants break what keeps a session alive, what ends it, and what its holder is told.
var sessionMutants = []Mutant{
	{"session: alive at its very expiry", "10-F3", sessionFile,
		`and s.exp > ctx.now`, `and s.exp >= ctx.now`, pinned("lease")},
	{"session: the sticky flag of death is not read", "10-F6, design §6", sessionFile,
		`s.exp and not s.dead and s.exp > ctx.now`, `s.exp and s.exp > ctx.now`, suite("lease|operator")},
	{"session: a shorter lease is not indexed", "design §6", sessionFile,
		`exp < s.exp`, `exp > s.exp`, suite("lease")},
	{"session: a lost notice is not kept", "design §6 no deaf holder", sessionFile,
		`  redis.call('RPUSH', keys.lost(ctx.r, id), execution .. ' ' .. epoch .. ' ' .. cause)`, ``, suite("lease")},
	{"session: the generation of notices is not raised", "design §6 no deaf holder", sessionFile,
		`redis.call('HINCRBY', keys.session(ctx.r, id), 'lg', 1)`, `s.lg + 1`, suite("lease")},
	{"session: cause and epoch of a notice swapped", "design §6 no deaf holder", sessionFile,
		`epoch .. ' ' .. cause)`, `cause .. ' ' .. epoch)`, suite("lease")},
	{"session: the holder is not rung for a loss", "design §6 no deaf holder", sessionFile,
		`  publish.to(keys.bell(ctx.r, session.instance(id)), 'l')`, ``, suite("bell|lease")},
	{"session: the instance keeps the suffix", "design §6 doorbell", sessionFile,
		`'^(.*)~[^~]*$'`, `'^(.*)$'`, suite("bell")},

	{"renew: revives a dead session", "10-F6", renewFile,
		`if not s.alive then`, `if not s.exp then`, suite("lease|settle")},
	{"renew: forgets one notice too many", "design §6 no deaf holder", renewFile,
		`processed - s.lb, -1`, `processed - s.lb + 1, -1`, suite("lease")},
	{"renew: a page of 101 notices", "design §6 no deaf holder", renewFile,
		`LRANGE', lost, 0, 99`, `LRANGE', lost, 0, 100`, suite("lease")},
	{"renew: what a failover lost is not told again", "design §6 no deaf holder", renewFile,
		`if processed > s.lg then processed = s.lb end`, ``, suite("lease")},
	{"renew: does not remember what was processed", "design §6 no deaf holder", renewFile,
		`, 'lb', reply.int(processed))`, `)`, suite("lease")},
	{"renew: without notices it does not extend", "10 §9 #26", renewFile,
		`    redis.call('HSET', key, 'exp', reply.int(ctx.now + ttl), 'ttl', reply.int(ttl))
    return`, `    return`, suite("lease")},
	{"renew: says more when there is none", "design §6 no deaf holder", renewFile,
		`generation < s.lg and '1'`, `generation <= s.lg and '1'`, suite("lease")},
	{"renew: a shorter lease is not indexed", "design §6", renewFile,
		`  session.shorten(ctx, id, s, ctx.now + ttl)`, ``, suite("lease")},

	{"close: a session that holds work is closed", "design §6", closeFile,
		`if held > 0 then`, `if held > 1 then`, suite("lease|errors")},
	{"close: leaves no tombstone", "design §6", closeFile,
		`  redis.call('HSET', key, 'dead', '1')
  redis.call('EXPIRE', key, 600)`, `  redis.call('DEL', key)`, suite("lease|repeat")},
	{"close: stays in the index", "10-X2", closeFile,
		`  redis.call('ZREM', keys.sessions(ctx.r), id)`, ``, suite("ticking")},
	{"close: leaves the notices", "10-X5", closeFile,
		`  redis.call('DEL', keys.lost(ctx.r, id))`, ``, suite("lease|interleave")},
}
