-- ff_write_stream: appends a payload to a stream that is written from outside, closes it, or both. What came before is
-- answered as it was: a call by its name, as long as it is among the last eight; a sequence of a producer for ever.
-- A new epoch of a producer begins with sequence 0. seq must be above the last one that was given, byte by byte.
-- Refusals (stream_conflict): epoch (a later one is known: it), gap (the sequence that is expected), media, seq.
-- Flags:   none
-- Go:      Engine.WriteStream
-- Args:    protocol id:uuid call:hex(16) media:line(255) seq:bytes(256) close:flag units:n(0..1048576)
--          payload:bytes(1114112) producer:bytes(256) epoch:n? number:n?
-- Replies: OK end:n closed:flag epoch:n number:n; ALREADY_SATISFIED the same
-- Errors:  @root invalid_input stream_not_found stream_gone stream_closed stream_conflict
local ff_write = {}

-- judge returns what is wrong with the arguments.
function ff_write.judge(q)
  if (q.units == 0) ~= (q.payload == '') then return reply.err('invalid_input', 'units: those of the payload') end
  if q.units == 0 and not q.close then return reply.err('invalid_input', 'payload: there is nothing to do') end
  local named = q.producer ~= ''
  if named ~= (q.epoch and true or false) or named ~= (q.number and true or false) then
    return reply.err('invalid_input', 'producer: with an epoch and a number, or none of them')
  end
  return nil
end

-- answer says where the stream ends, and what is known of the producer.
function ff_write.answer(say, c, epoch, number)
  return say(reply.int(c.e), c.z and '1' or '0', reply.int(epoch or 0), reply.int(number or 0))
end

-- order holds an append against what is known of its producer. It returns a refusal, or the answer to what came before.
function ff_write.order(ctx, q, c, epoch, number)
  if epoch and q.epoch == epoch then
    if q.number <= number then return ff_write.answer(reply.already, c, epoch, number) end
    if q.number == number + 1 then return nil end
    return reply.err('stream_conflict', 'gap', reply.int(number + 1))
  end
  if q.number == 0 then
    if not epoch and redis.call('HLEN', keys.producers(ctx.r, q.id)) >= written.producers then
      return reply.err('invalid_input', 'producer: at most 10000 of a stream')
    end
    return nil
  end
  if epoch then return reply.err('invalid_input', 'number: a new epoch begins with 0') end
  return reply.err('stream_conflict', 'gap', '0')
end

-- closed answers who comes to a stream that is closed.
function ff_write.closed(q, c, mine, epoch, number)
  if mine ~= '' and c.z == mine or mine == '' and q.units == 0 then
    return ff_write.answer(reply.already, c, epoch, number)
  end
  return reply.err('stream_closed', reply.int(c.e))
end

local function ff_write_stream(ctx, q)
  local bad = ff_write.judge(q)
  if bad then return bad end
  local c, refusal = written.find(ctx, q.id)
  if not c then return refusal end
  local epoch, number = nil, nil
  if q.producer ~= '' then
    local known = redis.call('HGET', keys.producers(ctx.r, q.id), q.producer)
    if known then
      epoch, number = string.match(known, '^(%d+) (%d+)$')
      epoch, number = tonumber(epoch), tonumber(number)
    end
  end
  if string.find(c.rc or '', q.call, 1, true) then return ff_write.answer(reply.already, c, epoch, number) end
  if epoch and q.epoch < epoch then return reply.err('stream_conflict', 'epoch', reply.int(epoch)) end
  local mine = q.producer ~= '' and q.producer .. ' ' .. reply.int(q.epoch) .. ' ' .. reply.int(q.number) or ''
  if c.z then return ff_write.closed(q, c, mine, epoch, number) end
  if q.units > 0 and q.media ~= c.md then return reply.err('stream_conflict', 'media') end
  if mine ~= '' then
    local answer = ff_write.order(ctx, q, c, epoch, number)
    if answer then return answer end
  end
  if q.seq ~= '' and c.sq and not listing.after(q.seq, c.sq) then return reply.err('stream_conflict', 'seq') end

  written.append(ctx, q.id, c, q.units, q.payload)
  local recent = q.call .. string.sub(c.rc or '', 1, 16 * (written.calls - 1))
  local key = keys.written(ctx.r, q.id)
  redis.call('HSET', key, 'e', reply.int(c.e), 'rc', recent)
  if q.seq ~= '' then redis.call('HSET', key, 'sq', q.seq) end
  if mine ~= '' then
    redis.call('HSET', keys.producers(ctx.r, q.id), q.producer, reply.int(q.epoch) .. ' ' .. reply.int(q.number))
  end
  if q.close then
    c.z = mine ~= '' and mine or '-'
    redis.call('HSET', key, 'z', c.z)
  end
  written.touch(ctx, c)
  written.tell(ctx, q.id)
  return ff_write.answer(reply.ok, c, q.epoch, q.number)
end
