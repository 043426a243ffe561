-- core: what the fields of an execution (lib/record.lua) mean: which class its state belongs to, which attempt it is
-- in, and who is told when its state changes.
local core = {}

-- read returns the fields of an execution as this call has left them; absent ones are nil.
function core.read(ctx, id) return record.read(ctx, id) end

-- attempt is the index of the current or last attempt, as text; '' before the first.
function core.attempt(c) return c.attempt or '' end

-- started is how many attempts there were.
function core.started(c) return record.started(c) end

-- takes is how often it was replayed or rewound.
function core.takes(c) return tonumber(c.replays or '0') + tonumber(c.rewinds or '0') end

-- began is when the current or last attempt was claimed for the first time.
function core.began(c) return c.attempt_began or c.attempt == '1' and c.first_claimed_at or c.claimed_at end

function core.waiting(c) return string.sub(c.state, 1, 2) == 'R1' end
function core.delayed(c) return string.sub(c.state, 1, 2) == 'R2' end
function core.granted(c) return string.sub(c.state, 1, 2) == 'G1' end
function core.paused(c) return string.sub(c.state, 1, 2) == 'R4' end
function core.suspended(c) return string.sub(c.state, 1, 1) == 'S' end
function core.blocked(c) return string.sub(c.state, 1, 2) == 'R3' end
function core.terminal(c) return string.sub(c.state, 1, 1) == 'T' end
function core.unsuccessful(c) return core.terminal(c) and c.state ~= 'T1' end

-- promoted is what a delayed execution becomes when its time has come; the state of the attempt decides which kind of
-- claim follows.
core.promoted = { R2af = 'R1f', R2ai = 'R1i', R2b = 'R1t', R2r = 'R1r', R2c = 'R1i' }

-- announce tells waiting producers and tailers: "<code> <attempt>".
function core.announce(ctx, c, id, code)
  if c.flow then graph.moved(ctx, c, id, code, core.attempt(c)) end
  publish.to(keys.events(ctx.r, id), code .. ' ' .. core.attempt(c))
  feed.state(ctx, id, code, core.attempt(c), c.route, c.epoch, c.session)
end
