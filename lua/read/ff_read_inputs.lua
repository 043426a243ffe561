-- ff_read_inputs: what the upstreams of a member of a flow left it, under the names it gave them: who, and which
-- attempt's result. For members that have too much of it to come with the claim. An upstream that was purged leaves
-- nothing. With all 1 it lists all upstreams, whatever they came to: also mark (group.lua), node, and the category of
-- what ended without success; a name may be empty.
-- Flags:   no-writes
-- Go:      Engine.inputs
-- Args:    protocol id:id all:flag
-- Replies: OK inputs:rows {name:text upstream:uuid attempt:n? mark:text node:text category:text}
-- Errors:  @root invalid_input execution_not_found
local function ff_read_inputs(ctx, argv)
  local id, all = args.id(argv[2]), argv[3] == '1'
  if not id then return reply.err('invalid_input', 'execution id') end
  if not all and argv[3] ~= '0' then return reply.err('invalid_input', 'all: 0 or 1') end
  if not core.read(ctx, id).state then return reply.err('execution_not_found') end
  local v, out = links.edges(ctx, id), { 1, 'OK', '' }
  local ups = {}
  for i = 1, #v, 2 do ups[#ups + 1] = v[i] end
  if #ups > 0 then record.load(ctx, ups) end
  for i = 1, #v, 2 do
    local mark, attempt, name = group.record(v[i + 1])
    if all or mark == 's' and name ~= '' and record.text(ctx, v[i]) then
      local c, n = all and core.read(ctx, v[i]) or {}, #out
      out[n + 1], out[n + 2], out[n + 3], out[n + 4], out[n + 5] = name, v[i], attempt, mark, c.node or ''
      out[n + 6] = mark ~= 's' and c.failure_category or ''
    end
  end
  out[3] = reply.int((#out - 3) / 6)
  return out
end
