package main

const (
	auditFile           = "lua/lib/audit.lua"
	auditExecutionsFile = "lua/operate/ff_audit_executions.lua"
	auditIndexFile      = "lua/operate/ff_audit_index.lua"
	auditKeysFile       = "lua/operate/ff_audit_keys.lua"
	auditFlowsFile      = "lua/operate/ff_audit_flows.lua"
	auditJoinedFile     = "lua/lib/joined.lua"
	auditRoutesFile     = "lua/operate/ff_audit_routes.lua"
)

// auditMutants break the audit: what it overlooks, and what it must not touch.
var auditMutants = []Mutant{
	{"audit: who only looks repairs", "50 §9", auditFile,
		`ctx.heal, ctx.found = heal == '1', {}`, `ctx.heal, ctx.found = true, {}`, suite("audit")},
	{"audit: an attempt's timeout is no alarm", "10-X4", auditFile,
		`if timer and (not due or timer < due) then due = timer end`, `due = due or timer`, suite("audit")},
	{"audit: what is revoked needs no alarm", "10-X4", auditFile,
		`  if c.s == 'A3' then return ctx.now end
`, ``, suite("audit")},
	{"audit: counts of wakes are reasons of routes that are open", "70 §7", auditIndexFile,
		`if not woken then`, `if true then`, suite("gates")},
	{"flow: one that is cancelled while it is staged keeps its roots", "60 §6", "lua/lib/flow.lua",
		`  if staged then redis.call('UNLINK', keys.roots(ctx.r, h.id)) end -- nobody will release them
`, ``, suite("flow")},
	{"audit: a place with another score is right", "10-X1", auditExecutionsFile,
		`if at and (audit.score(at) == tonumber(score) or ff_audit.pinned(ctx, c, audit.score(at), tonumber(score))) then return end`,
		`if at then return end`, suite("audit")},
	{"audit: a member that is kept for its flow is misplaced", "60-F26", auditExecutionsFile,
		` or ff_audit.pinned(ctx, c, audit.score(at), tonumber(score))`, ``, suite("audit")},
	{"audit: what is blocked has no home", "60 §2.4", auditExecutionsFile,
		`  if core.blocked(c) then return 'blocked', keys.blocked(ctx.r), c.ct end
`, ``, suite("audit")},
	{"audit: an edge that nobody told of stays untold", "60-F20", auditJoinedFile,
		`        flow.edge(ctx, h, { id = up, outcome = outcome, attempt = attempt }, id)
`, ``, suite("audit")},
	{"audit: a purged upstream says nothing", "60-F20", auditJoinedFile,
		`return code and graph.outcomes[code] or false, ''`, `return false, ''`, suite("audit")},
	{"audit: what the backlog will tell is told already", "60 §4.5", auditJoinedFile,
		`redis.call('HEXISTS', keys.work(ctx.r), kind .. ':' .. id) == 1 then return true end`, `false then return true end`, suite("audit")},
	{"audit: a member that waits for nothing waits on", "60-F27", auditJoinedFile,
		`  elseif audit.note(ctx, 'phantom', 'blocked', id, 'it waits for nothing') then
    flow.promote(ctx, c, id)
`, ``, suite("audit")},
	{"audit: a parent whose wait is lost waits on", "60-F27", auditJoinedFile,
		`if c.s == 'R3i' then waits(`, `if c.wt then waits(`, suite("audit")},
	{"audit: a flow that changes is compared all the same", "60-F26", auditFlowsFile,
		`if q.next > 0 and version ~= q.version then return '-2', version, '' end
`, `
`, suite("audit")},
	{"audit: the last page alone is compared", "60-F26", auditFlowsFile,
		`    seen[ff_flows.fields[i]] = args.int(parts[i] or '0', 0, 1000000000)`,
		`    seen[ff_flows.fields[i]] = args.int(parts[i] or '0', 0, 1000000000) and 0`, suite("audit")},
	{"audit: an end that was missed stays missed", "60 §8.1", auditFlowsFile,
		`if over and h.en and h.st ~= 'F1' and own == h.st or not over`, `if over or not over`, suite("audit")},
	{"audit: a staged flow that nobody gives up stays", "60 §1.7", auditFlowsFile,
		`at = redis.call('ZSCORE', keys.flow_due(ctx.r), id)`, `at = false; since = nil`, suite("audit")},
	{"audit: another retention is damage", "50 §9", auditExecutionsFile,
		`ff_audit.refiled(ctx, c) and 'retention' or 'score'`, `'score'`, suite("audit")},
	{"audit: what is filed again is not retained longer", "50 §6.2", auditExecutionsFile,
		`tonumber(c.en) + home.kept(ctx, c.r, c.rt)`, `tonumber(c.en) + 86400000`, suite("audit")},
	{"audit: work held under no session stays held", "10-X2", "ff_audit.execution",
		`  ff_audit.session(ctx, c)
`, ``, suite("audit")},
	{"audit: a waitpoint at another time is right", "20 §11", auditExecutionsFile,
		`if not at or audit.score(at) ~= tonumber(ends) then`, `if not at then`, suite("audit")},
	{"audit: a count of waitpoints is believed", "20 §11", auditExecutionsFile,
		`elseif opened ~= tonumber(c.wp or '0') and`, `elseif false and`, suite("audit")},
	{"audit: a queue may hold what waits elsewhere", "10-X1", auditIndexFile,
		`return core.waiting(c) and c.r == route_id end`, `return core.waiting(c) end`, suite("audit")},
	{"audit: a session may hold what another holds", "10-X3", auditIndexFile,
		`return c.s == 'A1' and c.ss == session_id or`, `return c.s == 'A1' or`, suite("audit")},
	{"audit: what is active may be pending", "20 §11", auditIndexFile,
		`return w and w.state == 'p'`, `return w`, suite("audit")},
	{"audit: a page begins anew", "design §2.7", auditIndexFile,
		`return listing.rank(key, { score = score, member = member })`, `return listing.rank(key, { score = score, member = member }, true)`, suite("audit")},
	{"audit: phantoms stay", "10-X5", auditIndexFile,
		`    redis.call('ZREM', q.key, unpack(gone))`, `    gone = {}`, suite("audit")},
	{"audit: a queue that is not ready is nobody's", "design §5", auditIndexFile,
		`    if q.cursor == '' then ff_index.queue(ctx, q) end
`, ``, suite("audit")},
	{"audit: an empty queue may be ready", "design §5", auditIndexFile,
		`local wrong = redis.call('EXISTS', keys.queue(ctx.r, id)) == 0 and 'its queue is empty' or ff_index.hands(ctx, id)`,
		`local wrong = ff_index.hands(ctx, id)`, suite("audit")},
	{"audit: a grant's session may be another's", "70 §7", auditIndexFile,
		`core.granted(c) and c.gs == session_id`, `core.granted(c)`, suite("audit")},
	{"audit: a closed route may be ready", "70 §7", auditIndexFile,
		`if not gate.open(ctx, id) then return`, `if false then return`, suite("audit")},
	{"audit: a route with gates may be among those without", "70 §7", auditIndexFile,
		`if not wrong and gate.ready(ctx, id) ~= key then`, `if false then`, suite("audit")},
	{"audit: a route stays closed for years", "70 §7", auditIndexFile,
		`(at < 0 or at > ctx.now + 86400000)`, `at < 0`, suite("audit")},
	{"audit: a broken notice holds up the others", "70 §7.3", auditIndexFile,
		`      redis.call('XDEL', keys.outbox(ctx.r), id)
`, ``, suite("audit")},
	{"audit: with a broken notice the others go", "70 §7.3", auditIndexFile,
		`if #good > 0 then redis.call`, `if false then redis.call`, suite("audit")},
	{"audit: the level of gates is what the root says", "70 §1.4", auditIndexFile,
		`if #parts == 5 and parts[5] ~= '' then level = 1 end`, ``, suite("audit")},
	{"audit: a pause begins where it is filed", "10 D20", "lua/operate/ff_audit_executions.lua",
		`if told and audit.whole(told[2]) then return told[2] end`, ``, suite("audit")},
	{"audit: a lost route stays untold", "design §5", auditIndexFile,
		`    ctx.table = math.max(root.version(ctx) + 1, ctx.now) -- as a new row, so that every worker is told
`, `    ctx.table = root.version(ctx)
`, suite("audit")},
	{"audit: nobody is told to tick", "design §8", auditIndexFile,
		`', something is due at ' .. reply.int(first)) then root.need(ctx, first) end`, `', something is due at ' .. reply.int(first)) then first = nil end`, suite("audit")},
	{"audit: the root forgets that lanes are special", "design §5", auditIndexFile,
		`if special ~= (h[4] and true or false) and`, `if false and`, suite("audit")},
	{"audit: notices without a session stay", "10-X5", auditIndexFile,
		`'notices without session') then redis.call('UNLINK', key) end`, `'notices without session') then key = nil end`, suite("audit")},
	{"audit: keys of nobody stay", "10-X5", auditKeysFile,
		`      redis.call('UNLINK', key)`, `      key = nil`, suite("audit")},
	{"audit: signals of no waitpoint stay", "20 §11", auditKeysFile,
		`not waits.of(ctx, id).points[of]`, `false`, suite("audit")},
	{"audit: a core does not know what it has", "10-X5", auditKeysFile,
		`record.set(ctx, id, flag, '1')`, `flag = nil`, suite("audit")},
	{"audit: a count is never raised", "50 §6.2", auditRoutesFile,
		`if item.low > item.stored then`, `if false then`, suite("audit")},
	{"audit: what was purged meanwhile is missing", "50 §6.2", auditRoutesFile,
		`if item.stored > item.high + gone then change = item.high + gone - item.stored end`,
		`if item.stored > item.high then change = item.high - item.stored end`, suite("audit")},
	{"audit: two counts are added up", "50 §6.2", auditRoutesFile,
		`(audit.whole(h[2] or nil) or 0) == recounts and gone >= 0`, `gone >= 0`, suite("audit")},
	{"audit: an unused route stays", "50 §6.2", auditRoutesFile,
		`  if unused then route.remove(ctx, item.id) end
`, ``, suite("audit")},
	{"audit: a finding that was repaired is none", "50 §9", auditFile,
		`ctx.heal and '1' or '0')`, `'0')`, suite("audit")},
}
