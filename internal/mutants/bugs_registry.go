package main

const (
	registerFile   = "lua/worker/ff_register_worker.lua"
	leaveFile      = "lua/worker/ff_leave_worker.lua"
	workerDeadFile = "lua/worker/ff_mark_worker_dead.lua"
	registryFile   = "lua/lib/registry.lua"
	listingFile    = "lua/lib/listing.lua"
)

// registryMutants break the registry of worker instances.
var registryMutants = []Mutant{
	{"registry: two live processes of one name", "40 §15 #7", registerFile,
		`w.alive and w.token ~= token`, `false`, suite("workers")},
	{"registry: a renewal is refused", "40 §5", registerFile,
		`w.alive and w.token ~= token`, `w.alive`, suite("workers")},
	{"registry: a lost name stays taken", "40 §5", registryFile,
		`w.exp > ctx.now and not w.dead`, `not w.dead`, suite("workers")},
	{"registry: the name of one that was given up stays taken", "40 §5", registryFile,
		`w.exp > ctx.now and not w.dead`, `w.exp > ctx.now`, suite("workers")},
	{"registry: a renewal is no sign of life", "40 §5", registerFile,
		`  redis.call('ZADD', keys.workers(ctx.r), expiry, instance)
`, `  redis.call('ZADD', keys.workers(ctx.r), 'NX', expiry, instance)
`, suite("workers")},
	{"registry: each renewal is the first", "40 §5", registerFile,
		`w.token == token and w.reg or ctx.t`, `ctx.t`, suite("workers")},
	{"registry: who comes back is still given up", "40 §5", registerFile,
		`  redis.call('HDEL', key, 'dead', 'why')
`, ``, suite("workers")},
	{"registry: stuck slots are forgotten", "stuck handlers", registerFile,
		`'stuck', argv[6],`, `'stuck', '0',`, suite("workers")},
	{"registry: more stuck handlers than there are at work", "stuck handlers", registerFile,
		`args.int(argv[6], 0, inflight)`, `args.int(argv[6], 0, 1000000)`, suite("workers")},
	{"registry: a record stays for ever", "40 §5", registerFile,
		`  redis.call('PEXPIRE', key, reply.int(ttl + registry.kept))
`, ``, suite("workers")},
	{"registry: nobody is woken to forget a worker", "design §8", registerFile,
		`  if not ctx.wake or ctx.wake > forget then root.need(ctx, forget) end
`, ``, suite("workers")},
	{"registry: anybody may end a registration", "40 §5", leaveFile,
		`.token ~= token then`, `.token == nil then`, suite("workers")},
	{"registry: a name is left and its row stays", "40 §5", leaveFile,
		`  redis.call('ZREM', keys.workers(ctx.r), instance)
`, ``, suite("workers")},
	{"registry: one that never was is given up", "40 §5", workerDeadFile,
		`if not w.exp then`, `if false then`, suite("workers")},
	{"listing: a page skips who has the same score", "40 §5", listingFile,
		`      low = middle + 1`, `      low = high`, suite("workers")},
	{"listing: a page begins with the last one's end", "50 §14", listingFile,
		`after(member, cursor.member) or before`, `after(member, cursor.member) or true`, suite("inspect")},
	{"listing: there is always more", "50 §14", listingFile,
		`return out, last < size - 1, size`, `return out, last < size, size`, suite("inspect")},
	{"registry: a page of any size", "design §2.7", "lua/operate/ff_list_workers.lua",
		`    if bytes > 524288 then break end
`, ``, suite("workers")},
	{"registry: a session that ran out lives", "40 §5", "engine/registry.go",
		`s.Alive = !s.Dead && s.ExpiresAt.After(now)`, `s.Alive = !s.Dead && !now.IsZero()`, suite("workers")},

	{"runtime: works under another's name", "40 §15 #7", "runtime/registry.go",
		`		case errors.Is(err, flowfabric.ErrInstanceInUse):
			if first.IsZero() {`, `		case errors.Is(err, flowfabric.ErrInstanceInUse):
			if !first.IsZero() {
				return nil
			} else {`, in("runtime", "^Test(CrashedPredecessor|DuplicateInstance)")},
	{"runtime: gives up on a predecessor at once", "40 §5", "runtime/registry.go",
		`if until.After(first) {`, `if !until.IsZero() {`, in("runtime", "^TestCrashedPredecessor")},
	{"runtime: does not renew its registration", "40 §5", "runtime/registry.go",
		`			err := g.register(ctx)
			if g.stopIfFatal(err) {
				return
			}
			g.report(ctx, err)
`, ``, in("runtime", "^TestWorkerRegistersRenewsAndLeaves$")},
	{"runtime: does not leave", "40 §15 #7", "runtime/drain.go",
		`	r.name.leave(lastCall)
`, `	r.name.ended()
`, in("runtime", "^TestWorkerRegistersRenewsAndLeaves$")},
	{"runtime: registry trouble ends the worker", "40 §5", "runtime/registry.go",
		`			g.report(ctx, err)
			return nil
`, `			return err
`, in("runtime", "^TestRegistryTrouble")},
	{"engine: an older library that answers as ever stays", "50 §15 #11", "engine/registry.go",
		`revision < lua.Revision`, `revision > lua.Revision`, suite("server")},

	{"client: a worker that is given up keeps its work", "40 §5", "client/workers.go",
		`if engine.Instance(s.ID) != instance {`, `if s.ID != instance {`, in("client", "^TestWorkers$")},
}
