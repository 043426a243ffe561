-- ff_append_log: adds up to 100 lines to the log of the held attempt, of which the last 1,000 lines and 256 KiB are
-- kept (lua/lib/joblog.lua), and tells readers that there is something new. first is the number of the first line in
-- its run, by which a repeat is recognised: lines that are there are skipped. Numbers may have gaps, for a caller that
-- was not answered goes on behind what it sent. A line has when it was logged, a level, how many lines had to be
-- dropped before it, and its message and attributes, which the library never looks into.
-- Flags:   none
-- Go:      Engine.AppendLog
-- Args:    protocol fence first:n(1..9007199254740000) lines:rows(1..100) {at:instant level:debug|info|warn|error
--          dropped:n(0..1000000000) text:bytes(8448)}
-- Replies: OK lines:n; ALREADY_SATISFIED the same
-- Errors:  @root @fence invalid_input
local function ff_append_log(ctx, q)
  local f, lines = q.fence, q.lines
  if not fence.holds(ctx, f) then return fence.check(ctx, core.read(ctx, f.id), f) end
  local key = keys.log(ctx.r, f.id, f.attempt)
  local bytes, number, run, sequence = joblog.last(key)
  local known = run == f.epoch and math.max(0, sequence + 1 - q.first) or 0
  if known >= #lines then return reply.already(reply.int(number)) end
  number = joblog.write(key, f.epoch, lines, known + 1, q.first + known, bytes, number)
  publish.to(keys.log_news(ctx.r, f.id), f.attempt)
  return reply.ok(reply.int(number))
end
