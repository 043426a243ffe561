-- ff_set_index: says what the catalogue of a partition keeps: every execution by its creation (routes), and which
-- tags can be asked for, at most 8. What comes anew is marked until ready is said, after everything that was there
-- before was listed by ff_index_executions. What is not kept any more goes, 200 sets a call: with more the same call
-- is made again, with the cursor that was answered, '' at first.
-- Flags:   none
-- Go:      Engine.SetIndex
-- Args:    protocol routes:flag ready:flag cursor:scan? tags:rows(0..8) {key:line(1..64)}
-- Replies: OK more:flag cursor:text
-- Errors:  @root invalid_input invalid_tag_key
local ff_index = {}

-- marks reads what was said: the mark of the routes, and of each tag key.
function ff_index.marks(ctx)
  local text, tags = ctx.index or '0', {}
  for mark, key in string.gmatch(text, ' ([+~-])(%S+)') do tags[key] = mark end
  return string.sub(text, 1, 1), tags
end

-- forget removes sets of a tag that is not kept, and tells whether there are more.
function ff_index.forget(ctx, key)
  local values, gone = redis.call('SSCAN', keys.values(ctx.r, key), '0', 'COUNT', '200')[2], {}
  for i = 1, #values do gone[i] = keys.labelled(ctx.r, catalogue.label(key, values[i])) end
  if #gone > 0 then
    redis.call('UNLINK', unpack(gone))
    redis.call('SREM', keys.values(ctx.r, key), unpack(values))
    if redis.call('EXISTS', keys.values(ctx.r, key)) == 1 then return true end
  end
  redis.call('HDEL', ctx.r, 'full:' .. key)
  return false
end

-- unlist removes sets of routes that are not kept, and returns the cursor of the next ones, '' when there are none.
function ff_index.unlist(ctx, cursor)
  local page, gone = redis.call('HSCAN', keys.routes(ctx.r), cursor == '' and '0' or cursor, 'COUNT', '200'), {}
  for i = 1, #page[2], 2 do gone[#gone + 1] = keys.made(ctx.r, page[2][i]) end
  if #gone > 0 then redis.call('UNLINK', unpack(gone)) end
  return page[1] ~= '0' and page[1] or ''
end

local function ff_set_index(ctx, q)
  local routes, had = ff_index.marks(ctx)
  local want, more, cursor, names = {}, false, '', {}
  for i = 1, #q.tags do
    if not args.tag(q.tags[i]) then return reply.err('invalid_tag_key', q.tags[i]) end
    want[q.tags[i]] = true
  end
  for key, mark in pairs(had) do
    if not want[key] or mark == '-' then
      if ff_index.forget(ctx, key) then
        had[key], want[key], more = '-', true, true
      else
        had[key] = nil
      end
    end
  end
  if q.routes then
    routes = (routes == '1' or q.ready and routes == '~') and '1' or '~'
  else
    routes, cursor = '0', ff_index.unlist(ctx, q.cursor)
    more = more or cursor ~= ''
  end
  for key in pairs(want) do names[#names + 1] = key end
  table.sort(names)
  local text = routes
  for i = 1, #names do
    local mark = had[names[i]]
    if mark == '~' and q.ready then mark = '+' end
    text = text .. ' ' .. (mark or '~') .. names[i]
  end
  redis.call('HSET', ctx.r, 'index', text)
  return reply.ok(more and '1' or '0', cursor)
end
