package main

const (
	suspensionFile = "lua/lib/suspension.lua"
	suspendFile    = "lua/suspend/ff_suspend_execution.lua"
	pendFile       = "lua/suspend/ff_create_pending_waitpoint.lua"
	unpendFile     = "lua/suspend/ff_close_waitpoint.lua"
	reissueFile    = "lua/suspend/ff_reissue_token.lua"
	resumeFile     = "lua/suspend/ff_resume_execution.lua"
	approveFile    = "lua/suspend/ff_approve_waitpoint.lua"
	setKeysFile    = "lua/suspend/ff_set_token_keys.lua"
)

// suspendMutants break how an attempt stops, what ends that, and what it leaves behind.
var suspendMutants = []Mutant{
	{"suspension: one that told nobody anything is remembered", "20 §3.11", suspensionFile,
		`if not u.nm or not c.sg then return nil end`, `if not u.nm then return nil end`, waits},
	{"suspension: a name waited for twice is counted twice", "design §12", suspensionFile,
		`  if redis.call('HEXISTS', key, name) == 1 then return nil end`, ``, waits},
	{"suspension: 1,001 steps", "design §12", suspensionFile,
		`>= 1000 then`, `> 1000 then`, waits},
	{"suspension: 8 MiB of steps and a bit", "design §12", suspensionFile,
		`if total > 8388608 then`, `if total > 8388608 + 200 then`, waits},
	{"suspension: matched signals of the one before stay", "20 §3.11", suspensionFile,
		`  redis.call('UNLINK', keys.satisfied(ctx.r, id), keys.matched(ctx.r, id))`,
		`  redis.call('UNLINK', keys.satisfied(ctx.r, id))`, waits},
	{"suspension: fields of the one before stay", "20 §3.11", suspensionFile,
		`  all.u = u
`, `  for field, value in pairs(u) do all.u[field] = value end
`, waits},
	{"suspension: its waitpoints take the times of the next", "ADR 32", suspensionFile,
		`  for wid, w in pairs(points) do waitpoint.save(ctx, id, wid, w) end`, ``, waits},
	{"suspension: the history forgets all but the last", "ADR 32", suspensionFile,
		`    history.push(ctx, id, suspension.events(c, all.u))`, ``, waits},
	{"suspension: the next holder is told as who suspended", "ADR 32", suspensionFile,
		`u.ss, u.la = c.ss, c.la end`, `u.la = c.la end`, waits},
	{"suspension: closed, but parts of its condition stay met", "20-S2", suspensionFile,
		`    redis.call('UNLINK', keys.satisfied(ctx.r, id))`, ``, waits},
	{"suspension: an operator's resumption brings signals", "20-S14", suspensionFile,
		`    u.gm, u.gb = e.signal and '1' or '0',`, `    u.gb =`, waits},
	{"suspension: closed, but its waitpoints are open", "20-S2", suspensionFile,
		`    if w and waitpoint.open(w) then`, `    if false then`, waits},
	{"suspension: only its first waitpoint is closed", "20-S2", suspensionFile,
		`  for i = 1, #list do
    local w = e.known and e.known[list[i]]`, `  for i = 1, math.min(1, #list) do
    local w = e.known and e.known[list[i]]`, waits},
	{"suspension: closed waitpoints are counted as open", "20 §8", suspensionFile,
		`local open = tonumber(c.wp or '0') - suspension.shut(ctx, c, id, u, e)`, `suspension.shut(ctx, c, id, u, e)
  local open = tonumber(c.wp or '0')`, waits},
	{"suspend: what is answered at once leaves a waitpoint open", "20 §8", suspendFile,
		`    waitpoint.count(ctx, c, f.id, -closed)`, ``, waits},
	{"resume: the timeout's alarm stays", "10-X4", suspensionFile,
		`    home.alarm(ctx, c.dl and tonumber(c.dl), id)
  end
  record.move`, `  end
  record.move`, waits},
	{"resume: the deadline's alarm goes", "10-X4", suspensionFile,
		`    home.alarm(ctx, c.dl and tonumber(c.dl), id)
  end
  record.move`, `    home.alarm(ctx, nil, id)
  end
  record.move`, waits},
	{"resume: the timeout stays on the core", "10-X4", suspensionFile,
		`    fields.tt = false
    home.alarm`, `    home.alarm`, waits},
	{"resume: without the delay of its policy", "20-S13", suspensionFile,
		`e.delay or tonumber(u.rd or '0')`, `e.delay or 0`, waits},
	{"resume: nobody is told", "design §1", suspensionFile,
		`  core.announce(ctx, c, id, code)
end

-- finish`, `end

-- finish`, waits},
	{"resume: nothing in the history", "performance §3.5", suspensionFile,
		`  if resumed[u.cs] then`, `  if false then`, waits},
	{"resume: what it told is not brought along", "20 §3.11", suspensionFile,
		`  fields.sg, fields.wp = suspension.told(u), open`, `  fields.sg, fields.wp = false, open`, waits},
	{"finish: the suspension stays open", "20 §6", suspensionFile,
		`  if core.suspended(c) then
    local cause`, `  if false then
    local cause`, waits},
	{"finish: handed out waitpoints stay open", "20 §6.2", suspensionFile,
		`  waitpoint.abandon(ctx, c, id, 'attempt_ended')`, ``, waits},

	{"suspend: by anybody", "10-D15", suspendFile,
		`ff_suspend.repeated(ctx, c, f, q) or fence.check(ctx, c, f) or`, `ff_suspend.repeated(ctx, c, f, q) or`, suite("errors|suspend|signal")},
	{"suspend: a repeat is refused", "20-S10", suspendFile,
		`ff_suspend.repeated(ctx, c, f, q) or fence.check`, `fence.check`, suite("repeat|suspend|signal")},
	{"suspend: a repeat by another holder", "20-S10", suspensionFile,
		` and (c.e ~= f.epoch or c.ss == f.session and c.cl == f.claim)`, ``, waits},
	{"suspend: a repeat under another fence", "20-S10", suspendFile,
		`not suspension.held(c, u, f) or`, ``, waits},
	{"suspend: a repeat is known by its id only", "20-S10", suspendFile,
		`(u.id ~= q.id and (q.request == '' or u.rq ~= q.request))`, `u.id ~= q.id`, waits},
	{"suspend: on a waitpoint whose time is over", "20 §3.2", suspendFile,
		` or (w.state == 'p' and tonumber(w.expires) <= ctx.now)`, ``, waits},
	{"suspend: on a waitpoint that is no longer pending", "20 §3.2", suspendFile,
		`      if w.state ~= 'p' and w.state ~= 'x' then return reply.err('waitpoint_not_pending', b.key) end`, ``, waits},
	{"suspend: on a waitpoint by another key", "20-S31", suspendFile,
		`      if w.key ~= b.key then return reply.err('waitpoint_key_mismatch', b.key) end`, ``, waits},
	{"suspend: over a waitpoint that is there", "20 §3.2", suspendFile,
		`      if w then return reply.err('waitpoint_already_exists', b.key) end`, ``, waits},
	{"suspend: with a token of no key", "20 §2.4", suspendFile,
		`      local answer = token.mintable(ctx, b.kid, q.timeout and ctx.now + q.timeout)
      if answer then return answer end`, ``, waits},
	{"suspend: the same waitpoint twice", "20 §3.2", suspendFile,
		`if not wrong and (ids[wid] or names[w.key]) then`, `if false then`, waits},
	{"suspend: the expiry of a pending one stays", "20 §3.2", suspendFile,
		`    if w.state == 'p' then redis.call('ZREM', keys.pending(ctx.r), id .. ':' .. wid) end`, ``, waits},
	{"suspend: waitpoints end with their old lifetime", "20 §1.2", suspendFile,
		`ctx.t, u.to or '', q.id, w`, `ctx.t, w.expires or u.to or '', q.id, w`, waits},
	{"suspend: fresh waitpoints are not counted", "20 §8", suspendFile,
		`  if open > 0 then fields.wp = reply.int(open) end`, ``, waits},
	{"suspend: closed waitpoints are never forgotten", "20 §8", suspendFile,
		`  if c.uw then waitpoint.prune(ctx, id, known) end`, ``, waits},
	{"suspend: the attempt's time starts anew", "20-S35", suspendFile,
		`  if c.ta then fields.tr, fields.ta = reply.int(math.max(1, tonumber(c.ta) - ctx.now)), false end`, ``, waits},
	{"suspend: a deadline before the timeout has no alarm", "10-X4", suspendFile,
		`math.min(due, deadline)`, `due`, waits},
	{"suspend: the alarm of the attempt stays", "20-S35", suspendFile,
		`  if first or c.ta then home.alarm`, `  if first then home.alarm`, waits},
	{"suspend: the next claim is told of the wait before", "20 §3.11", suspendFile,
		`  if c.sg then fields.sg = false end`, ``, waits},
	{"suspend: stays held", "10-X3", suspendFile,
		`  home.leave(ctx, c, f.id)`, ``, waits},
	{"suspend: what the wait before was answered is lost", "20-S8", suspendFile,
		`suspension.replace(ctx, c, id, u, kept)`, `suspension.replace(ctx, c, id, u, nil)`, waits},
	{"suspend: gives up the lease although nothing is missing", "20 §3.2", suspendFile,
		`  if not plan.satisfied then ff_suspend.park(ctx, c, f, q) end`, `  ff_suspend.park(ctx, c, f, q)`, waits},
	{"suspend: waits for a time that never comes", "20 §3.2", suspendFile,
		`if nodes[1].op == 'T' and not q.timeout then`, `if false then`, waits},
	{"suspend: fresh waitpoints are not counted when nothing is missing", "20 §8", suspendFile,
		`    if fresh > 0 then waitpoint.count(ctx, c, f.id, fresh) end`, ``, waits},
	{"suspend: the record before shows through", "20 §3.11", suspensionFile,
		`    redis.call('UNLINK', keys.satisfied(ctx.r, id), keys.matched(ctx.r, id))
    inbox.fade`, `    inbox.fade`, waits},
	{"suspend: nobody is told", "design §1", suspendFile,
		`  core.announce(ctx, c, f.id, suspension.codes[q.reason])`, ``, waits},
	{"suspend: nothing in the history", "performance §3.5", "lua/read/ff_read_history.lua",
		`  for i = 1, #told do events[#events + 1] = told[i] end`, ``, waits},

	{"pend: by anybody", "10-D15", pendFile,
		`  if answer then return answer end
  local step`, `  local step`, suite("errors|suspend|signal")},
	{"pend: a name gets a second waitpoint", "20 §3.1", pendFile,
		`    answer = c.sb and ff_pend.recorded(ctx, f.id, step)`, ``, waits},
	{"pend: over a waitpoint that is there", "20 §3.1", pendFile,
		`    return reply.err('waitpoint_already_exists', wid)`, ``, waits},
	{"pend: without room", "20 §8", pendFile,
		`if not waitpoint.room(c) then`, `if false then`, waits},
	{"pend: with a token of no key", "20 §2.4", pendFile,
		`  answer = token.mintable(ctx, w.kid, tonumber(w.expires))
  if answer then return answer end`, ``, waits},
	{"pend: the bytes of its step are not counted", "design §12", pendFile,
		`    record.set(ctx, f.id, 'sb', reply.int(total))`, ``, waits},
	{"pend: the step of a forgotten waitpoint is counted twice", "design §12", pendFile,
		`    if old then total = total - #step - #old end`, ``, waits},
	{"pend: 1,001 steps", "design §12", pendFile,
		`>= 1000 then`, `> 1000 then`, waits},
	{"pend: closed waitpoints are never forgotten", "20 §8", pendFile,
		`  waitpoint.prune(ctx, f.id, {})`, ``, waits},

	{"close: by anybody", "10-D15", unpendFile,
		`  if answer then return answer end`, ``, suite("errors|suspend|signal")},
	{"close: one that was closed before is closed again", "20 §3.9", unpendFile,
		`  if not waitpoint.open(w) then return reply.already('closed') end`, ``, suite("repeat|suspend|signal")},
	{"close: its step stays", "20 §3.9", unpendFile,
		`  ff_close.forget(ctx, c, f.id, wid)`, ``, waits},
	{"close: the bytes of its step stay", "design §12", unpendFile,
		`tonumber(c.sb) - #step - #value`, `tonumber(c.sb) - #value`, waits},
	{"close: still counted", "20 §8", unpendFile,
		`  waitpoint.count(ctx, c, f.id, -1)`, ``, waits},
	{"waitpoint: the step of another is taken for its own", "20 §3.9", waitpointFile,
		`    if value and string.sub(value, 1, 36) == wid then`, `    if value then`, waits},

	{"reissue: the old key still waits for it", "20-S43", reissueFile,
		`  redis.call('ZREM', keys.open(ctx.r, w.kid), id .. ':' .. wid)`, ``, waits},
	{"reissue: the new key does not know of it", "20-S43", reissueFile,
		`  waitpoint.index(ctx, id, wid, w)`, ``, waits},
	{"reissue: the handler keeps the dead token", "20-S43", reissueFile,
		`  ff_reissue.step(ctx, c, id, wid, w)
  history`, `  history`, waits},
	{"reissue: the bytes of its step", "design §12", reissueFile,
		`  record.set(ctx, id, 'sb', reply.int(tonumber(c.sb) + #new - #value))`, ``, waits},
	{"reissue: for a closed waitpoint", "20-S43", reissueFile,
		`  if not waitpoint.open(w) or core.terminal(c) then return reply.err('waitpoint_not_open', w.reason) end`, ``, waits},
	{"reissue: with a token of no key", "20 §2.4", reissueFile,
		`  local answer = token.mintable(ctx, kid, w.expires ~= '' and tonumber(w.expires) or nil)
  if answer then return answer end`, ``, waits},
	{"reissue: a repeat reissues again", "design §2.8", reissueFile,
		`  if w.digest == digest then return reply.already(wid, w.key) end`, ``, suite("repeat|suspend|signal")},

	{"operator: a repeated request resumes the next suspension", "design §2.8", resumeFile,
		`  if c.rw == request then return reply.already(c.s, u.id) end`, ``, suite("repeat|suspend|signal")},
	{"operator: an old request resumes a later suspension", "design §2.8", resumeFile,
		`core = { rw = request } })`, `core = {} })`, waits},
	{"operator: a repeated approval answers the next wait", "20-S33", approveFile,
		`    if o.key == which and signal.known(ctx, id, other, g) then return other, o end`, ``, suite("suspend again")},
	{"suspend: early signals of an expired waitpoint are lost", "20-S41", suspendFile,
		`      if expired and w.signals == '0' then`, `      if expired then`, suite("suspend again")},
	{"suspend: an expired waitpoint may be waited on", "20 §11 #20", suspendFile,
		`  if q.expired and not plan.satisfied then return reply.err('pending_waitpoint_expired', q.expired) end`, ``, waits},
	{"keys: a dead key may come back under its id", "20-S18", setKeysFile,
		`  if mode == 'rotate' and current and kid ~= current and not (known and token.good(ctx, expiry)) and`, `  if false and`, suite("suspend again")},
	{"operator: resumes another suspension than the one meant", "20 §3.7", resumeFile,
		`  if expected ~= '' and expected ~= u.id then return reply.err('suspension_changed', u.id) end`, ``, waits},
	{"operator: resumes what is not suspended", "20 §3.7", resumeFile,
		`  if not core.suspended(c) then return reply.err('execution_not_suspended', c.s) end`, ``, suite("golden|suspend|signal")},
	{"operator: what is resumed is not queued", "10-X1", resumeFile,
		`  flow.apply(ctx)`, ``, waits},
	{"operator: a policy is taken for one", "20 §3.7", resumeFile,
		`trigger == 'operator' and 'resumed_by_operator' or 'resumed'`, `'resumed_by_operator'`, waits},
	{"approve: by nobody", "20-S33", approveFile,
		` or g.source == '' then`, ` then`, waits},
	{"approve: whoever says to be something else", "20-S33", approveFile,
		`g.source_type ~= 'operator' or `, ``, waits},
	{"approve: a closed waitpoint hides the open one of its key", "20-S33", approveFile,
		`(not w or waitpoint.open(o) or`, `(not w or`, waits},
	{"approve: the closed one before hides the last", "20-S33", approveFile,
		`tonumber(o.closed) > tonumber(w.closed)`, `tonumber(o.closed) < tonumber(w.closed)`, waits},

	{"keys: another secret under the same id", "20 §2.4", setKeysFile,
		`if known and known ~= fingerprint and`, `if false and`, waits},
	{"keys: a rotation strands waitpoints", "20-S43", setKeysFile,
		`needed > ctx.now + grace and force == '0'`, `false`, waits},
	{"keys: a forced rotation is refused", "20-S43", setKeysFile,
		`needed > ctx.now + grace and force == '0'`, `needed > ctx.now + grace`, waits},
	{"keys: the one before ends at once", "20 §2.4", setKeysFile,
		`' ' .. reply.int(ctx.now + grace))`, `' ' .. reply.int(ctx.now))`, waits},
	{"keys: none is ever forgotten", "20 §2.4", setKeysFile,
		`  return #gone
`, `  return 0
`, waits},
	{"keys: a seed replaces the current one", "20 §11 #13", setKeysFile,
		`  if mode == 'seed' and current and current ~= kid then return reply.already(current, token.good(ctx, expiry) and '1' or '0') end`, ``, waits},
	{"keys: a seed says that an ended key is good", "20 §11 #13", setKeysFile,
		`token.good(ctx, expiry) and '1' or '0'`, `'1'`, waits},
	{"keys: those that ended are listed", "20 §2.4", "lua/suspend/ff_list_token_keys.lua",
		` and token.good(ctx, tonumber(expiry)) then`, ` then`, waits},

	{"timeout: a millisecond late", "10 F3", tickFile,
		`core.suspended(c) and c.tt and tonumber(c.tt) <= ctx.now`, `core.suspended(c) and c.tt and tonumber(c.tt) < ctx.now`, waits},
	{"timeout: not counted", "design §8", tickFile,
		`    n.suspensions = n.suspensions + 1`, ``, waits},
	{"timeout: a resume delay never ends", "20 §3.4", tickFile,
		`, R2c = 'R1i' }`, ` }`, suite("suspend|signal|fuzz")},
	{"timeout: a pending waitpoint is not closed", "20 §3.9", tickFile,
		`      waitpoint.close(ctx, id, wid, w, 'x', 'pending_expired')`, ``, waits},
	{"timeout: an expired waitpoint is counted as open", "20 §8", tickFile,
		`      waitpoint.count(ctx, { wp = record.read(ctx, id).wp }, id, -1)`, ``, waits},
	{"timeout: pending waitpoints are never looked at", "20 §3.9", tickFile,
		`if ff_tick_do.is_due(ctx, keys.pending(ctx.r)) then`, `if false then`, waits},
	{"timeout: what is escalated comes again", "20 §11 #27", settleFile,
		`  u.to, u.bh = nil, nil`, `  u.to = nil`, waits},
	{"timeout: an escalated suspension keeps its time", "20 §11 #27", settleFile,
		`  record.clear(ctx, id, 'tt')
  local was`, `  local was`, waits},
	{"timeout: waitpoints of an escalated one end", "20-S40", settleFile,
		`    w.expires = ''`, ``, waits},
	{"timeout: an escalated one loses its deadline", "10-X4", settleFile,
		`  home.alarm(ctx, c.dl and tonumber(c.dl), id)
  history.add(ctx, c, id, 'escalated', was)`, `  home.alarm(ctx, nil, id)
  history.add(ctx, c, id, 'escalated', was)`, waits},
	{"timeout: no signal is made of it", "20-S11", settleFile,
		`    if u.bh == 'auto_resume_with_timeout_signal' then`, `    if false then`, waits},
	{"timeout: an automatic resumption is delayed", "20 §3.8", settleFile,
		`trigger = 'timeout', delay = 0,`, `trigger = 'timeout',`, waits},
	{"timeout: expires as a failure", "20 §3.8", settleFile,
		`(u.bh == 'expire' and 'T4' or 'T2')`, `'T2'`, waits},
	{"timeout: cancels as a failure", "20 §3.8", settleFile,
		`cancel and 'T3' or (`, `false or (`, waits},
	{"timeout: the attempt has no record", "20 §3.8", settleFile,
		`  settle.fold(ctx, c, id, cancel and 'ended_cancelled' or 'ended_failure', 'suspension_timeout',
    'no answer within the time limit (on timeout: ' .. u.bh .. ')')`, ``, waits},
	{"finish: the timeout of a suspension stays", "10-X4", settleFile,
		`if c.ta or c.tr or c.tt or c.du or c.gx then`, `if c.ta or c.tr or c.du or c.gx then`, waits},
	{"finish: the alarm of a suspension stays", "10-X4", settleFile,
		`  if c.dl or c.ta or c.tt or c.gx`, `  if c.dl or c.ta or c.gx`, waits},
	{"complete: handed out waitpoints stay open", "20 §6.2", settleFile,
		`  waitpoint.abandon(ctx, c, id, 'attempt_ended')
  home.unhold(ctx, c.ss, id)`, `  home.unhold(ctx, c.ss, id)`, suite("golden|suspend|signal")},
	{"finish: a suspended attempt has no record", "10-D38", settleFile,
		` or
      core.suspended(c)
end`, `
end`, suite("golden|suspend|signal")},
	{"finish: an attempt in its resume delay has no record", "10-D38", settleFile,
		` or c.s == 'R2c'`, ``, suite("golden|suspend|signal")},
	{"replay: steps of closed waitpoints are kept", "20 §3.1", replayFile,
		`  elseif c.sb and (c.uw or c.fl) then`, `  elseif false then`, waits},
	{"replay: dropped steps, but the last resumption is told", "design §4", replayFile,
		`    if c.sg then record.clear(ctx, id, 'sg') end`, ``, waits},
	{"claim: a resumption is not told", "20 §3.11", claimFile,
		`  if c.sg then
    resume = '2'`, `  if false then
    resume = '2'`, waits},
	{"claim: a resumption beyond the budget is sent", "design §6", claimFile,
		`    if tonumber(c.sg) <= room.bytes then`, `    if true then`, waits},
	{"step: names of the library", "design §12", stepFile,
		` or string.byte(name, 1) == 31 then`, ` then`, waits},
	{"purge: waitpoints and suspensions stay", "10-X5", purgeFile,
		`  if c.uw then waitpoint.purge(ctx, id) end`, ``, waits},
}
