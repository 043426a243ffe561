package main

// registryMutants break the registry of worker instances.
var registryMutants = []Mutant{
	{"registry: two live processes of one name", "ff_register_worker",
		`w.alive and w.token ~= token`, `false`, suite("workers")},
	{"registry: a renewal is refused", "ff_register_worker",
		`w.alive and w.token ~= token`, `w.alive`, suite("workers")},
	{"registry: a lost name stays taken", "registry.read",
		`w.exp > ctx.now and not w.dead`, `not w.dead`, suite("workers")},
	{"registry: the name of one that was given up stays taken", "registry.read",
		`w.exp > ctx.now and not w.dead`, `w.exp > ctx.now`, suite("workers")},
	{"registry: a renewal is no sign of life", "ff_register_worker",
		`  redis.call('ZADD', keys.workers(ctx.r), expiry, instance)
`, `  redis.call('ZADD', keys.workers(ctx.r), 'NX', expiry, instance)
`, suite("workers")},
	{"registry: each renewal is the first", "ff_register_worker",
		`w.token == token and w.reg or ctx.t`, `ctx.t`, suite("workers")},
	{"registry: who comes back is still given up", "ff_register_worker",
		`  redis.call('HDEL', key, 'dead', 'why')
`, ``, suite("workers")},
	{"registry: stuck slots are forgotten", "ff_register_worker",
		`'stuck', q.stuck,`, `'stuck', '0',`, suite("workers")},
	{"registry: more stuck handlers than there are at work", "ff_register_worker",
		`args.int(q.stuck, 0, inflight)`, `args.int(q.stuck, 0, 1000000)`, suite("workers")},
	{"registry: a record stays for ever", "ff_register_worker",
		`  redis.call('PEXPIRE', key, reply.int(ttl + registry.kept))
`, ``, suite("workers")},
	{"registry: nobody is woken to forget a worker", "ff_register_worker",
		`  if not ctx.wake or ctx.wake > forget then root.need(ctx, forget) end
`, ``, suite("workers")},
	{"registry: anybody may end a registration", "ff_leave_worker",
		`.token ~= token then`, `.token == nil then`, suite("workers")},
	{"registry: a name is left and its row stays", "ff_leave_worker",
		`  redis.call('ZREM', keys.workers(ctx.r), instance)
`, ``, suite("workers")},
	{"registry: one that never was is given up", "ff_mark_worker_dead",
		`if not w.exp then`, `if false then`, suite("workers")},
	{"listing: a page skips who has the same score", "listing.rank",
		`      low = middle + 1`, `      low = high`, suite("workers")},
	{"listing: a page begins with the last one's end", "listing.rank",
		`after(member, cursor.member) or before`, `after(member, cursor.member) or true`, suite("inspect")},
	{"listing: there is always more", "listing.page",
		`return out, last < size - 1, size`, `return out, last < size, size`, suite("inspect")},
	{"registry: a page of any size", "ff_list_workers",
		`    if bytes > 524288 then break end
`, ``, suite("workers")},
	{"registry: a session that ran out lives", "internal/engine.Engine.listSessions",
		`s.Alive = !s.Dead && s.ExpiresAt.After(now)`, `s.Alive = !s.Dead && !now.IsZero()`, suite("workers")},

	{"runtime: works under another's name", "runtime.membership.enter",
		`		case errors.Is(err, denied.InstanceInUse):
			if first.IsZero() {`, `		case errors.Is(err, denied.InstanceInUse):
			if !first.IsZero() {
				return nil
			} else {`, in("runtime", "^Test(CrashedPredecessor|DuplicateInstance)")},
	{"runtime: gives up on a predecessor at once", "runtime.membership.enter",
		`if until.After(first) {`, `if !until.IsZero() {`, in("runtime", "^TestCrashedPredecessor")},
	{"runtime: does not renew its registration", "runtime.membership.start",
		`			err := g.register(ctx)
			if g.fatal(err) {
				return
			}
			g.report(ctx, err)
`, ``, in("runtime", "^TestWorkerRegistersRenewsAndLeaves$")},
	{"runtime: does not leave", "runtime.run.drain",
		`	r.name.leave(lastCall)
`, `	r.name.ended()
`, in("runtime", "^TestWorkerRegistersRenewsAndLeaves$")},
	{"runtime: registry trouble ends the worker", "runtime.membership.enter",
		`			g.report(ctx, err)
			return nil
`, `			return err
`, in("runtime", "^TestRegistryTrouble")},
	{"engine: an older library that answers as ever stays", "internal/engine.Engine.RegisterWorker",
		`revision < library.Revision`, `revision > library.Revision`, suite("server")},

	{"client: a worker that is given up keeps its work", "admin.Admin.MarkWorkerDead",
		`if engine.Instance(s.ID) != instance {`, `if s.ID != instance {`, in("admin", "^TestWorkers$")},
}
