-- clock, test variant: the server's time plus the root's clock_offset, so that tests move time without sleeping.
local clock = {}

function clock.now(r)
  local t = redis.call('TIME')
  local offset = redis.call('HGET', r, 'clock_offset')
  return t[1] * 1000 + math.floor(t[2] / 1000) + tonumber(offset or '0')
end
