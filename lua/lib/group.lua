-- group: what a member waits for, one text of its links: "policy quorum after upstreams succeeded failed skipped state".
-- policy is all, any or quorum; after is run or cancel, what happens to the others once it is decided; state is p
-- pending, s satisfied or i impossible. An edge into a member is "mark,attempt,input".
-- Marks: . open, ~ open and spared, s f c e k how the upstream ended, l succeeded after the group was decided.
local group = {}

function group.parse(text)
  local policy_, k, after, n, s, f, x, state = string.match(text or '', '^(%l+) (%d+) (%l+) (%d+) (%d+) (%d+) (%d+) (%l)$')
  if not policy_ then return nil end
  return { policy = policy_, quorum = tonumber(k), after = after, upstreams = tonumber(n), succeeded = tonumber(s), failed = tonumber(f),
    skipped = tonumber(x), state = state }
end

function group.text(g)
  return g.policy .. ' ' .. g.quorum .. ' ' .. g.after .. ' ' .. g.upstreams .. ' ' .. -- small numbers
      g.succeeded .. ' ' .. g.failed .. ' ' .. g.skipped .. ' ' .. g.state
end

-- count moves a counter: s and l are successes, k is skipped, f c e are failures; open marks are in none.
function group.count(g, mark, change)
  if mark == 's' or mark == 'l' then
    g.succeeded = g.succeeded + change
  elseif mark == 'k' then
    g.skipped = g.skipped + change
  elseif mark == 'f' or mark == 'c' or mark == 'e' then
    g.failed = g.failed + change
  end
end

-- decide evaluates a pending group and tells whether it was decided just now.
function group.decide(g)
  if g.state ~= 'p' then return false end
  local wants = g.policy == 'all' and g.upstreams or g.policy == 'any' and 1 or g.quorum
  if g.succeeded >= wants then
    g.state = 's'
  elseif g.failed + g.skipped > g.upstreams - wants then
    g.state = 'i'
  end
  return g.state ~= 'p'
end

-- record reads an edge: mark, attempt, input.
function group.record(text)
  local mark, attempt, input = string.match(text or '', '^([.~sfcekl]),(%d*),(.*)$')
  return mark, attempt, input
end
