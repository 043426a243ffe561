-- clock, test variant: the server's time plus the root's clock_offset, so that tests move time without sleeping.
local clock = {}

function clock.now(root)
  local t = redis.call('TIME')
  local offset = redis.call('HGET', root, 'clock_offset')
  return tonumber(t[1]) * 1000 + math.floor(tonumber(t[2]) / 1000) + tonumber(offset or '0')
end
