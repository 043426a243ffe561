package main

// kids are the scenarios of richer waits for children.
var kids = suite("children")

// childrenMutants break what ends a wait for children, and what becomes of those that are open then.
var childrenMutants = []Mutant{
	{"children: fail-fast waits for all", "wait.decide", `(w.mode == 'fast' and w.others > 0)`, `false`, kids},
	{"children: fail-fast ends with any child", "wait.decide", `(w.mode == 'fast' and w.others > 0)`, `w.mode == 'fast'`, kids},
	{"children: nobody cancels those that remain", "wait.over", `  if open ~= '' then graph.push`, `  if false then graph.push`, kids},
	{"children: those that remain are always cancelled", "wait.over", `w.after == 'cancel' and wait.open`, `wait.open`, kids},
	{"children: those that others of them depend on are spared", "wait.open", `for i = #numbers, 1, -1 do`, `for i = 1, #numbers do`, kids},
	{"children: the backlog cancels those of the next wait", "wait.over", `graph.push(ctx, 'o', wait.work(ctx, id, name), c.flow, '0 ' .. open)`,
		`graph.push(ctx, 'o', wait.work(ctx, id, name), c.flow)`, kids},
	{"children: one that is spared is listed by the next wait", "flow/rest", `        if known then of.tell`, `        if true then of.tell`, kids},
	{"children: one that another needs is cancelled", "flow/rest", `spare, from = needed(ctx, id, owner, from)`, `spare = false`, suite("children|flow")},
	{"children: outcomes are not kept when something else ends the wait", "suspension.children", `  if w then wait.over`, `  if false then wait.over`, kids},
	{"children: those of a parent that is over are thought to be cancelled", "flow.child", `  if now and core.terminal(c) then`, `  if false then`, kids},
	{"children: they do not resume a suspended parent", "flow.child", `  elseif core.suspended(c) then`, `  elseif false then`, kids},
	{"children: one part is enough for all", "arrival.came", `  if condition.complete(state, nodes) then`, `  if true then`, kids},
	{"children: a part that is met is forgotten", "arrival.came", `u[field], met = '1', true`, `met = true`, kids},
	{"children: those that have ended before do not count", "arrival.begin", `n.op == 'K' and decided or`, ``, kids},
	{"children: a wait for those of another name", "ff_suspend.children", `or redis.call('HGET', keys.children(ctx.r, f.id), 'name') ~= q.name`, ``, kids},
	{"children: a wait for none", "ff_suspend.children", `if not w or w.state == 'd'`, `if w and w.state == 'd'`, kids},
	{"children: a replay keeps what ended a wait that it forgets", "replay.reopen",
		`      if name and c.resume_bytes and suspension.read(ctx, id).name == name then record.clear(ctx, id, 'resume_bytes') end`, ``, kids},
	{"audit: children that nobody cancels", "joined/children", `  if work and not graph.barred`, `  if false and not graph.barred`, kids},
	{"audit: a suspended parent whose children have ended waits on", "joined/going", `  if core.suspended(c) then`, `  if false then`, kids},
	{"why: open children of a suspended parent", "ff_explain.others", `not core.blocked(c) and not suspended then`, `not core.blocked(c) then`, suite("why")},
	{"children: the limit of a wait is no error", "flow.ChildSet.ended", `	if r.Cause == waithook.CauseTimeout {`, `	if false {`, in("fftest", "^TestALimitOfAWaitForChildren$")},
	{"children: an operator is no error of Wait", "flow.ChildSet.Wait", `err == nil && r.Cause == waithook.CauseOperator`, `err == nil && r.Cause == "nobody"`, in("runtime", "^TestChildrenAndAnOperator$")},
}
