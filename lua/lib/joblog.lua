-- joblog: the last log lines of an attempt, a stream of at most 1,000 lines and 256 KiB. The id of an entry is
-- "<bytes of all lines before it>-<number of the line>", so that one XTRIM by id keeps so many bytes, and a reader sees
-- what it has missed. An entry has t, when the line was logged (by the worker's clock), l, its level, b, message and
-- attributes, r, the run that sent it and its number there, and d, how many lines the worker had to drop just before.
local joblog = { most = 1000, bytes = 262144, scan = 1000 } -- lines kept, bytes kept, entries a read looks at

joblog.levels = { debug = 1, info = 2, warn = 3, error = 4 }

-- last is where the log of an attempt ends: bytes and lines so far, and the run and number of its last line.
function joblog.last(key)
  local entry = redis.call('XREVRANGE', key, '+', '-', 'COUNT', 1)[1]
  if not entry then return 0, 0, '', 0 end
  local v, fields = entry[2], {}
  for i = 1, #v, 2 do fields[v[i]] = v[i + 1] end
  local start, number = string.match(entry[1], '^(%d+)%-(%d+)$')
  local run, sequence = string.match(fields.r or '', '^(%d+) (%d+)$')
  return tonumber(start) + #(fields.b or ''), tonumber(number), run or '', tonumber(sequence or '0')
end

-- write adds lines from a place of a list on. sequence is the number of the first one in its run.
function joblog.write(key, run, lines, from, sequence, bytes, number)
  for i = from, #lines do
    local x = lines[i]
    number = number + 1
    local id, r = reply.int(bytes) .. '-' .. reply.int(number), run .. ' ' .. reply.int(sequence + i - from)
    if x.dropped > 0 then
      redis.call('XADD', key, id, 't', x.at, 'l', x.level, 'b', x.text, 'r', r, 'd', reply.int(x.dropped))
    else
      redis.call('XADD', key, id, 't', x.at, 'l', x.level, 'b', x.text, 'r', r)
    end
    bytes = bytes + #x.text
  end
  redis.call('XTRIM', key, 'MAXLEN', joblog.most)
  if bytes > joblog.bytes then redis.call('XTRIM', key, 'MINID', reply.int(bytes - joblog.bytes)) end
  return number
end

-- read adds lines of an attempt behind an id to out, as {attempt, id, time, level, dropped, text}. left is how many
-- entries and bytes it may still look at, and how many lines add. It returns the id of the last entry that it saw.
function joblog.read(ctx, id, attempt, after, level, left, out)
  local list = redis.call('XRANGE', keys.log(ctx.r, id, attempt), after == '' and '-' or '(' .. after, '+', 'COUNT',
    left.entries)
  for i = 1, #list do
    if left.lines == 0 or left.bytes <= 0 then return after, true end
    local v, x = list[i][2], {}
    for k = 1, #v, 2 do x[v[k]] = v[k + 1] end
    after, left.entries = list[i][1], left.entries - 1
    if (joblog.levels[x.l] or 4) >= level or x.d then
      local n = #out
      out[n + 1], out[n + 2], out[n + 3] = attempt, after, x.t or '0'
      out[n + 4], out[n + 5], out[n + 6] = x.l or 'error', x.d or '0', x.b or ''
      left.lines, left.bytes = left.lines - 1, left.bytes - #out[n + 6]
    end
  end
  return after, left.entries == 0
end
