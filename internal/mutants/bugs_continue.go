package main

var (
	chained  = suite("continue")
	reminded = suite("remind")
)

// continueMutants break executions that continue with another input, and waitpoints that serve several waits.
var continueMutants = []Mutant{
	{"continue: by anybody", "ff_continue_execution", `  local answer = fence.check(ctx, c, f)`, `  local answer = nil`, suite("errors|continue")},
	{"continue: a repeat is refused", "ff_continue_execution", `if before then return reply.already(before) end`, ``, suite("continue|repeat")},
	{"continue: an input without a limit", "ff_continue_execution", `if #input > 1048576 then`, `if false then`, chained},
	{"continue: steps stay", "chain.go", `if c.step_bytes then steps.clear(ctx, id) end`, ``, chained},
	{"continue: waitpoints stay open", "chain.go", `  waitpoint.abandon(ctx, c, id, 'attempt_ended')`, ``, chained},
	{"continue: retries are not given back", "chain.go", `'retries', 'reclaims', 'failure_category', 'attempt_deadline'`, `'failure_category', 'attempt_deadline'`, chained},
	{"continue: the answer of an old wait is brought along", "chain.go", `'step_bytes', 'resume_bytes',`, `'step_bytes',`, chained},
	{"continue: the attempt is not said to have ended", "chain.go", `  settle.fold(ctx, c, id, 'continued', '', '')`, ``, chained},
	{"continue: the stream stays open", "chain.go", `  stream.close(ctx, c, id, 'continued')`, ``, chained},
	{"continue: its frames are taken for repeated ones", "chain.go",
		`  stream.recorded(ctx, c, f) -- no later attempt repeats what this one has appended`, ``, chained},
	{"continue: old attempts stay for ever", "chain.go", `if kept < first then kept = drop(ctx, id, kept, first) end`, ``, chained},
	{"continue: the link before goes, too", "chain.go", `kept = drop(ctx, id, kept, first)`, `kept = drop(ctx, id, kept, core.started(c))`, chained},
	{"continue: streams of old attempts stay", "chain/drop", `for i = 1, #own do gone[#gone + 1] = own[i] end`, ``, chained},
	{"continue: a large input stays beside a small one", "chain/put",
		`  if tonumber(c.input_size or '0') > record.inline and size <= record.inline then redis.call('UNLINK', keys.input(ctx.r, id)) end`, ``, chained},
	{"continue: an empty input keeps the old one", "chain/put", `else record.clear(ctx, id, 'input_size') end`, `end`, chained},
	{"continue: it is in no queue", "chain.go", `  indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)`, ``, chained},
	{"continue: the old timeout stays", "chain.go", `'attempt_deadline', 'attempt_left', 'step_bytes'`, `'attempt_left', 'step_bytes'`, chained},
	{"continue: an attempt of a link is called initial", "claim/take", `state == 'R1f' and c.attempt and 'continue' or types[state]`, `types[state]`, chained},
	{"continue: claims do not say how often", "claim/describe", `kind = kind .. '/' .. string.match(c.links, '^%d+')`, `kind = kind`, chained},
	{"continue: removed attempts look as if they had ended so", "ff_read_attempt_stream", `if attempt < kept then closed, reason = true, 'removed' end`, ``, chained},

	{"remind: the waitpoint dies with its wait", "suspension.shut", `  if e.open then reopen(ctx, id, u) end`, ``, reminded},
	{"remind: every wait that times out leaves its waitpoints open", "settle.timeout", `open = u.behaviour == 'auto_resume_open'`, `open = true`, reminded},
	{"remind: fresh waitpoints stay open", "suspension/reopen", `waitpoint.step(ctx, id, list[i]) and`, ``, reminded},
	{"remind: what was taken is lost", "suspension/reopen", `inbox.unread(ctx, id, u, open)`, `{}`, reminded},
	{"remind: a small signal that was taken is lost", "inbox.unread", `      inside[i].text, inside[i].effect = again(g.text), inbox.buffered`, ``, reminded},
	{"remind: a large signal that was taken is lost", "inbox.unread",
		`        redis.call('LSET', log, reply.int(logs[wid][sid]), again(taken[i]))`, ``, reminded},
	{"remind: what an earlier wait passed over counts", "signal/buffered", `string.sub(entries[i], g.from, g.upto - 1) == inbox.buffered`, `true`, reminded},
	{"remind: it stays open for ever", "waitpoint.reopen", `  redis.call('ZADD', keys.pending(ctx.r), w.expires, id .. ':' .. wid)`, ``, reminded},
	{"remind: a wait takes any number of bytes", "ff_suspend_execution", `if plan.bytes > signal.most_taken then`, `if false then`, reminded},
}
