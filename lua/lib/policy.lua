-- policy: reads the packed policy that Go wrote (internal/valid.PackPolicy): nine whole numbers, and maybe for how many
-- seconds the execution is kept after its end (policy.span). That has a core field of its own.
local policy = {}

local pattern = '^(%d+),([01]),(%d+),(%d+),(%d+),([01]),(%d+),(%d+),(%d+)$'

-- outcome is the number of an end, by its code: 1 completed, 2 failed, 3 cancelled or skipped, 4 expired.
function policy.outcome(code)
  local n = string.byte(code, 2) - 48
  return n == 5 and 3 or n
end

-- span is for how many seconds a text says that what ended so is kept, 0 if it does not say. A text is one number for
-- every outcome, or one for each, joined by slashes; an unreadable one says nothing.
function policy.span(text, outcome)
  if text and string.find(text, '/', 1, true) then
    text = ({ string.match(text, '^(%d+)/(%d+)/(%d+)/(%d+)$') })[outcome]
  end
  return args.int(text, 0, 315360000) or 0
end

-- till is the instant up to which an execution has its key whatever becomes of it, ms, by what its record says of the
-- key; else 0.
function policy.till(key)
  local at = key and string.match(key, ':(%d+)$')
  return at and tonumber(at) or 0
end

-- spans is the shortest text for what a text says, with what old says where it leaves a number out; nil for one that
-- cannot be.
function policy.spans(text, old)
  if args.int(text, 0, 315360000) then return text end
  local parts = { string.match(text, '^(%d*)/(%d*)/(%d*)/(%d*)$') }
  if not parts[1] then return nil end
  for i = 1, 4 do
    if parts[i] == '' then parts[i] = reply.int(policy.span(old, i)) end
    if not args.int(parts[i], 0, 315360000) then return nil end
  end
  if parts[1] == parts[2] and parts[2] == parts[3] and parts[3] == parts[4] then return parts[1] end
  return table.concat(parts, '/')
end

-- Texts that were judged before: what a text means depends on nothing else, and most executions share a few. They are
-- the one thing that outlives a call, where the server keeps the library loaded.
local judged, count = {}, 0

local function judge(text)
  local numbers, categories = text, ''
  local cut = string.find(text, ';', 1, true)
  if cut then
    numbers, categories = string.sub(text, 1, cut - 1), string.sub(text, cut + 1)
    if #categories < 1 or #categories > 1040 or string.find(categories, '[^%w_.:,-]') then return nil end
  end
  local keep = string.match(numbers, '^%d+,[01],%d+,%d+,%d+,[01],%d+,%d+,%d+,([%d/]+)$')
  if keep then
    if keep == '0' or policy.spans(keep, '') ~= keep then return nil end
    numbers = string.sub(numbers, 1, -2 - #keep)
  end
  local retries, _, initial, ceiling, multiplier, _, reclaims, replays, frames = string.match(numbers, pattern)
  if not retries then return nil end
  if not (args.int(retries, 0, 1000) and args.int(initial, 0, 604800000) and args.int(ceiling, 0, 604800000) and
      args.int(multiplier, 1000, 100000) and args.int(reclaims, 0, 10000) and args.int(replays, 0, 1000) and
      args.int(frames, 0, 1000000)) then
    return nil
  end
  return { numbers, categories, keep or '' }
end

-- split validates a packed text and returns numbers, categories and retention ('' for none), or nil.
function policy.split(text)
  local parts = judged[text]
  if not parts then
    parts = judge(text)
    if not parts then return nil end
    if count == 256 then judged, count = {}, 0 end
    judged[text], count = parts, count + 1
  end
  return parts[1], parts[2], parts[3]
end

-- read returns the numbers; an absent or corrupt policy means no retries and the default caps.
function policy.read(text)
  local p = { retries = 0, reclaims = 10, replays = 10, frames = 0 }
  if not text then return p end
  local retries, fixed, initial, ceiling, multiplier, jitter, reclaims, replays, frames = string.match(text, pattern)
  if not retries then return p end
  p.retries, p.fixed, p.initial = tonumber(retries), fixed == '1', tonumber(initial)
  p.ceiling, p.multiplier, p.jitter = tonumber(ceiling), tonumber(multiplier), jitter == '1'
  p.reclaims, p.replays, p.frames = tonumber(reclaims), tonumber(replays), tonumber(frames)
  return p
end

-- pause before retry k (k = 0 for the first): whole milliseconds, clamped to [0, ceiling]. Jitter is a
-- factor in [0.8, 1.2] that depends only on the execution and k, so a repeated call agrees with itself.
function policy.pause(p, id, k)
  local d = p.initial
  if not p.fixed then
    for _ = 1, math.min(k, 64) do
      if d >= p.ceiling then break end
      d = math.floor(d * p.multiplier / 1000)
    end
    d = math.min(d, p.ceiling)
  end
  if p.jitter then
    local h = tonumber(string.sub(redis.sha1hex(id .. ':' .. reply.int(k)), 1, 6), 16)
    d = math.floor(d * (800 + h % 401) / 1000)
    if not p.fixed then d = math.min(d, p.ceiling) end
  end
  return d
end

-- respite is the pause before reclaim k (k = 0 for the first) in whole milliseconds: none, then 1, 2, 4 … 60 s. One
-- lost worker is an accident of the worker; work that loses one after the other must not take down all of them in a
-- row.
function policy.respite(k) return k > 0 and math.min(60000, 1000 * 2 ^ math.min(k - 1, 6)) or 0 end
