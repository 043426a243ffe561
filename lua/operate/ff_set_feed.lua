-- ff_set_feed: says which kinds of events are recorded in the partition's feed (letters c, l, s; see
-- lua/lib/feed.lua) and for how many ms from now on; what others want stays. Without kinds nothing is recorded any
-- more, and the feed goes.
-- Flags:   allow-oom
-- Go:      Engine.setFeed
-- Args:    protocol kinds:bytes(3) keep:ms(60000..604800000) length:n(1000..10000000)
-- Replies: OK kinds:text until:instant number:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input
local ff_feed = {}

-- union is what is recorded when both are wanted, in a fixed order.
function ff_feed.union(a, b)
  local out, kinds = '', 'cls'
  for i = 1, 3 do
    local kind = string.sub(kinds, i, i)
    if string.find(a .. b, kind, 1, true) then out = out .. kind end
  end
  return out
end

local function ff_set_feed(ctx, q)
  local kinds, keep, length = q.kinds, q.keep, q.length
  if string.find(kinds, '[^cls]') then return reply.err('invalid_input', 'kinds: of c, l and s') end
  local number = redis.call('HGET', ctx.r, 'fed') or '0'
  local old, upto, most = feed.wanted(ctx)
  if kinds == '' then
    if not old then return reply.already('', '0', number) end
    redis.call('UNLINK', keys.feed(ctx.r))
    redis.call('HDEL', ctx.r, 'feed')
    return reply.ok('', '0', number)
  end
  local live = old and upto > ctx.now
  local all, last = ff_feed.union(live and old or '', kinds), math.max(live and upto or 0, ctx.now + keep)
  local text = all .. ' ' .. reply.int(last) .. ' ' .. reply.int(math.max(length, live and tonumber(most) or 0))
  if text == ctx.feed then return reply.already(all, reply.int(last), number) end
  redis.call('HSET', ctx.r, 'feed', text)
  root.need(ctx, last + 86400000)
  return reply.ok(all, reply.int(last), number)
end
