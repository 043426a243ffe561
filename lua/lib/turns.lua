-- turns: which lane comes next. The lanes with work share claims by weight, however much of it waits in each, and
-- however urgent or old it is. No count is kept: the rotation of a claim, which grows with each claim of a worker,
-- says where it begins. The weights make places, 3 and 1 make four of them. As many claims in a row begin at each
-- place once, in strides near the golden section, so that the places of a lane are spread. A claim goes round all
-- places as often as it can, and takes what is left evenly apart: each lane gets its part of n, rounded up or down.
local turns = {}

local function divisor(a, b)
  while b > 0 do
    local rest = a % b -- not in one assignment with the others: the embedded server's Lua would set a too early
    a = b
    b = rest
  end
  return a
end

-- stride is near the golden section of n, and has no divisor in common with it, so that n strides come to each of n
-- places.
local function stride(n)
  local s = math.max(1, math.floor(n * 618 / 1000))
  while divisor(n, s) > 1 do s = s + 1 end
  return s
end

-- arrange lays out the places of the lanes that are left, for what is left of the claim.
local function arrange(t)
  local common, sum = 0, 0
  for i = 1, #t.lanes do common = divisor(t.lanes[i].weight, common) end
  for i = 1, #t.lanes do
    sum = sum + t.lanes[i].weight / common
    t.lanes[i].upto = sum
  end
  local wanted = t.wanted - t.taken
  t.places, t.step, t.wanted, t.taken, t.now = sum, stride(sum), wanted, 0, nil
  t.first, t.rest = t.rotation % sum * t.step % sum, wanted % sum
  t.part = t.rest > 0 and stride(t.rest)
end

-- begin makes turns of lanes, each with a name and a weight, for a claim of n.
function turns.begin(lanes, rotation, n)
  table.sort(lanes, function(a, b) return a.name < b.name end)
  local t = { lanes = lanes, rotation = rotation, wanted = n, taken = 0 }
  if #lanes > 1 then arrange(t) end
  return t
end

-- current is the lane whose turn it is, nil when none has work.
local function current(t)
  if #t.lanes < 2 then return t.lanes[1] end
  if not t.now then
    local beyond, i = t.taken - (t.wanted - t.rest), 1
    local on = t.taken * t.step
    if beyond >= 0 then on = math.floor(beyond * t.part % t.rest * t.places / t.rest) end
    local place = (t.first + on) % t.places
    while place >= t.lanes[i].upto do i = i + 1 end
    t.now = t.lanes[i]
  end
  return t.now
end

-- drop takes out a lane that has nothing left.
local function drop(t, l)
  local left = {}
  for i = 1, #t.lanes do
    if t.lanes[i] ~= l then left[#left + 1] = t.lanes[i] end
  end
  t.lanes = left
  if #left > 1 then arrange(t) end
end

-- next is what head(ctx, lane) returns for the lane whose turn it is; nil when no lane has anything left.
function turns.next(ctx, t, head)
  local l = current(t)
  while l do
    local h = head(ctx, l)
    if h then return h end
    drop(t, l)
    l = current(t)
  end
  return nil
end

-- took ends a turn: what came next was handed out. What was passed over is none.
function turns.took(t) t.taken, t.now = t.taken + 1, nil end

-- part is which part of all that is read ahead of the turns is read of a lane: half of it for all lanes alike, half
-- by weight.
function turns.part(lanes, l)
  local sum = 0
  for i = 1, #lanes do sum = sum + lanes[i].weight end
  return (1 / #lanes + l.weight / sum) / 2
end
