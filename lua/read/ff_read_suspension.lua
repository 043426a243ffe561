-- ff_read_suspension: the current suspension of an execution, or its last one, what that told the handler if it was
-- resumed, and every waitpoint that is still known.
-- Flags:   no-writes
-- Go:      Engine.ReadSuspension
-- Args:    protocol id
-- Replies: OK code outcome record {field value} waitpoints {waitpoint record}
-- Errors:  invalid_input execution_not_found result_purged partition_missing partition_frozen protocol_mismatch
local function ff_read_suspension(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'execution id') end
  local c = core.read(ctx, id)
  if not c.s then return purge.missing(ctx, id) end
  local u = suspension.read(ctx, id)
  local out = { 1, 'OK', c.s, c.sg and suspension.outcome(ctx, id, u) or '' }
  local function add(list)
    out[#out + 1] = reply.int(#list / 2)
    for i = 1, #list do out[#out + 1] = list[i] end
  end
  local fields = {}
  for field, value in pairs(u) do
    fields[#fields + 1], fields[#fields + 2] = field, value
  end
  add(fields)
  add(redis.call('HGETALL', keys.waitpoints(ctx.r, id)))
  return out
end
