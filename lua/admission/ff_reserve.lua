-- ff_reserve: amounts of a gate are set aside for a call before it is made, and settled after it (lib/ledger.lua). A
-- reservation is known by the execution, the epoch of its lease, and its number under it. reserve sets amounts aside,
-- all dimensions or none; one without dimensions is only noted, so that the word of this gate can decide. What is
-- refused is answered with a breach, and counted as refused; with block, the ledger of the execution keeps what it
-- waits for, and it waits in line: by priority, then by since, when it was created, as queues are; with since 0 it does
-- not wait. Whoever does not fit beside the first one in line that this period can serve waits behind it; one that
-- holds a reservation does not. last is the gate whose word decides if the reservation is in several, '' = this one.
-- below says that nobody asks any more about those before that number. A lease that is not the newest, and a
-- reservation that was given up, are refused. settle says what was used: what is beyond the reservation counts, too.
-- With full it is charged in full, because the gate whose word decides says so. One that finds no reservation is
-- charged; what was charged in full is corrected. One of an epoch that for ten minutes was neither of the newest two
-- was perhaps settled before: it is answered as late, and nothing is charged or given back. release gives all of it
-- back, and no reservation of that number can be made any more.
-- resolve decides what becomes of one whose lease is over, and answers in settled: s settled, c charged in full, or v
-- void, it was never made, and the amounts; c without amounts of an epoch of which that is not known any more.
-- Epoch 0 is a share: what a parent reserves for a child that it makes, which then uses that and no more of these
-- dimensions, whether there is room or not; what it gives back is in its share again. Only what is left of a share is
-- released. of is that parent: if it has a share of its own, the child's is a part of that, and goes back there.
-- label names calls that are alike: a settlement is remembered under it, and the estimate that is answered is what nine
-- of ten of the last 64 did not pass, by dimension, as soon as there are eight.
-- One that counts no amounts answers applied 0 and no breach, but ends what was reserved when it did. Breaches and
-- those who are woken are as in ff_spend.
-- Flags:   none
-- Go:      Engine.reservation
-- Args:    protocol name:label how:reserve|settle|release|resolve execution:ref epoch:n number:n(1..) last:text
--          of:ref? below:n priority:int since:n full:flag label:line(0..64)
--          dimensions:rows(0..64) {dimension:dimension !invalid_delta amount:n}
-- Replies: OK verdict:OK|SOFT_BREACH|HARD_BREACH applied:flag late:flag action:text left:ms period:n parent:text
--          breaches:rows {breach:text} waiters:rows {waiter:text} settled:text estimate:text;
--          ALREADY_SATISFIED the same
-- Errors:  @root invalid_input invalid_delta unknown_dimension gate_not_found idempotency_conflict stale_lease
local ff_reserve_do = {}

-- judge returns what is wrong with the arguments, or nil. It notes what they come to.
function ff_reserve_do.judge(q)
  q.id, q.sequence = q.execution, q.number
  if #q.dimensions > 0 and (q.how == 'release' or q.how == 'resolve' or q.full) then
    return reply.err('invalid_input', 'dimensions: none to give back')
  end
  if q.epoch == 0 and (q.number > 1 or q.how ~= 'reserve' and q.how ~= 'release') then
    return reply.err('invalid_input', 'epoch: 0 is a share, of number 1, which is reserved and released')
  end
  if q.of ~= '' and (q.epoch > 0 or q.how ~= 'reserve' or q.of == q.id) then
    return reply.err('invalid_input', 'of: of a share that is reserved, another execution')
  end
  if q.last ~= '' and not args.label(q.last) then return reply.err('invalid_input', 'last: a gate') end
  if q.priority < -1000000 or q.priority > 1000000 then
    return reply.err('invalid_input', 'priority: -1000000..1000000')
  end
  local deltas, wrong = meter.deltas(q.dimensions)
  if not deltas then return reply.err('invalid_delta', wrong) end
  q.deltas, q.amounts = deltas, ledger.text(deltas.by)
  return nil
end

function ff_reserve_do.reserve(ctx, b, q)
  local bad = meter.unknown(b, q)
  local crowded = not bad and meter.crowded(b, q.deltas)
  return bad or crowded and meter.full(crowded) or ledger.reserve(ctx, b, q)
end

-- ended answers the end of a reservation, and wakes those for whom there is room.
function ff_reserve_do.ended(ctx, b, q, letter)
  local done, breaches, verdict, late = ledger.close(ctx, b, q, letter, q.deltas.by)
  local out = ledger.room(ctx, b, ledger.answer(ctx, b, q, verdict, true, late, breaches))
  out[#out + 1] = ''
  return done and { 1, 'OK', unpack(out) } or reply.already(unpack(out))
end

function ff_reserve_do.settle(ctx, b, q)
  for i = 1, b.d.st == '1' and #q.deltas.order or 0 do -- it never counts those without limits
    local dim = q.deltas.order[i]
    if not b.d['h:' .. dim] then q.deltas.by[dim] = nil end
  end
  local order = {}
  for dim in pairs(q.deltas.by) do order[#order + 1] = dim end
  q.deltas.order = order
  local crowded = meter.crowded(b, q.deltas)
  if crowded then return meter.full(crowded) end
  local out = ff_reserve_do.ended(ctx, b, q, q.full and 'c' or 's')
  if out[2] == 'OK' and not q.full then ledger.sample(ctx, b, q.label, q.deltas.by) end
  return out
end

function ff_reserve_do.release(ctx, b, q) return ff_reserve_do.ended(ctx, b, q, 'v') end

function ff_reserve_do.resolve(ctx, b, q)
  local name = reply.int(q.epoch) .. '.' .. reply.int(q.number)
  local out = ff_reserve_do.ended(ctx, b, q, meter.ledger(ctx, b, q.id)['o:' .. name] and 'c' or 'v')
  local how = redis.call('HGET', keys.ledger(ctx.r, b.name, q.id), 'f:' .. name)
  out[#out] = how and string.gsub(how, '^(%l)%d+ ', '%1') or 'c'
  return out
end

local function ff_reserve(ctx, q)
  local bad = ff_reserve_do.judge(q)
  if bad then return bad end
  local b = meter.read(ctx, q.name)
  if not b then return reply.err('gate_not_found', q.name) end
  if not b.counts and (q.how == 'reserve' or not ledger.known(ctx, b, q)) then
    return reply.ok('OK', '0', '0', '', '0', b.d.rc, b.d.pa, '0', '0', '', '')
  end
  local out = ff_reserve_do[q.how](ctx, b, q)
  if out[1] == 1 then out[#out + 1] = ledger.estimate(ctx, b, q.label) end
  return out
end
