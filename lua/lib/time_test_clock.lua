-- clock, test variant: the server's time plus the root's clock_offset, or exactly its clock_pin, so that tests move
-- time without sleeping and stop it where every millisecond counts.
local clock = {}

function clock.now(r)
  local h = redis.call('HMGET', r, 'clock_pin', 'clock_offset')
  if h[1] then return tonumber(h[1]) end
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000) + tonumber(h[2] or '0')
end
