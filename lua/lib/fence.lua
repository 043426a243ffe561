-- fence: the one place that decides whether a caller is the holder. Order: exists, active, not
-- revoked, session alive, then session, claim, epoch and attempt equal.
local fence = {}

-- refuse tells why a fence is none, or nil.
function fence.refuse(f)
  if not args.id(f.id) then return reply.err('invalid_input', 'execution id') end
  if not f.attempt then return reply.err('partial_fence') end
  if f.session == '' or f.claim == '' or f.epoch == '' or f.attempt == '' then
    local nothing = f.session == f.claim and f.claim == f.epoch and f.epoch == f.attempt
    return reply.err(nothing and 'fence_required' or 'partial_fence')
  end
  return nil
end

-- parse reads the five arguments of a fence from position i, or returns nil and an error reply.
function fence.parse(argv, i)
  local f = { id = argv[i], session = argv[i + 1], claim = argv[i + 2], epoch = argv[i + 3], attempt = argv[i + 4] }
  local bad = fence.refuse(f)
  if bad then return nil, bad end
  return f
end

-- optional reads the same, of which all but the id may be missing: session tells.
function fence.optional(argv, i)
  local f, bad = fence.parse(argv, i)
  if not f and bad[2] == 'fence_required' then return { id = argv[i], session = '' } end
  return f, bad
end

-- check returns nil for the holder, else the error reply.
function fence.check(ctx, c, f)
  if not c.state then return reply.err('execution_not_found') end
  if c.state == 'A3' and c.session == f.session then return reply.err('lease_revoked') end
  if c.state ~= 'A1' then return fence.not_active(c) end
  if c.session == f.session and not session.read(ctx, f.session).alive then return reply.err('lease_expired') end
  if c.session ~= f.session or c.claim_number ~= f.claim or c.epoch ~= f.epoch or core.attempt(c) ~= f.attempt then
    return reply.err('stale_lease')
  end
  return nil
end

-- holds tells whether a fence is the holder's, without reading more of the record than that takes. Who is told no
-- learns from check why.
function fence.holds(ctx, f)
  local text = record.text(ctx, f.id)
  if not text then return false end
  local holder, claim, epoch, attempt = record.holder(text)
  return attempt == f.attempt and epoch == f.epoch and claim == f.claim and holder == f.session and
    session.alive(ctx, holder)
end

-- not_active carries what a caller needs to reconcile: code, epoch, attempt, last release.
function fence.not_active(c)
  return reply.err('execution_not_active', c.state, c.epoch or '0', core.attempt(c), c.last_release or '')
end

-- released recognises the repetition of a release that already happened under the same fence, and
-- returns the slot that the first call answered. ops names the acceptable operations.
function fence.released(c, f, op)
  if not c.last_release then return nil end
  local o, epoch, attempt, slot = string.match(c.last_release, '^(%a+),(%d+),(%d+),(.*)$')
  if o ~= op or epoch ~= f.epoch or attempt ~= f.attempt then return nil end
  if c.epoch == f.epoch and (c.session ~= f.session or c.claim_number ~= f.claim) then return nil end
  return slot
end

-- waits is the service for whose turn one was put aside last, '' if for none.
function fence.waits(c) return string.match(c.last_release or '', '^d,%d*,%d*,%d+ ([^ ]+)$') or '' end

-- release is the text kept for that.
function fence.release(op, epoch, attempt, slot) return op .. ',' .. epoch .. ',' .. attempt .. ',' .. slot end
