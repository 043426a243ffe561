-- ff_note_times: a process adds what it measured of attempts in a minute of a kind, "*" for all kinds: how many ended
-- and how, how long they had waited, and how long they ran, as internal/spread writes it. A minute counts by the
-- server's clock: a later one is this one, and one of more than a day ago is dropped. A namespace has at most 256
-- kinds a day; others are added under "". Each call of a sender has a larger number than the one before, and one that
-- was added already changes nothing, for ten minutes.
-- Flags:   none
-- Go:      Engine.NoteTimes
-- Args:    protocol namespace:name(64) sender:name(64) number:n(1..)
--          rows:rows(1..8) {kind:name(64)? minute:n(1..) tally:bytes(1..16384)}
-- Replies: OK added:n; ALREADY_SATISFIED added:n
-- Errors:  @root invalid_input
local ff_times = { -- most is less than what a number has digits for, so that .. writes every count in full
  day = 1440, kinds = 256, keep = 90000, buckets = 229, most = 99999999999999
}

-- counts reads a list "<bucket>:<count>,…" into a table, on top of what is there; nil if it is none.
function ff_times.counts(text, into)
  if text == '' then return into end
  local from, last = 1, -1
  for at, bucket, count, behind in string.gmatch(text .. ',', '()(%d+):([1-9]%d*),()') do
    local b = tonumber(bucket)
    if at ~= from or b <= last or b >= ff_times.buckets or #count > 14 or #bucket > 1 and string.byte(bucket) == 48 then
      return nil
    end
    from, last = behind, b
    into[b] = math.min((into[b] or 0) + tonumber(count), ff_times.most)
  end
  return from == #text + 2 and into or nil
end

-- add reads a tally on top of another one, which it returns; nil if it is none.
function ff_times.add(text, t)
  local a, b, c, d, waited, ran = string.match(text, '^(%d+),(%d+),(%d+),(%d+);([%d:,]*);([%d:,]*)$')
  local ends = { a, b, c, d }
  for i = 1, 4 do
    local n = args.int(ends[i], 0, ff_times.most)
    if not n then return nil end
    t[i] = math.min((t[i] or 0) + n, ff_times.most)
  end
  return ff_times.counts(waited, t.waited) and ff_times.counts(ran, t.ran) and t
end

function ff_times.list(counts)
  local out, n = {}, 0
  for b = 0, ff_times.buckets - 1 do
    local count = counts[b]
    if count then
      n = n + 1
      out[n] = b .. ':' .. count
    end
  end
  return table.concat(out, ',')
end

function ff_times.text(t)
  return table.concat({ table.concat(t, ',', 1, 4), ff_times.list(t.waited), ff_times.list(t.ran) }, ';')
end

-- places says for each row under which kind it is kept, and since when kinds that are new here are known. Kinds of
-- which nothing was heard for a day make room.
function ff_times.places(ctx, namespace, rows, today)
  local known, count = {}, nil
  local key = keys.timed_kinds(ctx.r, namespace)
  for i = 1, #rows do
    local kind, minute = rows[i].kind, reply.int(rows[i].minute)
    local at = known[kind] or kind ~= '' and kind ~= '*' and redis.call('HGET', key, kind)
    if kind ~= '' and kind ~= '*' and not at then
      if not count then
        count = redis.call('HLEN', key)
        if count >= ff_times.kinds then
          local all = redis.call('HGETALL', key)
          for j = 1, #all, 2 do
            if tonumber(all[j + 1]) <= today - ff_times.day then
              redis.call('HDEL', key, all[j])
              count = count - 1
            end
          end
        end
      end
      if count >= ff_times.kinds then
        rows[i].kind = ''
      else
        count = count + 1
      end
    end
    kind = rows[i].kind
    if kind ~= '' and kind ~= '*' and (not at or tonumber(at) < rows[i].minute) then
      redis.call('HSET', key, kind, minute)
      known[kind] = minute
    end
  end
  redis.call('EXPIRE', key, ff_times.keep)
end

local function ff_note_times(ctx, q)
  local today, rows = math.floor(ctx.now / 60000), {}
  for i = 1, #q.rows do
    local row = q.rows[i]
    row.read = ff_times.add(row.tally, { waited = {}, ran = {} })
    if not row.read then return reply.err('invalid_input', 'tally: want counts;waited;ran') end
    row.minute = math.min(row.minute, today)
    if row.minute > today - ff_times.day then rows[#rows + 1] = row end
  end
  local sender = keys.times_sender(ctx.r, q.sender)
  if tonumber(redis.call('GET', sender) or '0') >= q.number then return reply.already('0') end
  redis.call('SET', sender, reply.int(q.number), 'EX', 600)
  ff_times.places(ctx, q.namespace, rows, today)
  for i = 1, #rows do
    local row = rows[i]
    local key, minute = keys.minutes(ctx.r, q.namespace, row.kind), reply.int(row.minute)
    local field = reply.int(row.minute % ff_times.day)
    local at, tally = string.match(redis.call('HGET', key, field) or '', '^(%d+);(.*)$')
    local sum = at == minute and ff_times.add(tally, row.read)
    redis.call('HSET', key, field, minute .. ';' .. (sum and ff_times.text(sum) or row.tally))
    if at ~= minute then redis.call('EXPIRE', key, ff_times.keep) end
  end
  return reply.ok(reply.int(#rows))
end
