-- ff_read_log: the log lines of an execution behind a place, which is an attempt and the id of a line, up to max and
-- about 256 KiB a call: of that attempt and those after it, or with only of that one. Lines below the level are left
-- out, but not those that tell of dropped ones. It answers the place up to which it looked, and whether there is more
-- now: then it is asked again. attempts is how many there were. What a fork has taken over has no log.
-- Flags:   no-writes
-- Go:      Engine.ReadLogLines
-- Args:    protocol id:id attempt:n(1..4294967295) after:bytes(40) only:flag level:debug|info|warn|error
--          max:n(1..1000)
-- Replies: OK code:code attempts:n attempt:n after:text more:flag lines:rows {attempt:n id:text at:instant level:text
--          dropped:n text:text}
-- Errors:  @root invalid_input execution_not_found result_purged corrupt
local function ff_read_log(ctx, q)
  local id, after, level = q.id, q.after, joblog.levels[q.level]
  if after ~= '' and not string.match(after, '^%d+%-%d+$') then
    return reply.err('invalid_input', 'after: the id of a line')
  end
  local c = core.read(ctx, id)
  if not c.state then return purge.missing(ctx, id) end
  if c.purged_until then return reply.err('result_purged', c.state) end
  local started, attempt, out, more = core.started(c), q.attempt, {}, false
  local from = q.only and attempt or math.max(attempt, record.kept(c))
  if from > attempt then attempt, after = from, '' end
  local left = { entries = joblog.scan, bytes = joblog.bytes, lines = q.max }
  for step = 1, 100 do
    if attempt > started then break end
    after, more = joblog.read(ctx, id, reply.int(attempt), after, level, left, out)
    if more or q.only or attempt == started then break end
    attempt, after, more = attempt + 1, '', step == 100
  end
  return reply.add(reply.ok(c.state, reply.int(started), reply.int(attempt), after, more and '1' or '0'), out, 6)
end
