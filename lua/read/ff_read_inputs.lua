-- ff_read_inputs: what the upstreams of a member of a flow left it, under the names it gave them: who, and which attempt's
-- result. For members that have too much of it to come with the claim. An upstream that was purged leaves nothing.
-- Flags:   no-writes
-- Go:      Engine.inputs
-- Args:    protocol id
-- Replies: OK count {name upstream attempt}
-- Errors:  invalid_input execution_not_found partition_missing partition_frozen protocol_mismatch
local function ff_read_inputs(ctx, argv)
  local id = args.id(argv[2])
  if not id then return reply.err('invalid_input', 'execution id') end
  if not core.read(ctx, id).state then return reply.err('execution_not_found') end
  local v, out = links.edges(ctx, id), { 1, 'OK', '' }
  local ups = {}
  for i = 1, #v, 2 do ups[#ups + 1] = v[i] end
  if #ups > 0 then record.load(ctx, ups) end
  for i = 1, #v, 2 do
    local mark, attempt, name = group.record(v[i + 1])
    if mark == 's' and name ~= '' and record.text(ctx, v[i]) then
      out[#out + 1] = name
      out[#out + 1] = v[i]
      out[#out + 1] = attempt
    end
  end
  out[3] = reply.int((#out - 3) / 3)
  return out
end
