-- group: what a member waits for, one text of its links: "policy quorum after upstreams succeeded failed skipped
-- state". policy is all, any or quorum, or one that watches: ended is satisfied once all upstreams have ended, failed
-- likewise if one did not succeed. after is run or cancel, what happens to the others once it is decided; state is p
-- pending, s satisfied or i impossible. A ninth word says that the member is optional, failed or behind one that is:
-- to be skipped because nothing failed is no failure of its flow. It counts the upstreams that were skipped so. An
-- edge into a member is "mark,attempt,input". Marks: . open, ~ open and spared, s f c e k how the upstream ended, n
-- skipped as not needed, l succeeded after the decision.
local group = {}

-- watches tells whether a member runs whatever its upstreams came to. It needs none of them.
function group.watches(g) return g.policy == 'ended' or g.policy == 'failed' end

-- aside tells whether the upstreams of a member count for their flow as if the member was not there.
function group.aside(g) return g.unneeded ~= nil or g.policy == 'ended' end

-- needless tells whether an impossible group is so only because nothing failed.
function group.needless(g) return g.unneeded ~= nil and g.failed + g.skipped == g.unneeded end

function group.parse(text)
  local policy_, k, after, n, s, f, x, state,
    unneeded = string.match(text or '', '^(%l+) (%d+) (%l+) (%d+) (%d+) (%d+) (%d+) (%l) ?(%d*)$')
  if not policy_ then return nil end
  return { policy = policy_, quorum = tonumber(k), after = after, upstreams = tonumber(n), succeeded = tonumber(s),
    failed = tonumber(f), skipped = tonumber(x), state = state, unneeded = tonumber(unneeded) }
end

function group.text(g)
  return g.policy .. ' ' .. g.quorum .. ' ' .. g.after .. ' ' .. g.upstreams .. ' ' .. -- small numbers
      g.succeeded .. ' ' .. g.failed .. ' ' .. g.skipped .. ' ' .. g.state .. (g.unneeded and ' ' .. g.unneeded or '')
end

-- count moves a counter: s and l are successes, k and n are skipped, f c e are failures; open marks are in none.
function group.count(g, mark, change)
  if mark == 's' or mark == 'l' then
    g.succeeded = g.succeeded + change
  elseif mark == 'k' or mark == 'n' then
    g.skipped = g.skipped + change
    if mark == 'n' and g.unneeded then g.unneeded = g.unneeded + change end
  elseif mark == 'f' or mark == 'c' or mark == 'e' then
    g.failed = g.failed + change
  end
end

-- open tells whether some upstreams have not ended, as far as the member knows.
function group.open(g) return g.succeeded + g.failed + g.skipped < g.upstreams end

-- decide evaluates a pending group and tells whether it was decided just now.
function group.decide(g)
  if g.state ~= 'p' then return false end
  if group.watches(g) then
    local lost = g.failed + g.skipped
    if g.succeeded + lost == g.upstreams then g.state = (g.policy == 'ended' or lost > g.unneeded) and 's' or 'i' end
    return g.state ~= 'p'
  end
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
  local mark, attempt, input = string.match(text or '', '^([.~sfceknlx]),(%d*),(.*)$')
  return mark, attempt, input
end
