-- clock: the server's time in whole milliseconds, read once per call. Tests load a variant of this file
-- that adds an offset stored in the partition root; nothing else about the library differs then.
local clock = {}

function clock.now(r)
  local t = redis.call('TIME')
  return t[1] * 1000 + math.floor(t[2] / 1000)
end
