package main

const (
	laneFile    = "lua/lib/lane.lua"
	setLaneFile = "lua/operate/ff_set_lane.lua"
	admitFile   = "lua/execution/ff_create_execution.lua"
)

// lanes are the tests of what operators say about lanes: the calls of the tour, against the model.
var lanes = in("internal/model", "^TestLanesAndRetention$")

// laneMutants break lanes: what they take, what they hand out, and who said so.
var laneMutants = []Mutant{
	{"lane: a paused lane takes no work", "10 §1.1", laneFile,
		`local accepts = { active = true, paused = true }`, `local accepts = { active = true }`, lanes},
	{"lane: a draining lane takes work", "10 §1.1", laneFile,
		`local accepts = { active = true, paused = true }`, `local accepts = { active = true, paused = true, draining = true }`, lanes},
	{"lane: a draining lane hands nothing out", "10 §1.1", laneFile,
		`lane.hands_out = { active = true, draining = true }`, `lane.hands_out = { active = true }`, lanes},
	{"lane: a paused lane hands out", "10 §1.1", laneFile,
		`lane.hands_out = { active = true, draining = true }`, `lane.hands_out = { active = true, draining = true, paused = true }`, lanes},
	{"lane: a refusal names another state", "50 §14", laneFile,
		`' is ' .. row.state`, `' is closed'`, lanes},
	{"lane: nothing is ever refused", "10 §1.1", laneFile,
		`  if accepts[row.state] then return nil end`, `  if row then return nil end`, lanes},
	{"lane: the lanes of namespaces are mixed up", "10 §1.1", laneFile,
		`function lane.name(namespace, name) return namespace .. US .. name end`, `function lane.name(namespace, name) return name .. US .. namespace end`, lanes},
	{"lane: a route is in the lane of its kind", "10 §1.1", laneFile,
		`'^([^\31]*\31[^\31]*)'`, `'^[^\31]*\31([^\31]*\31[^\31]*)'`, lanes},
	{"create: a closed lane takes work", "10 §1.1", admitFile,
		`    if closed then answer = '-' .. closed end`, ``, lanes},
	{"create: a closed lane refuses what it knows", "10-D44", admitFile,
		`local closed = not answer and lane.refusal`, `local closed = (not answer or string.byte(answer) == 61) and lane.refusal`, lanes},
	{"home: work of a closed lane is ready", "design §5", homeFile,
		`    if lane.open(ctx, route) and gate.open`, `    if gate.open`, lanes},
	{"set lane: what waits stays ready", "design §5", setLaneFile,
		`    redis.call('SREM', keys.ready(ctx.r), unpack(routes, first, math.min(first + 499, #routes)))`, ``, lanes},
	{"set lane: what waits is not ready again", "design §5", setLaneFile,
		`      redis.call('SADD', gate.ready(ctx, routes[i]), routes[i])`, ``, lanes},
	{"set lane: a lane that opens wakes no tick", "design §8", setLaneFile,
		`      root.need(ctx, ctx.now + 1000)`, ``, suite("counted")},
	{"set lane: a lane that opens rings nobody", "design §6 doorbell", setLaneFile,
		`      if rung <= 16 then bell.ring(ctx, routes[i], math.min(waiting, 64)) end`, ``, suite("counted")},
	{"set lane: empty queues become ready", "design §5", setLaneFile,
		`    if waiting > 0 and gate.open`, `    if waiting >= 0 and gate.open`, lanes},
	{"set lane: other lanes are closed, too", "10 §1.1", setLaneFile,
		`    if string.sub(all[i + 1], 1, #name + 1) == name .. '\31' then`, `    if all[i + 1] then`, suite("counted")},
	{"set lane: a lane whose name begins alike is closed, too", "10 §1.1", setLaneFile,
		`string.sub(all[i + 1], 1, #name + 1) == name .. '\31'`, `string.sub(all[i + 1], 1, #name) == name`, suite("counted")},
	{"set lane: the same again is a change", "10-D33", setLaneFile,
		`  if state == old.state and keep == old.keep and age == old.age then return reply.already(state, reply.int(keep), count) end`, ``, lanes},
	{"set lane: a retention changes since when", "50 §14", setLaneFile,
		`local since = state == old.state and old.since or ctx.t`, `local since = ctx.t`, lanes},
	{"set lane: the root forgets that lanes are special", "design §5", setLaneFile,
		`    redis.call('HSET', ctx.r, 'lanes', '1')`, ``, lanes},
	{"set lane: the root never forgets it", "design §5", setLaneFile,
		`    redis.call('HDEL', ctx.r, 'lanes')`, ``, lanes},
	{"set lane: a lane that keeps longer is not special", "50 §6.2", setLaneFile,
		`string.sub(rows[i], 1, 9) ~= 'active 0 '`, `string.sub(rows[i], 1, 7) ~= 'active '`, lanes},
	{"set lane: any state will do", "10-D5", setLaneFile,
		`not lane.states[argv[4] or 'x']`, `not argv[4]`, in("internal/model", "^TestProperty$")},
	{"set lane: an endless retention", "10-D5", setLaneFile,
		`args.int(argv[5], 0, 315360000)`, `args.int(argv[5], 0, 915360000)`, in("internal/model", "^TestProperty$")},
	{"list lanes: counts no routes", "50 §14", "lua/operate/ff_list_lanes.lua",
		`    e.routes = e.routes + 1`, ``, lanes},
	{"list lanes: counts nothing that waits", "50 §14", "lua/operate/ff_list_lanes.lua",
		`redis.call('ZCARD', keys.queue(ctx.r, routes[i]))`, `0`, lanes},
	{"list lanes: only those with routes", "50 §14", "lua/operate/ff_list_lanes.lua",
		`  for i = 1, #told do entry(told[i]) end`, ``, lanes},
}
