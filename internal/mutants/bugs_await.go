package main

// others are the scenarios of waits for executions that the waiter did not make.
var others = suite("await")

// awaitMutants break waits for executions that the waiter did not make: who is told, of which wait, and what is left behind.
var awaitMutants = []Mutant{
	{"await: nobody is told of an end", "awaited.ended", `gate.note(ctx, 'w',`, `local _ = (`, others},
	{"await: who waited stays on the list", "awaited.ended", `  redis.call('UNLINK', key)`, ``, others},
	{"await: one that ended says that others wait", "awaited.ended", `  record.clear(ctx, id, 'awaited')`, ``, others},
	{"await: the end of a success tells nobody", "settle.complete", `  awaited.ended(ctx, c, id, 'T1')`, ``, others},
	{"await: an end without success tells nobody", "settle.finish", `  awaited.ended(ctx, c, id, code)`, ``, others},
	{"await: a wait that is over leaves its registrations", "wait.over", `  awaited.over(ctx, id, v)`, ``, others},
	{"await: one that ends while it waits leaves its registrations", "awaited.ended", `  awaited.leave(ctx, c, id)`, ``, others},
	{"await: another wait leaves the registrations of the first", "wait.fresh", `  awaited.leave(ctx, c, id)`, ``, others},
	{"await: one that continues leaves its registrations", "chain.go", `  awaited.leave(ctx, c, id)`, ``, others},
	{"await: a wait that comes late to be over ends the next one", "ff_await_do.remove", `redis.call('HGET', key, x.waiter) ~= x.token`, `false`, others},
	{"await: the flag stays when the last one leaves", "ff_await_do.remove", `record.clear(ctx, id, 'awaited')`, `local _ = id`, others},
	{"await: one that has ended is registered at", "ff_await_do.add", `  if mark then return mark, core.attempt(c) end`, ``, others},
	{"await: a tombstone tells nothing", "ff_await_do.add", `code and graph.outcomes[code] or 'x'`, `'x'`, others},
	{"await: a look registers", "ff_await_do.add", `if x.op == '+' then`, `if true then`, others},
	{"await: a waiter is told of an earlier wait", "ff_tell_waiters", `v[1] == x.token and`, ``, others},
	{"await: a waiter is told twice", "ff_tell_waiters", `and group.record(v[2]) == '.' and`, `and v[2] and`, others},
	{"await: those that are told do not go on", "ff_tell_waiters", `flow.child(ctx, { id = x.awaited, outcome = x.mark, attempt = x.attempt }, x.waiter)`, ``, others},
	{"await: the awaited is not told", "ff_wait_others", `if x.mark == '.' then awaited.expect`, `if false then awaited.expect`, others},
	{"await: those that had ended are asked again", "ff_wait_others", `if x.mark == '.' then awaited.expect`, `if true then awaited.expect`, others},
	{"await: a repeat asks again", "ff_others.new", `redis.call('HEXISTS', key, full) == 1`, `false`, suite("await|repeat")},
	{"await: more than a thousand", "ff_wait_others", `if count > 1000 then`, `if false then`, others},
	{"await: one may wait for itself", "ff_others.parse", `if other == id and`, `if false and`, others},
	{"await: a circle of two", "ff_check_awaited", `if not mark and ff_check.waits(ctx, c, id, argv[2]) then`, `if false then`, others},
	{"await: one that ended is a circle", "ff_check_awaited", `if not mark and ff_check.waits`, `if ff_check.waits`, others},
	{"await: a child may wait for its parent", "ff_check.waits", `or own and (`, `or false and (`, others},
	{"await: waiters without a limit", "ff_check_awaited", `>= 1000 and`, `>= 100000 and`, others},
	{"await: what was purged can be waited for", "ff_check_awaited", `return reply.err(missing[2], id)`, `c = { state = 'T1' }`, others},
	{"await: others do not count", "wait.tally", `#v[i] >= 36`, `#v[i] == 36`, others},
	{"await: others have no outcome", "wait.outcomes", `#v[i] >= 36`, `#v[i] == 36`, others},
	{"await: no tick looks at the outbox", "gate.flush", `  if not ctx.gates then redis.call('HSET', ctx.r, 'told', '1') end`, ``, others},
	{"await: the list of a waiter without a flow is never purged", "purge.run", `elseif c.children_wait then`, `elseif false then`, others},
	{"audit: nobody asks the other side", "internal/maintain.part.awaited", `for _, w := range open {`, `for _, w := range open[:0] {`, others},
	{"audit: notices on their way count as lost", "internal/maintain.part.silent", `if !noted[w] {`, `if true {`, others},
	{"await: a notice is forgotten before the answer is stored", "internal/admit.delivery.await", `err = d.tellWaiters(ctx, ended)`, `_ = d.tellWaiters(ctx, ended)`, others},
	{"why: the state of an execution of another partition", "internal/engine.Engine.states", `if x.Apart &&`, `if false &&`, others},
}
