package main

// settleMutants break the ways an attempt ends or pauses: counters, caps, backoff, what is cleared and who is told.
var settleMutants = []Mutant{
	{"complete: the result goes to the first attempt", "settle.complete",
		`keys.result(ctx.r, id, attempt), result`, `keys.result(ctx.r, id, '0'), result`, suite("edge cases")},
	{"complete: the stream stays open", "settle.complete",
		`  if c.frames_attempt == attempt then stream.finish(ctx, id, attempt, 'attempt_success') end`, ``, suite("stream")},
	{"complete: the alarm stays", "settle.complete",
		`  if c.deadline or c.attempt_deadline then indexes.alarm(ctx, nil, id) end`, ``, suite("settle|time")},
	{"complete: the alarm of a deadline stays", "settle.complete",
		`  if c.deadline or c.attempt_deadline then indexes`, `  if c.attempt_deadline then indexes`, suite("edge cases")},
	{"complete: stays held", "settle.splice",
		`  indexes.unhold(ctx, f.session, f.id)`, ``, suite("settle")},
	{"complete: nobody is told", "settle.complete",
		`  publish.to(keys.events(ctx.r, id), 'T1 ' .. attempt)`, ``, suite("cancel|settle")},
	{"complete: a repeat is refused", "ff_complete.judge",
		`return '=' end`, `return '-stale_lease' end`, suite("settle|repeat")},
	{"complete: a repeat by another holder is taken for the first", "ff_complete.repeated",
		`c.session == f.session and c.claim_number == f.claim and c.epoch == f.epoch and`, `c.epoch == f.epoch and`, suite("edge cases")},
	{"complete: the same execution twice in a call", "ff_complete.judge",
		`  seen[id] = true`, ``, suite("settle")},

	{"totals: an end of another kind is one more that completed", "indexes.done",
		`  if code ~= 'T1' then`, `  if false then`, suite("totals")},
	{"totals: ends are counted by their whole code", "indexes.done",
		`string.sub(code, 1, 2), ctx.moves.outcomes`, `code, ctx.moves.outcomes`, suite("totals")},
	{"totals: a replay takes an end back", "replay.run",
		`  redis.call('HINCRBY', ctx.r, 'tally:again', '1')`, ``, suite("totals")},
	{"finish: what never ran ends as if it had", "settle.finish",
		`if not c.attempt and code ~= 'T1' then code = code .. 'n' end`, ``, suite("cancel|time")},
	{"finish: the stream stays open", "settle.finish",
		`  stream.close(ctx, c, id, reason)`, ``, suite("stream|cancel")},
	{"finish: the alarm stays", "settle.finish",
		`  if c.deadline or c.attempt_deadline or c.suspension_deadline or c.grant_deadline or c.state == 'A3' then indexes.alarm(ctx, nil, id) end`, ``, suite("cancel|settle")},
	{"finish: nobody is told", "settle.finish",
		`  suspension.finish(ctx, c, id, reason)
  stream.close(ctx, c, id, reason)
  core.announce(ctx, c, id, code)`, `  suspension.finish(ctx, c, id, reason)
  stream.close(ctx, c, id, reason)`, suite("cancel|settle")},
	{"finish: the timer of the attempt is kept", "settle.finish",
		`  if c.attempt_deadline or c.attempt_left or c.suspension_deadline or c.delay_until or c.grant_deadline then record.clear(ctx, id, 'attempt_deadline', 'attempt_left', 'suspension_deadline', 'delay_until', 'grant_deadline', 'grant_session', 'grant_number') end`, ``, suite("cancel|settle|time")},

	{"pause: what is left of the attempt's time is forgotten", "settle.pause",
		`    record.set(ctx, id, 'attempt_left', reply.int(math.max(1, tonumber(c.attempt_deadline) - ctx.now)))`, ``, suite("settle|time|claim")},
	{"pause: the attempt's time is counted from zero", "settle.pause",
		`tonumber(c.attempt_deadline) - ctx.now`, `tonumber(c.attempt_deadline)`, suite("settle|time|claim")},
	{"pause: the deadline's alarm is lost", "settle.pause",
		`    record.clear(ctx, id, 'attempt_deadline')
    indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id)`, `    record.clear(ctx, id, 'attempt_deadline')
    indexes.alarm(ctx, nil, id)`, suite("time|settle|golden")},
	{"pause: a delayed attempt is claimable at once", "settle.pause",
		`    indexes.delay(ctx, at, id)
  else
    indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  end
  core.announce(ctx, c, id, at and`, `    indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  else
    indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)
  end
  core.announce(ctx, c, id, at and`, suite("settle")},

	{"fail: one retry too many", "settle.fail",
		`k < p.retries`, `k <= p.retries`, suite("settle")},
	{"fail: a permanent failure is retried", "settle.fail",
		`not f.permanent and `, ``, suite("settle")},
	{"fail: the category permanent is retried", "settle.fail",
		`f.category ~= 'permanent' and `, ``, suite("edge cases")},
	{"fail: categories that are not listed are retried", "settle.fail",
		`and listed and`, `and`, suite("settle")},
	{"fail: a retry is not counted", "settle.fail",
		`'retries', reply.int(k + 1)`, `'retries', reply.int(k)`, suite("settle")},
	{"fail: a lost reply cannot be repeated", "settle.fail",
		`  if release then fields[7], fields[8] = 'last_release', release end`, ``, suite("settle")},
	{"fail: the handler's pause is ignored", "settle.fail",
		`f.after or policy.pause(p, id, k)`, `policy.pause(p, id, k)`, suite("settle|golden|operator")},
	{"fail: the dead letter loses its category", "settle.fail",
		`local extra = { 'failure_category', f.category }`, `local extra = { 'failure_category', 'error' }`, suite("settle")},
	{"fail: the attempt is not recorded", "settle.fail",
		`  settle.fold(ctx, c, id, 'ended_failure', f.category, f.reason)`, ``, suite("settle")},
	{"fail: the stream stays open", "settle.fail",
		`  stream.close(ctx, c, id, closed)`, ``, suite("stream")},
	{"fail: a timed-out attempt closes as failed", "settle.fail",
		`f.category == 'attempt_timeout' and 'expired' or 'attempt_failure'`, `'attempt_failure'`, suite("stream|time")},
	{"fold: a revoked attempt ends for another reason", "settle.fold",
		`  if c.state == 'A3' then category = 'lease_revoked' end`, ``, suite("edge cases")},
	{"fail: a repeat is refused", "ff_fail_execution",
		`fence.released(c, f, 'f')`, `fence.released(c, f, 'd')`, suite("settle")},
	{"fail: the holder's timeout counts before it is due", "ff_fail_execution",
		` and c.attempt_deadline and tonumber(c.attempt_deadline) <= ctx.now`, ``, suite("time|settle")},
	{"delay: a repeat is refused", "ff_delay_execution",
		`fence.released(c, f, 'd')`, `fence.released(c, f, 'f')`, suite("settle|repeat|golden")},
	{"release: a repeat is refused", "ff_release_execution",
		`fence.released(c, f, 'h')`, `fence.released(c, f, 'd')`, suite("settle|repeat|golden")},

	{"timeout: ends the execution despite retries", "settle.fail",
		`  if not retry then
    if f.release`, `  if not retry or f.timeout then
    if f.release`, suite("time")},
	{"timeout: the last one ends failed", "settle.fail",
		`f.timeout and 'T4' or 'T2'`, `'T2'`, suite("time")},

	{"requeue: counts a retry", "settle.requeue",
		`'reclaims', reply.int(count + 1))`, `'reclaims', reply.int(count + 1), 'retries', reply.int(tonumber(c.retries or '0') + 1))`, suite("time")},
	{"requeue: one reclaim too many", "settle.requeue",
		`local last = count >= policy.read(c.policy).reclaims`, `local last = count > policy.read(c.policy).reclaims`, suite("time")},
	{"requeue: the reclaim is not counted", "settle.requeue",
		`'reclaims', reply.int(count + 1))`, `'reclaims', reply.int(count))`, suite("time")},
	{"requeue: no pause between reclaims", "settle.requeue",
		`c.state == 'A1' and policy.respite(count) or 0`, `0`, suite("time")},
	{"requeue: a revoked lease has a pause", "settle.requeue",
		`c.state == 'A1' and policy.respite(count) or 0`, `policy.respite(count)`, suite("time")},
	{"requeue: the pause is not in the delayed set", "settle.requeue",
		`indexes.delay(ctx, ctx.now + pause, id)`, `indexes.enqueue(ctx, c.route, lane.score(ctx, c), id)`, suite("time")},
	{"requeue: the first reclaim pauses", "policy.respite",
		`return k > 0 and math.min(60000, 1000 * 2 ^ math.min(k - 1, 6)) or 0`, `return math.min(60000, 1000 * 2 ^ math.min(k, 6))`, suite("time")},
	{"requeue: the pause has no ceiling", "policy.respite",
		`math.min(60000, 1000 * 2 ^ math.min(k - 1, 6))`, `1000 * 2 ^ math.min(k - 1, 10)`, suite("time")},
	{"requeue: the dead attempt's timer stays", "settle.requeue",
		`  if c.attempt_deadline or c.attempt_left then record.clear(ctx, id, 'attempt_deadline', 'attempt_left') end
  if c.attempt_deadline or c.attempt_left or c.state == 'A3' then`, `  if c.state == 'A3' then`, suite("time")},
	{"requeue: the stream stays open", "settle.requeue",
		`  stream.close(ctx, c, id, why)`, ``, suite("stream")},
	{"requeue: the attempt is not recorded", "settle.requeue",
		`  settle.fold(ctx, c, id, 'interrupted_reclaimed', why, said)`, ``, suite("time")},

	{"policy: the exponent is off by one", "policy.pause",
		`math.min(k, 64)`, `math.min(k + 1, 64)`, suite("settle")},
	{"policy: jitter is out of range", "policy.pause",
		`800 + h % 401`, `700 + h % 601`, suite("settle")},
	{"policy: the ceiling is ignored", "policy.pause",
		`    end
    d = math.min(d, p.ceiling)`, `    end`, suite("settle")},
	{"policy: a fixed pause grows", "policy.pause",
		`  if not p.fixed then
    for _`, `  if true then
    for _`, suite("settle")},
	{"policy: reclaims and replays swapped", "policy.read",
		`p.reclaims, p.replays, p.frames = tonumber(reclaims), tonumber(replays)`,
		`p.reclaims, p.replays, p.frames = tonumber(replays), tonumber(reclaims)`, suite("time|operator")},

	{"cancel: the owner needs no fence", "ff_cancel_execution",
		`(source == 'owner' or bad[2] ~= 'fence_required')`, `bad[2] ~= 'fence_required'`, suite("cancel|errors")},
	{"cancel: the fence is not checked", "ff_cancel_execution",
		`    if answer then return answer end`, ``, suite("cancel|errors")},
	{"cancel: the attempt stays open", "ff_cancel_execution",
		`  if settle.open(c) then settle.fold(ctx, c, id, 'ended_cancelled', '', '') end`, ``, suite("cancel")},
	{"cancel: the holder is not told", "ff_cancel_execution",
		`  if c.state == 'A1' and not f then session.lost(ctx, c.session, id, c.epoch, 'cancelled') end`, ``, suite("lease|cancel|bell")},
	{"cancel: the holder that cancels is told of a loss", "ff_cancel_execution",
		`c.state == 'A1' and not f then`, `c.state == 'A1' then`, suite("lease|cancel")},
	{"cancel: an ended execution is cancelled", "ff_cancel_execution",
		`  if core.terminal(c) then return fence.not_active(c) end`, ``, suite("cancel|golden")},
}
