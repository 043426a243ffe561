-- wait_record: the one string that holds what an execution waits for, and the only file that knows its layout: its
-- current or last suspension (suspension says which fields that has), its waitpoints by id (waitpoint says what is in
-- one), and small signals in the order in which they came (signals says which). Its Go twin is internal/record; a test
-- holds the two together. Read once a call, and written once, when the call ends:
--   [<nine values, joined by GS> {GS <field>=<value>}] {FS <waitpoint id> US <waitpoint>} [FS FS {<bytes> <expiry>
--   <signal>}]
-- The nine are id name reason holder created_at timeout_at behaviour condition waitpoints, which most suspensions
-- have; an absent one is empty. Reason and behaviour are letters. The last is "*n" if it lists the first n waitpoints.
-- Other fields have a short name here. Free texts are escaped. No other value, and no waitpoint, contains ESC, FS or
-- GS; a signal may hold any byte.
local wait_record = {}

local marks = { ['\27'] = '\27e', ['\28'] = '\27f', ['\29'] = '\27g' }
local meanings = { e = '\27', f = '\28', g = '\29' }
local placed = { id = true, name = true, reason = true, holder = true, created_at = true, timeout_at = true,
  behaviour = true, condition = true, waitpoints = true }
local free = { name = true, request_key = true, resumed_by = true, why = true, signal_source = true, signal_name = true,
  timeout_signal = true, question = true }

-- stored has the names under which the other fields are stored, long the reverse, made when first needed. Fields that
-- are in neither are stored as they are.
local stored = {
  request_key = 'rq',
  resume_delay = 'rd',
  signals = 'gn',
  matched = 'gm',
  matched_bytes = 'gb',
  last_signal_at = 'gl',
  closed_at = 'cl',
  close_reason = 'cs',
  cause = 'ca',
  trigger = 'tr',
  closing_signal = 'cz',
  resumed_by = 'by',
  signal_source = 'wh',
  signal_name = 'wn',
  first_reason = 'wa',
  session = 'ss',
  claimed_at = 'la',
  has_matched = 'mk',
  timeout_signal = 'ts',
  question = 'qu',
  after = 'af',
}

-- reasons and behaviours have the letters for these values; others are stored as they are.
local reasons = { waiting_for_signal = 's', waiting_for_approval = 'a', waiting_for_callback = 'c',
  waiting_for_tool_result = 't', waiting_for_operator_review = 'o', manual_pause = 'm', step_boundary = 'b',
  paused_by_policy = 'p', paused_by_budget = 'u', waiting_for_children = 'k' }
local behaviours = { fail = 'f', cancel = 'c', expire = 'x', auto_resume = 'r', auto_resume_with_timeout_signal = 't',
  auto_resume_open = 'o', escalate = 'e' }
local long, reason_of, behaviour_of = {}, {}, {}

local function learn()
  for field, name in pairs(stored) do long[name] = field end
  for reason, letter in pairs(reasons) do reason_of[letter] = reason end
  for behaviour, letter in pairs(behaviours) do behaviour_of[letter] = behaviour end
end
local two = '([^\29]*)\29([^\29]*)\29'
local nine = '^' .. two .. two .. two .. two .. '([^\29]*)()'

local function given(text) return text ~= '' and text or nil end

local function some(fields)
  for _ in pairs(fields) do return true end
  return false
end

-- arrived reads the signals, which begin at a position.
local function arrived(text, at)
  local out = {}
  while true do
    local size, expiry, from = string.match(text, '^(%d+) (%d+) ()', at)
    if not size then return out end
    at = from + tonumber(size)
    out[#out + 1] = { expiry = expiry, text = string.sub(text, from, at - 1) }
  end
end

function wait_record.decode(text)
  local points, order, came = {}, {}, nil
  local behind = string.find(text, '\28\28', 1, true)
  if behind then
    came = arrived(text, behind + 2)
    text = string.sub(text, 1, behind - 1)
  end
  local first = string.find(text, '\28', 1, true)
  local head = first and string.sub(text, 1, first - 1) or text
  if first then
    for id, point in string.gmatch(text, '\28([^\28\31]+)\31([^\28]*)') do
      points[id], order[#order + 1] = point, id
    end
  end
  local id, name, reason, holder, created, timeout, behaviour, condition, waitpoints, rest = string.match(head, nine)
  if not id then return { u = {}, points = points, signals = came } end
  if not long.rq then learn() end
  local listed = string.match(waitpoints, '^%*(%d+)$')
  if listed then waitpoints = table.concat(order, ',', 1, math.min(tonumber(listed), #order)) end
  local u = { id = given(id), name = given(name), reason = reason_of[reason] or given(reason),
    holder = given(holder),
    created_at = given(created), timeout_at = given(timeout),
    behaviour = behaviour_of[behaviour] or given(behaviour),
    condition = given(condition), waitpoints = given(waitpoints) }
  if rest <= #head then
    for short, value in string.gmatch(string.sub(head, rest), '\29(%w+)=([^\29]*)') do
      u[long[short] or short] = value
    end
  end
  if string.find(head, '\27', 1, true) then
    for field, value in pairs(u) do u[field] = string.gsub(value, '\27(.)', meanings) end
  end
  return { u = u, points = points, signals = came }
end

local function plain(text)
  if text and string.find(text, '[\27-\29]') then return (string.gsub(text, '[\27-\29]', marks)) end
  return text
end

-- listed returns the waitpoints that a suspension lists if all of them are known; they come first, so that their ids
-- are written once.
local function listed(u, points)
  if not u.waitpoints then return nil end
  local list = #u.waitpoints == 36 and { u.waitpoints } or pack.split(u.waitpoints, ',')
  for i = 1, #list do
    if not points[list[i]] then return nil end
  end
  return list
end

function wait_record.encode(w)
  local u, points, out, n = w.u, w.points, {}, 0
  local list = listed(u, points) or {}
  if some(u) then
    out[1] = (u.id or '') .. '\29' .. (plain(u.name) or '') .. '\29' .. (reasons[u.reason] or u.reason or '') ..
        '\29' .. (u.holder or '') .. '\29' .. (u.created_at or '') .. '\29' .. (u.timeout_at or '') ..
        '\29' .. (behaviours[u.behaviour] or u.behaviour or '') ..
        '\29' .. (u.condition or '') .. '\29' .. (#list > 0 and '*' .. reply.int(#list) or u.waitpoints or '')
    n = 1
    for field, value in pairs(u) do
      if not placed[field] then
        n = n + 1
        out[n] = '\29' .. (stored[field] or field) .. '=' .. (free[field] and plain(value) or value)
      end
    end
  end
  local written = {}
  for i = 1, #list do
    n = n + 1
    out[n] = '\28' .. list[i] .. '\31' .. points[list[i]]
    written[list[i]] = true
  end
  for id, point in pairs(points) do
    if not written[id] then
      n = n + 1
      out[n] = '\28' .. id .. '\31' .. point
    end
  end
  local came = w.signals
  if came and #came > 0 then
    n = n + 1
    out[n] = '\28\28'
    for i = 1, #came do
      n = n + 1
      out[n] = reply.int(#came[i].text) .. ' ' .. came[i].expiry .. ' ' .. came[i].text
    end
  end
  return table.concat(out)
end

-- of returns what an execution waits for. Who changes it says so with touch.
function wait_record.of(ctx, id)
  local all = ctx.cache.waits
  if not all then
    all = {}
    ctx.cache.waits = all
  end
  local w = all[id]
  if not w then
    local text = redis.call('MGET', keys.waits(ctx.r, id))[1] -- a key of another type reads as none
    w = text and wait_record.decode(text) or { u = {}, points = {} }
    all[id] = w
  end
  return w
end

-- load reads what an execution waits for and its record with one command.
function wait_record.load(ctx, id)
  local texts = redis.call('MGET', keys.waits(ctx.r, id), keys.core(ctx.r, id))
  ctx.cache.waits, ctx.cache.texts = { [id] = texts[1] and wait_record.decode(texts[1]) or { u = {}, points = {} } },
    { [id] = texts[2] }
end

-- none says that an execution waits for nothing yet, which its record tells, so that nobody reads.
function wait_record.none(ctx, id)
  ctx.cache.waits = ctx.cache.waits or {}
  ctx.cache.waits[id] = ctx.cache.waits[id] or { u = {}, points = {} }
end

-- touch plans to write what changed.
function wait_record.touch(ctx, id)
  if not ctx.cache.waited then ctx.cache.waited = {} end
  ctx.cache.waited[id] = true
end

-- set changes fields of the suspension.
function wait_record.set(ctx, id, fields)
  local u = wait_record.of(ctx, id).u
  for i = 1, #fields, 2 do u[fields[i]] = fields[i + 1] end
  wait_record.touch(ctx, id)
end

-- ids lists the waitpoints.
function wait_record.ids(ctx, id)
  local out = {}
  for wid in pairs(wait_record.of(ctx, id).points) do out[#out + 1] = wid end
  return out
end

-- forget removes everything.
function wait_record.forget(ctx, id)
  redis.call('UNLINK', keys.waits(ctx.r, id))
  wait_record.of(ctx, id)
  ctx.cache.waits[id] = { u = {}, points = {} }
  if ctx.cache.waited then ctx.cache.waited[id] = nil end
end

-- flush hands what changed to the write at the end of the call.
function wait_record.flush(ctx)
  for id in pairs(ctx.cache.waited) do
    record.write(ctx, keys.waits(ctx.r, id), wait_record.encode(ctx.cache.waits[id]))
  end
  ctx.cache.waited = nil
end
