package main

const (
	appendFile = "lua/stream/ff_append_frames.lua"
	stepFile   = "lua/execution/ff_record_step.lua"
	closesFile = "lua/lib/stream.lua"
)

// streamMutants break frames and durable steps.
var streamMutants = []Mutant{
	{"append: a gap is taken", "30 §6.2", appendFile,
		`  if first > last + 1 then return reply.err('frame_sequence_gap', reply.int(last)) end`, ``, suite("stream")},
	{"append: what is there already is appended again", "30-T8", appendFile,
		`math.min(last + 1 - first, count)`, `0`, suite("stream|repeat")},
	{"append: one frame too many is skipped", "30-T8", appendFile,
		`math.min(last + 1 - first, count)`, `math.min(last + 2 - first, count)`, suite("stream")},
	{"append: type and payload swapped", "30 §2.2", appendFile,
		`'p', argv[9 + n], 't', kind)`, `'p', kind, 't', argv[9 + n])`, suite("stream")},
	{"append: the next hundred is not begun", "30 §6.2", appendFile,
		`if low == 0 or not high then`, `if not high then`, suite("stream")},
	{"append: plain frames of a mixed attempt leave its order", "30 §3", appendFile,
		`  if plain and (m[7] or m[8]) then`, `  if plain and not m then`, suite("modes|stream")},
	{"append: the type of plain frames is not judged", "30 §11 #2", appendFile,
		`  if #argv[9] > 128 then return`, `  if #argv[9] > 1280 then return`, suite("stream")},
	{"append: plain frames are judged without the last", "30 §11 #2", appendFile,
		`  for i = 10, 9 + count do`, `  for i = 10, 8 + count do`, suite("stream")},
	{"append: the last sequence is off by one", "30 §6.2", appendFile,
		`'q', reply.int(first + count - 1), 'i', ids[#ids])`, `'q', reply.int(first + count), 'i', ids[#ids])`, suite("stream")},
	{"append: skipped frames count as bytes", "30 §11 #23", appendFile,
		`  for n = 1, skip do bytes = bytes - #argv[plain and 9 + n or 8 + 5 * n] end`, ``, suite("holes")},
	{"append: the total starts over", "30 §11 #1", appendFile,
		`total + fresh`, `fresh`, suite("stream")},
	{"append: frames are sent without payload", "30 §11 #19", appendFile,
		`for p = 0, 4 do part`, `for p = 0, 3 do part`, suite("holes")},
	{"append: a later attempt's stream is not entered on the core", "30 §11 #4", appendFile,
		`  if c.fa ~= f.attempt then
    keep`, `  if not c.fa then
    keep`, suite("holes")},
	{"append: the policy's retention is ignored", "30 §11 #7", appendFile,
		`    if keep > 0 then redis.call('HSET', meta, 'k', reply.int(keep)) end`, ``, suite("stream")},
	{"append: a dead holder is told superseded", "30-T29", appendFile,
		`'stale_owner_cannot_append', 'expired'`, `'stale_owner_cannot_append', 'superseded'`, suite("stream|lease")},
	{"stream: the second close wins", "30-T17", closesFile,
		`  if redis.call('HSETNX', meta, 'z', ctx.t) == 1 then redis.call('HSET', meta, 'y', reason) end`,
		`  redis.call('HSET', meta, 'z', ctx.t, 'y', reason)`, suite("stream|operator|golden")},
	{"read stream: an attempt without frames never closes", "30-T5", "lua/read/ff_read_attempt_stream.lua",
		`closed = attempt < started - 1 or not settle.open(c)`, `closed = false`, suite("stream")},

	{"append: a run that goes on is not entered", "a run repeats what was not recorded", appendFile,
		`    if m[9] then run.number, run.entry =`, `    if false then run.number, run.entry =`, suite("runs")},
	{"append: every batch begins a run", "a run is one pass of the handler", appendFile,
		`  if m[9] == f.epoch then`, `  if false then`, suite("runs")},
	{"runs: what is recorded covers the frames of an earlier run", "a run without frames covers none", closesFile,
		`  if v[1] == f.epoch and v[2]`, `  if v[2]`, suite("runs")},
	{"runs: the reason is always that of the last release", "a wait that was answered keeps the claim", closesFile,
		`string.match(from, '^' .. f.epoch .. '(%a)$') or `, ``, suite("runs")},
	{"runs: no step is recorded", "a run repeats what was not recorded", stepFile,
		`  stream.recorded(ctx, c, f)
`, ``, suite("runs")},
	{"suspend: a wait that is answered already begins no run", "the handler runs again", "lua/suspend/ff_suspend_execution.lua",
		`    stream.again(ctx, c, f, 'u')
`, ``, suite("runs")},
	{"children: a wait that is over already begins no run", "the handler runs again", "lua/flow/ff_wait_children.lua",
		`    stream.again(ctx, c, f, 'k')
`, ``, suite("runs")},
	{"replay: steps that are dropped still cover frames", "what was recorded is forgotten", "lua/lib/replay.lua",
		`    if c.n then record.set(ctx, id, 'sd', c.n) end
`, ``, suite("runs")},
	{"purge: runs stay", "10 §4.21", "lua/lib/purge.lua",
		`, keys.runs(r, id, a) }`, ` }`, suite("runs")},
	{"tail: runs that were read are not told", "a run repeats what was not recorded", "stream/tail.go",
		`	resumed := page.Resumed
	for _, f := range page.Frames {`, `	resumed := page.Resumed[:0]
	for _, f := range page.Frames {`, in("stream", "TestTailTellsOfEachRun")},
	{"tail: runs that were published are not told", "a run repeats what was not recorded", "stream/tail.go",
		`i == 0 && m.resumed != nil`, `false`, in("stream", "TestTailTellsOfEachRun")},
	{"read: a page has the runs of the next one, too", "each run is told once", "stream/read.go",
		`next[n].First.Compare(page.Next.id) <= 0`, `next[n].First.Compare(page.Next.id) <= 9`, in("stream", "TestReadTellsOfEachRun")},

	{"history: a success has the category of an earlier failure", "the end is told as it was", "engine/history.go",
		`strings.HasPrefix(code, "T1") || `, ``, suite("inspect")},
	{"list: a last attempt that timed out has not failed", "lists of what failed find it", "client/list.go",
		` || x.State.Public == flowfabric.Expired && x.FailureCategory == handler.CategoryTimeout`, ``, suite("inspect")},

	{"step: another value under the same name is taken", "design §4", stepFile,
		`if stored == value then`, `if stored then`, suite("claim|errors|golden")},
	{"step: bytes are not added up", "design §12", stepFile,
		`tonumber(c.sb or '0') + #value`, `#value`, suite("claim")},
	{"step: 1,001 steps", "design §12", stepFile,
		`>= 1000`, `>= 1001`, suite("claim")},
	{"step: the fence is not checked", "10-F1", stepFile,
		`  if answer then return answer end`, ``, suite("claim|errors|golden")},
	{"step: the name is not stored", "design §4", stepFile,
		`redis.call('HSET', key, name, value)`, `redis.call('HSET', key, value, name)`, suite("claim")},
}
