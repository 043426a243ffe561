-- core: the small hash of one execution. Absent means default (10-D53); no value exceeds 64 bytes, so the hash
-- stays in the compact encoding. Fields:
--   s state code          r route id              pr priority            ct created at
--   n attempts started    e epoch                 ty attempt type        la claimed at
--   ss session            cl claim number         st first claimed at    en ended at
--   du delay until        dl deadline             to attempt timeout     ta alarm of the running attempt
--   tr attempt time left  rc retries              lc reclaims            pc replays
--   po policy             ca 1 = has categories   cr creator             pd payload digest
--   in input bytes        tg 1 = has tags         sb step bytes          fa attempt that has frames
--   fc failure category   cb cancelled by         lr last release: op,epoch,attempt,slot
--   rq last replay request rv last revoke request  ds original deadline span  pu purged up to this attempt
--   tt suspension timeout  wp open waitpoints      uw 1 = had waitpoints or suspensions
--   rt seconds to keep it after its end, if its policy says so
--   fl flow  nd node  g group (what it waits for)  wt wait for children
--   gx when its grant ends  gs session  gn claim number, of one that is granted and not yet claimed (G1)
--   ge epoch of the last grant that was not claimed
--   dd delay in ms once it may run  ip 1 = has named inputs
--   x how many fields the first claim left, if it left none of dl, ta, rt and fl, else 0: as long as there are as many, there is
--     no fa and no wp either; whoever takes a field away from an active one takes x away, too
--   sg bytes of the last resumption, which the next claims bring along  rw last resume request
-- ss and cl stay after a release, as the record of who held it last; only s = A1 makes them a lease.
local core = {}

-- read returns all fields; absent ones are nil. One HGETALL of a small hash is cheaper than naming ten fields.
function core.read(ctx, id)
  local v = redis.call('HGETALL', keys.core(ctx.r, id))
  local c = { fields = #v / 2 }
  for i = 1, #v, 2 do c[v[i]] = v[i + 1] end
  return c
end

-- attempt is the index of the current or last attempt, as text; '' before the first. Formatting costs more than
-- remembering.
function core.attempt(c)
  local a = c.attempt
  if not a then
    a = c.n and reply.int(tonumber(c.n) - 1) or ''
    c.attempt = a
  end
  return a
end

function core.waiting(c) return string.sub(c.s, 1, 2) == 'R1' end
function core.delayed(c) return string.sub(c.s, 1, 2) == 'R2' end
function core.granted(c) return string.sub(c.s, 1, 2) == 'G1' end
function core.paused(c) return string.sub(c.s, 1, 2) == 'R4' end
function core.suspended(c) return string.sub(c.s, 1, 1) == 'S' end
function core.blocked(c) return string.sub(c.s, 1, 2) == 'R3' end
function core.terminal(c) return string.sub(c.s, 1, 1) == 'T' end

-- announce tells waiting producers and tailers: "<code> <attempt>".
function core.announce(ctx, c, id, code)
  if c.fl then graph.moved(ctx, c, id, code, core.attempt(c)) end
  publish.to(keys.events(ctx.r, id), code .. ' ' .. core.attempt(c))
  feed.state(ctx, id, code, core.attempt(c), c.r, c.e, c.ss)
end
