package main

const (
	gateFile         = "lua/lib/gate.lua"
	budgetFile       = "lua/lib/budget.lua"
	quotaFile        = "lua/lib/quota.lua"
	shareFile        = "lua/lib/share.lua"
	reportFile       = "lua/admission/ff_report_usage.lua"
	putBudgetFile    = "lua/admission/ff_put_budget.lua"
	putQuotaFile     = "lua/admission/ff_put_quota.lua"
	askFile          = "lua/admission/ff_admit.lua"
	grantedFile      = "lua/admission/ff_claim_granted.lua"
	returnFile       = "lua/admission/ff_release_grant.lua"
	checkFile        = "lua/admission/ff_check_holds.lua"
	settleHolds      = "lua/admission/ff_settle_holds.lua"
	releaseFile      = "lua/admission/ff_release_holds.lua"
	checkBudgetsFile = "lua/admission/ff_check_budgets.lua"
	undoFile         = "lua/admission/ff_undo_usage.lua"
	refundFile       = "lua/admission/ff_release_usage.lua"
	adjustFile       = "lua/admission/ff_adjust_budget.lua"
	resetFile        = "lua/admission/ff_reset_budget.lua"
)

var (
	spending = in("internal/model", "^TestBudgets$")
	admitted = in("internal/model", "^TestQuotas$")
	deaths   = in("internal/model", "^TestGateDeaths$")
	gated    = in("internal/model", "^TestGates$")
	old      = in("internal/model", "^TestOldGrants$")
	gates    = suite("gates")
	fair     = suite("fair")
)

// gateMutants break budgets, quotas, grants and shares: what is counted, what is refused, who has a slot and when it comes back.
var gateMutants = []Mutant{
	{"budget: the last unit is refused", "70 §10 BS1", budgetFile,
		`if hard > 0 and used + deltas.by[dim] > hard then`, `if hard > 0 and used + deltas.by[dim] >= hard then`, spending},
	{"budget: a warning one refuses", "70 §1.2 BS16", budgetFile,
		`refused = hard_breach and b.d.md ~= 'warn'`, `refused = hard_breach`, spending},
	{"budget: a soft breach is told every time", "70 §10 BS5", budgetFile,
		`crossed = b.d['w:' .. dim] ~= b.d.rc }`, `crossed = true }`, spending},
	{"budget: exactly at a soft limit is a breach", "70 §4", budgetFile,
		`if soft > 0 and now > soft then`, `if soft > 0 and now >= soft then`, spending},
	{"budget: a total may pass 2^53", "70 §10 BS10", budgetFile,
		`if used + deltas.by[dim] > most then return nil, dim end`, ``, spending},
	{"budget: at its limit it has room", "70 §7.1", budgetFile,
		`budget.count(b, dim) >= hard and`, `budget.count(b, dim) > hard and`, spending},
	{"budget: a warning one is exhausted", "70 §10 BS16", budgetFile,
		`  if b.d.md == 'warn' then return nil end`, ``, spending},
	{"budget: periods drift", "70 §10 BS14", budgetFile,
		`budget.reset(ctx, b, missed, nx + (missed + 1) * iv, 'time')`, `budget.reset(ctx, b, missed, ctx.now + iv, 'time')`, spending},
	{"budget: a period begins a ms late", "70 §5", budgetFile,
		`if not nx or iv == 0 or ctx.now < nx then return end`, `if not nx or iv == 0 or ctx.now <= nx then return end`, spending},
	{"budget: a new period keeps what was used", "70 §5", budgetFile,
		`  b.used, b.rolled = {}, true`, `  b.rolled = true`, spending},
	{"budget: the usage of the last period stays", "70 §5", budgetFile,
		`  redis.call('DEL', keys.usage(ctx.r, b.name))
  redis.call('HSET', key, 'rc'`, `  redis.call('HSET', key, 'rc'`, spending},
	{"budget: a refund of an earlier period", "70 §10 BS15", budgetFile,
		`  if l.p ~= b.d.rc then return false end`, ``, spending},
	{"budget: a refund can be had twice", "70 §10 BS15", budgetFile,
		`  budget.some('HDEL', key, gone)`, ``, spending},
	{"budget: the ledger of one that was removed counts", "70-B8", budgetFile,
		`return l.b == b.d.ct and (tonumber`, `return (tonumber`, spending},
	{"budget: the ledger of what was purged is never forgotten", "70 §2.5", budgetFile,
		`(tonumber(l.x or '') or ctx.now + 1) > ctx.now and l or {}`, `l or {}`, suite("spend")},
	{"budget: the ledger of what was purged goes at once", "70 §2.5", budgetFile,
		`  if redis.call('EXISTS', key) == 0 or redis.call('HEXISTS', key, 'x') == 1 then return end`, `  if redis.call('UNLINK', key) == 1 then return end`, suite("spend")},
	{"budget: the ledger of what was purged stays for a week", "70 §2.5", budgetFile,
		`  redis.call('PEXPIRE', key, reply.int(budget.late))`, ``, suite("spend")},
	{"budget: what was purged is listed as a spender", "70 §2.5", budgetFile,
		`  redis.call('ZREM', keys.spenders(ctx.r, name), id)
  if`, `  if`, suite("spend")},
	{"report: a late one keeps the ledger of what was purged", "70 §2.5", reportFile,
		`forget and forget - ctx.now or math.max`, `math.max`, suite("spend")},
	{"report: what was purged becomes a spender again", "70 §2.5", reportFile,
		`  if not applied or forget then return end`, `  if not applied then return end`, suite("spend")},
	{"purge: budgets are not told", "70 §2.5", purgeFile,
		`  gate.purged(ctx, c.r, id)`, ``, suite("spend")},
	{"budget: woken ones wait still", "70 §5.3", budgetFile,
		`  if #list > 0 then redis.call('ZREM', key, unpack(list)) end`, ``, spending},
	{"report: a key is good for ever", "70 §3", reportFile,
		`tonumber(expiry) <= ctx.now or `, ``, spending},
	{"report: a key of a budget that was removed", "70-B8", reportFile,
		` or born ~= b.d.ct`, ``, spending},
	{"report: other amounts under the same key", "70 §10 BS6", reportFile,
		`  if digest ~= q.digest then return reply.err('idempotency_conflict', q.key) end`, ``, spending},
	{"report: what was refused is refused for ever", "70 §10 BS8", reportFile,
		`  if rest == 'h' then`, `  if false then`, spending},
	{"report: a refusal repeated is a second breach", "70 §10 BS8", reportFile,
		`  if hard and not q.breached then`, `  if hard then`, spending},
	{"report: a sequence counts twice", "70-B28", reportFile,
		`    if q.sequence == seq then return nil, ff_report.again(l.rp or '') end`, ``, spending},
	{"report: an old sequence counts again", "70-B28", reportFile,
		`    if q.sequence < seq then return nil`, `    if false then return nil`, spending},
	{"report: a late one counts twice", "70-B28", reportFile,
		`q.epoch == e2 and q.sequence <= seq2 then`, `q.epoch == e2 and q.sequence < seq2 then`, spending},
	{"report: one of the third newest epoch counts every time", "70-B28", reportFile,
		`  if q.epoch < e2 or `, `  if `, suite("spend")},
	{"report: a late one takes over", "70-B28", reportFile,
		`q2 = q.sequence, late = true }`, `q2 = q.sequence }`, spending},
	{"report: strict budgets count anything", "70 §2", reportFile,
		`  if b.d.st ~= '1' then return nil end`, `  if b then return nil end`, spending},
	{"report: a refused one is in the ledger", "70 §10 BS2", reportFile,
		`  ff_report.ledger(ctx, b, q, l, place, text, not refused)`, `  ff_report.ledger(ctx, b, q, l, place, text, true)`, spending},
	{"report: what was counted in an earlier period is taken back", "70 §2.5", reportFile,
		`    local old = { 'la' }`, `    local old = { 'rp' }`, spending},
	{"undo: twice", "70 §2.4", undoFile,
		`local fields, gone, sets = { 'la', '' }, {}, {}`, `local fields, gone, sets = { 'la', l.la }, {}, {}`, suite("spend")},
	{"undo: another report than the last", "70 §2.4", undoFile,
		` or tonumber(l.q or '0') ~= sequence`, ``, spending},
	{"undo: from a period that it was not counted in", "70 §2.5", undoFile,
		`    if l.p == b.d.rc and back > 0 then`, `    if back > 0 then`, spending},
	{"undo: nobody is woken", "70 §5.3", undoFile,
		`  if #sets > 0 and not budget.exhausted(b) then`, `  if false then`, suite("spend")},
	{"undo: what was given back is given back again", "70 §2.5", budgetFile,
		`  gone[#gone + 1] = 'la'`, ``, spending},
	{"put budget: a removed limit stays", "70 §2", putBudgetFile,
		`  if old then budget.some('HDEL', key, old) end`, ``, spending},
	{"put budget: any revision will do", "70 §2", putBudgetFile,
		`if b and expected ~= b.d.up then`, `if b and expected == '' then`, spending},
	{"adjust: below zero", "70-B24", adjustFile,
		`reply.int(math.max(0, now))`, `reply.int(now)`, spending},
	{"adjust: nobody is woken", "70 §5.3", adjustFile,
		`if not budget.exhausted(b) then`, `if false then`, spending},
	{"reset: one that is due is not booked", "70 §5", resetFile,
		`
  budget.save(ctx, b)
  local nx`, `
  local nx`, spending},
	{"put budget: what was told of a removed limit stays", "70 §10 BS5", putBudgetFile,
		` or area == 'w:' and not stays[field]`, ``, spending},
	{"put budget: who was to be woken is lost with the reply", "70 §5.3", putBudgetFile,
		`  if before then return before end
  if not budget.exhausted(b)`, `  if not budget.exhausted(b)`, spending},
	{"undo: who was to be woken is lost with the reply", "70 §5.3", undoFile,
		`    if before then return before end`, ``, suite("spend")},
	{"report: any number of dimensions", "70 §10 BS12", reportFile,
		`  if crowded then return budget.full(crowded) end`, ``, suite("spend")},
	{"budget: dimensions without limits take the place of those with", "70 §10 BS12", budgetFile,
		`used + limited > budget.dimensions and other`, `used > budget.dimensions and other`, suite("spend")},
	{"report: the ledger is gone before its period is over", "70 §2.5", reportFile,
		`math.max(budget.kept, budget.left(ctx, b) + ff_report.day)`, `budget.kept`, suite("spend")},
	{"refund: what a later attempt spent", "70 §3.3", budgetFile,
		`  if epoch > 0 and tonumber(l.e or '0') > epoch then return false end`, ``, suite("spend")},
	{"finish: budgets are not told which attempt ended", "70 §3.3", gateFile,
		`outcome .. ' ' .. (c.e or '0'))`, `outcome .. ' 0')`, suite("spend")},
	{"check budgets: who begins waits still", "70 §7.1", checkBudgetsFile,
		`        redis.call('ZREM', waiters, argv[2] .. ' ' .. argv[3])`, ``, spending},
	{"refund: of any outcome", "70 §3.3", refundFile,
		`',' .. argv[i + 2] .. ',', 1, true) then`, `',', 1, true) then`, spending},

	{"admit: one above the cap", "70 §6", askFile,
		`if q.cap > 0 and held >= q.cap then`, `if q.cap > 0 and held > q.cap then`, admitted},
	{"admit: one above the rate", "70 §6", askFile,
		`if q.rate > 0 and started >= q.rate then`, `if q.rate > 0 and started > q.rate then`, admitted},
	{"admit: several of a call count as one", "70 §6", askFile,
		`      started, held = started + 1, held + 1`, `      started = started + 1`, admitted},
	{"admit: again is once more", "70 §6 ALREADY_ADMITTED", askFile,
		`    if not known then`, `    if true then`, admitted},
	{"admit: who is refused is not woken", "70 §5.3", askFile,
		`    budget.wait(ctx, keys.cap_waiters(ctx.r, name), argv[3], argv[4])`, ``, admitted},
	{"admit: nobody asks about suspects", "70 §10 BS30", askFile,
		`suspects = quota.suspects(ctx, q)`, `suspects = {}`, admitted},
	{"quota: a start at the edge of the window counts", "70 §6", quotaFile,
		`'(' .. reply.int(ctx.now - q.window), quota.ahead(ctx))`, `reply.int(ctx.now - q.window), quota.ahead(ctx))`, admitted},
	{"quota: what is in the window is forgotten", "70 §6", quotaFile,
		`'-inf', reply.int(ctx.now - q.window), 'LIMIT', '0', '500')`, `'-inf', ctx.t, 'LIMIT', '0', '500')`, admitted},
	{"quota: wakes though it is full", "70-B19", quotaFile,
		`  if free > 0 and most > 0 then`, `  if most > 0 then`, admitted},
	{"quota: who waits for the window is not woken", "70-B19", quotaFile,
		`  if q.rate > 0 then quota.pop(keys.rate_waiters(ctx.r, q.name), math.min(free, q.rate - quota.started(ctx, q)), out) end`, ``, admitted},
	{"quota: all who wait for the window come at once", "70-B31", quotaFile,
		`math.min(started, started - q.rate + k)`, `math.min(started, started - q.rate + 1)`, admitted},
	{"quota: no jitter but the one that was asked for", "70-B31", quotaFile,
		`math.max(q.jitter, math.min(1000, math.floor(q.window / 10)))`, `q.jitter`, admitted},
	{"settle holds: any word frees", "design §6", settleHolds,
		`    if not string.find(argv[i + 1], '^[012]$') then`, `    if false then`, gates},
	{"attach: gates cost for ever", "design §6", "lua/admission/ff_attach.lua",
		`  if #all == 0 and not ff_attach_do.gated(ctx) then`, `  if false then`, gates},
	{"put quota: the usage of a cap is nobody's news", "70 §5.3", putQuotaFile,
		`  budget.waiters(keys.cap_waiters(ctx.r, q.name), 256, waiters)`, ``, admitted},
	{"settle holds: one that is held is freed", "70 §10 BS38", settleHolds,
		`    if argv[i + 1] == '1' then`, `    if argv[i + 1] == '3' then`, admitted},
	{"settle holds: one that is gone comes back", "70 §10 BS38", settleHolds,
		`redis.call('ZADD', slots, 'XX', reply`, `redis.call('ZADD', slots, reply`, admitted},
	{"settle holds: what never ran has started", "70 §10 BS28", settleHolds,
		`      if argv[i + 1] == '2' then redis`, `      if false then redis`, admitted},
	{"release holds: what never ran has started", "70 §10 BS28", releaseFile,
		"    if argv[i + 2] == '0' then\n      local back", "    if false then\n      local back", deaths},
	{"release holds: what ran has not started", "70 §6", releaseFile,
		"    if argv[i + 2] == '0' then\n      local back", "    if true then\n      local back", deaths},

	{"check holds: one that runs is gone", "70 §10 BS26", checkFile,
		`(c.s == 'A1' or c.s == 'A3') and c.e`, `c.s == 'A3' and c.e`, gated},
	{"check holds: of another epoch", "70 §10 BS38", checkFile,
		`c.s == 'A3') and c.e == argv[i + 1] then`, `c.s == 'A3') then`, gated},
	{"check holds: a grant that is over may be claimed still", "70 §10 BS30", checkFile,
		`        settle.ungrant(ctx, c, argv[i]) --`, `        --`, gated},
	{"check holds: what never ran has run", "70 §10 BS28", checkFile,
		`      answer = '2' -- epochs grow: it was never a lease`, `      answer = '0'`, gated},
	{"claim granted: by anybody", "design §6", grantedFile,
		`if not core.granted(c) or c.gs ~= session_id or c.ge ~= epoch then`, `if not core.granted(c) then`, old},
	{"claim granted: repeated, it is lost", "design §6", grantedFile,
		`  if c.s == 'A1' and c.ss == session_id and c.e == epoch then return '=', c end
`, ``, deaths},
	{"release grants: of a newer grant", "70 §10 BS29", returnFile,
		`    if c.s and core.granted(c) and c.ge == argv[i + 1] then`, `    if c.s and core.granted(c) then`, old},
	{"release grants: the quotas are not told", "70 §10 BS28", returnFile,
		`settle.ungrant(ctx, c, argv[i], argv[i + 2] == '0')`, `settle.ungrant(ctx, c, argv[i], true)`, old},
	{"grant: has the epoch of the last one", "10-F2", claimFile,
		`reply.int(math.max(last + 1, ctx.now))`, `ctx.t`, old},
	{"grant: goes on for ever", "design §6", claimFile,
		`  home.alarm(ctx, c.dl and math.min(ends, tonumber(c.dl)) or ends, h.id)
`, ``, gates},
	{"grant: the lease has an epoch of its own", "design §6", claimFile,
		`    epoch, c.s = c.ge, 'R1' .. string.sub(c.s, 3)`, `    epoch, c.s = ctx.t, 'R1' .. string.sub(c.s, 3)`, deaths},
	{"grant: its alarm stays", "10-X4", claimFile,
		`  elseif granted then
    home.alarm(ctx, c.dl and tonumber(c.dl), h.id)
  end`, `  end`, deaths},
	{"ungrant: it stays with its session", "10-X3", homeFile,
		`    home.unhold(ctx, c.gs, id)
`, ``, deaths},
	{"ungrant: quotas are not told", "70 §10 BS30", homeFile,
		`    if not quiet then gate.leave(ctx, c.r, id, c.ge, '0') end`, ``, deaths},
	{"ungrant: it has run", "70 §10 BS28", homeFile,
		`gate.leave(ctx, c.r, id, c.ge, '0')`, `gate.leave(ctx, c.r, id, c.ge, '1')`, deaths},
	{"leave: quotas are not told", "70-B2", homeFile,
		`    if ctx.gates then gate.leave(ctx, c.r, id, c.e, '1') end
  elseif c.s == 'A3'`, `  elseif c.s == 'A3'`, deaths},
	{"leave: quotas are not told of what was revoked", "70 §10 BS31", homeFile,
		`then -- without a home; what it holds of quotas is given back now
    if ctx.gates then gate.leave(ctx, c.r, id, c.e, '1') end`, `then`, deaths},
	{"complete: quotas are not told", "70-B2", settleFile,
		`  if ctx.gates then gate.leave(ctx, route_id, f.id, f.epoch, '1') end`, ``, deaths},
	{"finish: budgets are not told", "70 §3.3", settleFile,
		`  if ctx.gates and c.n then gate.ended(ctx, c, id, code) end`, ``, gated},
	{"gate: closed routes are handed out", "70-B19", gateFile,
		`  redis.call('SREM', keys.gready(ctx.r), route_id)
  root.need(ctx, at)`, `  root.need(ctx, at)`, gated},
	{"gate: the first quota alone is told", "70 §7.2", gateFile,
		`    note(ctx, 'q', name .. ' ' .. id .. ' ' .. (epoch or '0') .. ' ' .. ran)
`, `    note(ctx, 'q', name .. ' ' .. id .. ' ' .. (epoch or '0') .. ' ' .. ran)
    break
`, deaths},
	{"gate: attachments are forgotten", "70 §2", gateFile,
		`      if rows[n] then merge(set, string.match(rows[n], '^[^ ]*')) end`, ``, gates},
	{"gate: claims that ask for no grants meet gated work", "design §6", gateFile,
		`  return gate.of(ctx, route_id) == '' and keys.ready(ctx.r) or keys.gready(ctx.r)`, `  return keys.ready(ctx.r)`, gates},
	{"tick: grants outlive their sessions", "design §6", tickFile,
		`        if c.s and core.granted(c) and c.gs == id then`, `        if false then`, deaths},
	{"tick: closed routes stay closed", "70 §5.3", tickFile,
		`    gate.forget(ctx, due[i])
    home.reopen(ctx, due[i])`, `    gate.forget(ctx, due[i])`, gates},
	{"share: weights are ignored", "design §6", shareFile,
		`    g.step = math.floor(unit / (g.weight or 1))`, `    g.step = unit`, fair},
	{"share: what is passed over is paid for", "design §6", shareFile,
		`  g.at, l.scanned = g.at + 1, false`, `  g.at, l.scanned, g.count = g.at + 1, false, g.count + g.step`, fair},
	{"share: who was away has saved up", "design §6", shareFile,
		`math.max(args.int(count, 0, whole) or 0, g.lane.count)`, `args.int(count, 0, whole) or 0`, fair},

	{"engine: a warning budget enforces", "70 §1.2", "engine/budget.go",
		`	if b.Warn {
		mode = "warn"
	}
`, ``, spending},
	{"engine: releases to partitions that were never made fail", "70 §10 BS27", "engine/quota.go",
		`return 0, nil, nil // no quota`, `return 0, nil, err // no quota`, admitted},
	{"engine: what ran has not", "70 §6", "engine/quota.go",
		`x.Hold.String(), bit(x.Ran))`, `x.Hold.String(), bit(!x.Ran))`, deaths},
}
