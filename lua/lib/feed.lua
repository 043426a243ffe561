-- feed: what happened in a partition, as a stream that others follow and replay. Nothing is recorded
-- unless somebody subscribed to it: the root's field feed is "kinds until length". Kinds are letters: c ends, l every
-- other change of state (leases taken and lost among them), s signals. One entry holds all events of a call: first
-- n, "<number of the entry> <ms>", by which a reader notices what was trimmed, then a kind and its text each:
--   c, l   "<execution> <state> <attempt> <route> <epoch> <session>", what is not known is "-"
--   s      "<execution> <waitpoint> <signal> <effect> <name>"
local feed = {}

-- wanted reads what is recorded: kinds, until, length; nil when nothing ever was.
function feed.wanted(ctx)
  if not ctx.feed then return nil end
  if not ctx.cache.feed_kinds then
    local kinds, upto, length = string.match(ctx.feed, '^(%l*) (%d+) (%d+)$')
    ctx.cache.feed_kinds, ctx.cache.feed_until, ctx.cache.feed_length = kinds or '', tonumber(upto or '0'),
      length or '1'
  end
  return ctx.cache.feed_kinds, ctx.cache.feed_until, ctx.cache.feed_length
end

-- add notes an event of a call; flush writes them.
local function add(ctx, kind, text)
  local kinds, upto = feed.wanted(ctx)
  if upto <= ctx.now or not string.find(kinds, kind, 1, true) then return end
  local e = ctx.moves.events or {}
  ctx.moves.events = e
  e[#e + 1] = kind
  e[#e + 1] = text
end

-- state notes that an execution is in another state now.
function feed.state(ctx, id, code, attempt, route_id, epoch, session_id)
  if not ctx.feed then return end
  add(ctx, string.sub(code, 1, 1) == 'T' and 'c' or 'l',
    id .. ' ' .. code .. ' ' .. (attempt ~= '' and attempt or '-') .. ' ' ..
      (route_id or '-') .. ' ' .. (epoch or '-') .. ' ' .. (session_id or '-'))
end

-- signal notes a signal that was accepted.
function feed.signal(ctx, id, waitpoint_id, g)
  if not ctx.feed then return end
  add(ctx, 's', id .. ' ' .. waitpoint_id .. ' ' .. g.id .. ' ' .. g.effect .. ' ' .. g.name)
end

-- flush appends what was noted, and tells those who follow.
function feed.flush(ctx)
  local e = ctx.moves.events
  if not e then return end
  ctx.moves.events = nil
  local number = reply.int(redis.call('HINCRBY', ctx.r, 'fed', 1))
  redis.call('XADD', keys.feed(ctx.r), 'MAXLEN', '~', ctx.cache.feed_length, '*', 'n', number .. ' ' .. ctx.t,
    unpack(e))
  publish.to(keys.news(ctx.r), number)
end

-- trim forgets what is older than a day, and everything a day after the last who wanted it.
function feed.trim(ctx)
  local _, upto = feed.wanted(ctx)
  if not upto then return end
  if upto + 86400000 <= ctx.now then
    redis.call('UNLINK', keys.feed(ctx.r))
    redis.call('HDEL', ctx.r, 'feed')
  else
    redis.call('XTRIM', keys.feed(ctx.r), 'MINID', '~', reply.int(math.max(0, ctx.now - 86400000)))
  end
end
