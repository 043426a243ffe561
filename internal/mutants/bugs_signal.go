package main

const (
	signalFile    = "lua/lib/signal.lua"
	tokenFile     = "lua/lib/token.lua"
	deliverFile   = "lua/suspend/ff_deliver_signal.lua"
	conditionFile = "lua/lib/condition.lua"
	waitpointFile = "lua/lib/waitpoint.lua"
)

// waits are the topics that suspend and signal.
var waits = suite("suspend|signal|suspend seeds")

// signalMutants break what happens to a signal: who may bring it, whether it is a repeat, what it satisfies.
var signalMutants = []Mutant{
	{"deliver: a repeat is delivered again", "20 §1.6", signalFile,
		`  if again then return again end`, ``, waits},
	{"deliver: a repeat is recognised only while something waits", "20-S6", signalFile,
		`  if again then return again end
  local c = core.read(ctx, id)
  if core.terminal(c) then return reply.err('target_not_signalable', c.s) end`, `  local c = core.read(ctx, id)
  if core.terminal(c) then return reply.err('target_not_signalable', c.s) end
  if again then return again end`, waits},
	{"deliver: an end is told as a closed waitpoint", "20 §3.4", signalFile,
		`  if core.terminal(c) then return reply.err('target_not_signalable', c.s) end`, ``, suite("golden|suspend|signal")},
	{"deliver: a closed waitpoint takes signals", "20 §3.4", signalFile,
		`  if not waitpoint.open(w) then return reply.err('waitpoint_closed', w.reason, w.closed) end`, ``, waits},
	{"deliver: a pending waitpoint outlives its time", "20 §3.4", signalFile,
		`    if w.state == 'p' then return reply.err('waitpoint_closed', 'pending_expired', w.expires) end`, ``, waits},
	{"deliver: a pending waitpoint lives a millisecond longer", "10 F3", signalFile,
		`w.expires ~= '' and tonumber(w.expires) <= ctx.now`, `w.expires ~= '' and tonumber(w.expires) < ctx.now`, waits},
	{"deliver: nobody is told that a signal is late", "20 §11 #28", signalFile,
		`g.late = reply.int(ctx.now - tonumber(w.expires))`, `g.late = ''`, waits},
	{"deliver: signals without number", "20 §8", signalFile,
		`>= most_signals then`, `> most_signals then`, waits},
	{"deliver: signals of one millisecond have no order", "acceptance order", signalFile,
		`tonumber(c.gq or '0') + 1)`, `1)`, waits},
	{"deliver: a signal without a key counts with the others without one", "20 §4", conditionFile,
		`if n.kind == 's' then what = g.id end`, `if n.kind == 's' then what = g.key end`, waits},
	{"deliver: matched signals of any size", "20 §8", signalFile,
		`if #added > 0 and bytes > matched_bytes then`, `if false then`, waits},
	{"deliver: the suspension counts no signals", "20-S24", signalFile,
		`reply.int(tonumber(u.gn or '0') + 1)`, `reply.int(tonumber(u.gn or '0'))`, waits},
	{"deliver: a matched signal is not kept", "20 §3.11", signalFile,
		`    redis.call('HSET', keys.matched(ctx.r, id), g.id, text)`, ``, waits},
	{"deliver: a satisfied part is forgotten", "20 §4.3", signalFile,
		`  if #tokens > 0 then redis.call('HSET', keys.satisfied(ctx.r, id), unpack(tokens)) end`, ``, waits},
	{"deliver: an evaluated signal is not known again", "20 §1.6", signalFile,
		`  remember(ctx, id, wid, g)
  log(ctx, id, wid, g, '')`, `  log(ctx, id, wid, g, '')`, waits},
	{"deliver: the log keeps payloads twice", "20 §8", signalFile,
		`log(ctx, id, wid, g, '')`, `log(ctx, id, wid, g, g.payload)`, waits},
	{"deliver: what is resumed is not queued", "10-X1", deliverFile,
		`  flow.apply(ctx)
`, ``, waits},
	{"buffer: a signal too many", "20 §3.6", signalFile,
		`count >= buffered_signals`, `count > buffered_signals`, waits},
	{"buffer: any size", "20 §8", signalFile,
		`bytes > buffered_bytes`, `bytes > 10 * buffered_bytes`, waits},
	{"buffer: every waitpoint has a limit of its own", "20 §8", signalFile,
		`pairs(waitpoint.all(ctx, id)) do
    if other.state`, `pairs({ w }) do
    if other.state`, waits},
	{"buffer: bytes are not counted", "20 §8", signalFile,
		`reply.int(tonumber(w.bytes) + #text), ctx.t`, `w.bytes, ctx.t`, waits},
	{"repeat: an open waitpoint forgets deliveries", "20 §1.6", signalFile,
		`(not waitpoint.open(w) and tonumber(expiry)`, `(tonumber(expiry)`, waits},
	{"repeat: a closed waitpoint remembers for ever", "20 §1.6", signalFile,
		`(not waitpoint.open(w) and tonumber(expiry) <= ctx.now and first ~= g.id)`, `false`, waits},
	{"repeat: the sender's window is not its own", "20 §1.6", signalFile,
		`(g.key ~= '' and g.ttl or 86400000)`, `86400000`, waits},
	{"repeat: a key and an id are the same", "20 §1.6", signalFile,
		`return 'k' .. g.key`, `return 's' .. g.key`, waits},
	{"replay: signals behind the one that satisfies are taken", "20-S8", signalFile,
		`    if not plan.satisfied then
      local effect`, `    if true then
      local effect`, waits},
	{"replay: the first waitpoint comes first", "acceptance order", signalFile,
		`  if logs > 1 then`, `  if false then`, waits},
	{"replay: repeats are answered as buffered", "20-S24", signalFile,
		`    relabel(keys.delivered(r, id, list[at]), l)`, ``, waits},
	{"replay: early signals satisfy nothing for long", "20 §3.6", signalFile,
		`  if not plan.satisfied then
    chunks(plan.tokens`, `  if false then
    chunks(plan.tokens`, waits},
	{"replay: the waitpoint does not count its matches", "20-S24", signalFile,
		`    bound[at].matched = reply.int(l.matched)`, ``, waits},
	{"replay: every five hundredth signal is lost", "20 §3.6", signalFile,
		`math.min(first + 499, #list)`, `math.min(first + 498, #list)`, waits},
	{"log: more than 1,000 signals", "20 §8", signalFile,
		`'LTRIM', key, -1000, -1`, `'LTRIM', key, -1001, -1`, waits},
	{"signal: a payload of a byte too much", "20 §8", signalFile,
		`#g.payload > 65536`, `#g.payload > 65537`, waits},
	{"signal: names of the library", "20-S4", signalFile,
		`if g.name == '' or not condition.name(g.name) then`, `if g.name == '' then`, waits},

	{"token: a refusal is not counted", "refused tokens", tokenFile,
		`  redis.call('HINCRBY', keys.refusals(ctx.r), 'n', '1')`, ``, waits},
	{"token: a refusal is told of waitpoints that are there only", "20 §2.7", deliverFile,
		`bad[2] ~= 'hmac_secret_not_initialized' then`, `w then`, waits},
	{"token: made-up waitpoints are remembered without bound", "refused tokens", tokenFile,
		`  redis.call('ZREMRANGEBYRANK', keys.refused(ctx.r), '0', reply.int(-1 - most_refused))`, ``, waits},
	{"token: a waitpoint that is not there is told apart", "20 §2.7", tokenFile,
		`  if not w or not token.same(w.digest, digest)`, `  if not w then return reply.err('target_not_signalable') end
  if not token.same(w.digest, digest)`, waits},
	{"token: any will do", "20 §2.3", tokenFile,
		`not token.same(w.digest, digest)`, `#digest ~= 64`, waits},
	{"token: half of it will do", "20 §2.3", tokenFile,
		`for i = 1, #x do`, `for i = 1, 32 do`, waits},
	{"token: differences cancel out", "20 §2.3", tokenFile,
		`difference + d * d`, `difference + d`, waits},
	{"token: it outlives its key", "20 §2.3", tokenFile,
		`  if not token.good(ctx, expiry) then return reply.err('token_expired') end`, ``, waits},
	{"token: an unknown key verifies", "20 §2.3", tokenFile,
		`  if not expiry then return reply.err('invalid_token') end
  if not token.good(ctx, expiry)`, `  if expiry and not token.good(ctx, expiry)`, waits},
	{"token: its key is good a millisecond longer", "20 §2.4", tokenFile,
		`expiry > ctx.now`, `expiry >= ctx.now`, waits},
	{"token: strangers learn that it has expired", "20 §2.7", tokenFile,
		`  if not w or not token.same(w.digest, digest) then return reply.err('invalid_token') end
  local state = kids['k:' .. w.kid]`, `  if not w then return reply.err('invalid_token') end
  local state = kids['k:' .. w.kid]
  local ends = state and tonumber(string.match(state, '^%x+ (%d+)$') or '1')
  if ends and not token.good(ctx, ends) then return reply.err('token_expired') end
  if not token.same(w.digest, digest) then return reply.err('invalid_token') end`, waits},
	{"token: minted under any key", "20 §2.4", tokenFile,
		`  if expiry == 0 or (expiry and until_ms and until_ms < expiry) then return nil end`, `  if v[1] then return nil end`, waits},
	{"token: minted under the current key only", "20 §11 #46", tokenFile,
		`  if expiry == 0 or (expiry and until_ms and until_ms < expiry) then return nil end`, `  if kid == v[1] then return nil end`, waits},
	{"token: signs longer than its key is good", "20-S43", tokenFile,
		`(expiry and until_ms and until_ms < expiry)`, `token.good(ctx, expiry)`, suite("suspend again")},
	{"token: nobody notices that there is no key", "20 §11 #14", tokenFile,
		`  if not kids.current then return reply.err('hmac_secret_not_initialized') end`, ``, waits},

	{"condition: more signals than slots", "20-S7", conditionFile,
		`n.need > #n.names`, `n.need > 64`, waits},
	{"condition: more waitpoints than there are", "20 §4.3", conditionFile,
		`  if n.kind == 'w' and n.need > #p - 4 then return 'count_exceeds_waitpoint_set' end`, ``, waits},
	{"condition: more members than there are", "20-S7", conditionFile,
		`n.need > #n.members`, `n.need > 32`, waits},
	{"condition: five levels", "20 §4.3", conditionFile,
		`n.depth > 4`, `n.depth > 5`, waits},
	{"condition: 33 nodes", "20 §4.3", conditionFile,
		`#lines > 32`, `#lines > 33`, waits},
	{"condition: a node that leads nowhere", "20 §4.3", conditionFile,
		`if not taken[i] then`, `if false then`, waits},
	{"condition: a waitpoint that no node names", "20-S31", conditionFile,
		`if not nodes[#nodes].uses[w] then`, `if false then`, waits},
	{"condition: a node with two parents", "20 §4.3", conditionFile,
		`if not m or taken[m] then`, `if not m then`, waits},
	{"condition: a waitpoint counted twice", "20 §4.3", conditionFile,
		`if not w or n.uses[w] then`, `if not w then`, waits},
	{"condition: a wildcard takes what a name waits for", "20-S38", conditionFile,
		`        if n.names[s] == name then return t end`, ``, waits},
	{"condition: a slot is filled twice", "20 §4.2", conditionFile,
		`      if not has(state, t) then`, `      if true then`, waits},
	{"condition: stored parts are not looked up", "20 §4.3", conditionFile,
		`redis.call('HEXISTS', state.key, t) == 1 or false`, `false`, waits},
	{"condition: sources that look alike are one", "20 §4.3", conditionFile,
		`reply.int(#g.source_type) .. ':' .. g.source_type .. g.source`, `g.source_type .. g.source`, waits},
	{"condition: two counts share what satisfies them", "20-S25", conditionFile,
		`local t = i .. US .. what`, `local t = '1' .. US .. what`, waits},
	{"condition: a count goes on when it has enough", "20 §4.3", conditionFile,
		`(state.counts[i] or 0) >= n.need or has(state, t)`, `has(state, t)`, waits},
	{"condition: a count takes any name", "20 §4.3", conditionFile,
		`  if n.name ~= '' and n.name ~= g.name then return nil end`, ``, waits},
	{"condition: one signal is enough", "20 §4.3", conditionFile,
		`n.need and have >= n.need or false`, `have > 0`, waits},
	{"condition: a duplicate is told as ignored", "20 §3.4", conditionFile,
		`fits and 'appended_to_waitpoint_duplicate' or 'signal_ignored_matcher_failed'`, `'signal_ignored_matcher_failed'`, waits},
	{"condition: any waitpoint fills the slots of one", "20 §4.3", conditionFile,
		`if n.op == 'L' and n.wp == w then`, `if n.op == 'L' then`, waits},
	{"condition: any waitpoint is counted", "20 §4.3", conditionFile,
		`if n.op == 'C' and n.uses[w] then`, `if n.op == 'C' then`, waits},
	{"condition: names of the library", "20-S4", conditionFile,
		` and string.sub(text, 1, 2) ~= '__'`, ``, waits},

	{"waitpoint: 65 are open", "20 §8", waitpointFile,
		`tonumber(c.wp or '0') < most_open`, `tonumber(c.wp or '0') <= most_open`, waits},
	{"waitpoint: closed, but its expiry stays", "10-X5", waitpointFile,
		`  if w.state == 'p' then redis.call('ZREM', keys.pending(ctx.r), id .. ':' .. wid) end`, ``, waits},
	{"waitpoint: closed, but its key still waits for it", "20-S43", waitpointFile,
		`  redis.call('ZREM', keys.open(ctx.r, w.kid), id .. ':' .. wid)
  w.state`, `  w.state`, waits},
	{"waitpoint: pending ones outlive their execution", "20 §6.2", waitpointFile,
		`    if waitpoint.open(w) then
      local member`, `    if w.state == 'a' then
      local member`, waits},
	{"waitpoint: more are remembered than there may be", "20 §8", waitpointFile,
		`<= most_kept then return end`, `<= most_kept + 40 then return end`, waits},
	{"waitpoint: signals of forgotten ones stay", "10-X5", waitpointFile,
		`    redis.call('UNLINK', keys.signals(ctx.r, id, closed[i].id), keys.delivered(ctx.r, id, closed[i].id))`, ``, waits},
	{"waitpoint: the one closed last is forgotten first", "20 §8", waitpointFile,
		`return a.at < b.at`, `return a.at > b.at`, waits},
	{"waitpoint: a purge leaves signals", "10-X5", waitpointFile,
		`gone[2 * i] = keys.signals(r, id, ids[i]), keys.delivered(r, id, ids[i])`, `gone[2 * i] = keys.delivered(r, id, ids[i]), keys.delivered(r, id, ids[i])`, waits},
	{"waitpoint: a purge leaves the suspension", "10-X5", waitpointFile,
		`  waits.forget(ctx, id)`, ``, waits},
	{"waitpoint: a purge leaves the matched signals", "10-X5", waitpointFile,
		`keys.satisfied(r, id), keys.matched(r, id))`, `keys.satisfied(r, id))`, waits},
	{"waitpoint: not counted", "20 §8", waitpointFile,
		`  waitpoint.count(ctx, c, id, 1)`, ``, waits},
	{"waitpoint: one without end needs its key no more", "20-S43", waitpointFile,
		`or '9999999999999'`, `or '0'`, waits},
}
