-- chain: an execution that continues with another input. Each time begins a link, whose attempts are numbered on. The
-- record says in one field "<how often>,<first attempt of this link>,<first attempt that is kept>". The link before
-- this one stays readable; what is older goes, so that an execution may continue for ever.
local chain = {}

local most_dropped = 200

-- of reads that field: how often it has continued, the first attempt of its link, and the first attempt that is kept.
function chain.of(c)
  local n, first = string.match(c.links or '', '^(%d+),(%d+),')
  return tonumber(n or '0'), tonumber(first or '1'), record.kept(c)
end

-- drop removes what is stored of the attempts from a number on up to another, at most 200, and returns the first one
-- that is left.
local function drop(ctx, c, id, from, upto)
  local r, gone, fields = ctx.r, {}, {}
  local last = math.min(upto, from + most_dropped)
  for attempt = from, last - 1 do
    local a, n = reply.int(attempt), #fields
    fields[n + 1], fields[n + 2], fields[n + 3], fields[n + 4] = a, a .. 'r', a .. 's', a .. 'w'
    fields[n + 5] = a .. 'b'
  end
  base.let(ctx, c, id, from, last - 1, gone)
  for i = 1, #gone, 500 do redis.call('UNLINK', unpack(gone, i, math.min(i + 499, #gone))) end
  if #fields > 0 then redis.call('HDEL', keys.attempts(r, id), unpack(fields)) end
  return last
end

-- put gives an execution another input.
local function put(ctx, c, id, input)
  local size = #input
  if tonumber(c.input_size or '0') > record.inline and size <= record.inline then
    redis.call('UNLINK', keys.input(ctx.r, id))
  end
  if size > record.inline then record.write(ctx, keys.input(ctx.r, id), input) end
  if size > 0 then record.set(ctx, id, 'input_size', reply.int(size)) else record.clear(ctx, id, 'input_size') end
  if size > 0 and size <= record.inline then record.set(ctx, id, 'input', input) else record.clear(ctx, id, 'input') end
end

-- go ends the attempt of a fence and begins the next link. It returns how many there were.
function chain.go(ctx, c, f, input)
  local id = f.id
  local n, first, kept = chain.of(c)
  local count = reply.int(n + 1)
  stream.recorded(ctx, c, f) -- no later attempt repeats what this one has appended
  settle.fold(ctx, c, id, 'continued', '', '')
  stream.close(ctx, c, id, 'continued')
  waitpoint.abandon(ctx, c, id, 'attempt_ended')
  if kept < first then kept = drop(ctx, c, id, kept, first) end
  if c.frames_attempt and tonumber(c.frames_attempt) < kept then record.clear(ctx, id, 'frames_attempt') end
  redis.call('HDEL', keys.attempts(ctx.r, id), 'progress')
  if c.step_bytes then steps.clear(ctx, id) end
  wait_others.leave(ctx, c, id)
  if c.flow or c.children_wait then redis.call('UNLINK', keys.children(ctx.r, id)) end
  local begins = reply.int(core.started(c) + 1)
  record.set(ctx, id, 'state', 'R1f', 'links', count .. ',' .. begins .. ',' .. reply.int(kept),
    'last_release', fence.release('c', f.epoch, f.attempt, count))
  record.clear(ctx, id, 'retries', 'reclaims', 'failure_category', 'attempt_deadline', 'attempt_left', 'step_bytes',
    'resume_bytes', 'children_wait', 'rewinds')
  talk.ended(ctx, c, id)
  put(ctx, c, id, input)
  if c.attempt_deadline then indexes.alarm(ctx, c.deadline and tonumber(c.deadline), id) end
  history.add(ctx, c, id, 'continued', count, c.claimed_at)
  home.ready(ctx, c, id)
  core.announce(ctx, c, id, 'R1f')
  return count
end
