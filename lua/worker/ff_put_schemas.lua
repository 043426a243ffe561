-- ff_put_schemas: what workers say of the inputs and results of kinds in a namespace ('*' is for all that have no own):
-- JSON Schemas, as one text a kind, that the server never looks into. '' forgets what was said of a kind. What was
-- said last counts. version grows with every change, also over a restart without data, so readers ask for it alone.
-- A namespace has at most 256 kinds of which something is said.
-- Flags:   none
-- Go:      Engine.PutSchemas
-- Args:    protocol namespace:name(64) kinds:rows(1..256) {kind:name(64) schema:bytes(140000)}
-- Replies: OK version:n; ALREADY_SATISFIED version:n
-- Errors:  @root invalid_input too_many_schemas
local function ff_put_schemas(ctx, q)
  local key, kinds, fields = keys.schemas(ctx.r, q.namespace), q.kinds, { '' }
  for i = 1, #kinds do fields[i + 1] = kinds[i].kind end
  local was = redis.call('HMGET', key, unpack(fields))
  local version, count = tonumber(was[1] or '0'), math.max(redis.call('HLEN', key) - 1, 0)
  local put, gone, changed, now = {}, {}, false, {}
  for i = 1, #kinds do
    local kind, text = kinds[i].kind, kinds[i].schema
    local old = now[kind] or was[i + 1] or ''
    if old ~= text then
      changed, now[kind] = true, text
      if old == '' then count = count + 1 elseif text == '' then count = count - 1 end
    end
  end
  if not changed then return reply.already(reply.int(version)) end
  if count > 256 then return reply.err('too_many_schemas', q.namespace) end
  for kind, text in pairs(now) do
    if text == '' then gone[#gone + 1] = kind else put[#put + 1], put[#put + 2] = kind, text end
  end
  version = math.max(version + 1, ctx.now)
  put[#put + 1], put[#put + 2] = '', reply.int(version)
  if #gone > 0 then redis.call('HDEL', key, unpack(gone)) end
  redis.call('HSET', key, unpack(put))
  return reply.ok(reply.int(version))
end
