-- ff_create_execution: admits up to 100 executions. Each item is judged alone: a refused one does not touch its
-- neighbours. An answer is +<state> (created), =<state> (the id existed, the payload digest agrees) or
-- -<code> <detail> (refused). Items without tags that differ in nothing but id, digest and payload follow one item without these, which
-- says the rest: ten arguments less for each.
-- Flags:   none
-- Go:      Engine.CreateExecutions
-- Args:    protocol (count {id namespace lane kind capabilities priority delay deadline policy timeout creator digest payload tags {key value}} or =count id namespace lane kind capabilities priority delay deadline policy timeout creator digest payload 0 {* id digest payload})
-- Replies: OK count {answer}
-- Errors:  invalid_input partition_missing partition_frozen protocol_mismatch
local function ff_create_execution(k, argv)
  local ctx, refused = root.enter(k, argv)
  if not ctx then return refused end
  local alike = string.byte(argv[2] or '', 1) == 61
  local count = args.int(alike and string.sub(argv[2], 2) or argv[2], 1, 100)
  if not count then return reply.err('invalid_input', 'count: 1..100') end
  if alike and (#argv ~= 16 + 3 * count or argv[16] ~= '0') then
    return reply.err('invalid_input', 'arguments: an item without tags, then three for each')
  end

  local out, at, wanted, seen, i, all = { 1, 'OK', reply.int(count) }, {}, {}, {}, alike and 17 or 3, 0
  local t = alike and create.template(ctx, argv, 3)
  local digest = alike and 1 or 11 -- so far behind the id
  if alike then
    local ids = {}
    for n = 1, count do ids[n] = argv[14 + 3 * n] end
    create.look(ctx, ids)
  end
  for n = 1, count do
    local after = i
    if alike then
      after = i + 3
    else
      if not argv[i + 13] then return reply.err('invalid_input', 'arguments: item ' .. reply.int(n) .. ' is cut short') end
      local tags = argv[i + 13] == '0' and 0 or args.int(argv[i + 13], 0, 64)
      if not tags then return reply.err('invalid_input', 'tags: at most 64') end
      after, all = i + 14 + 2 * tags, all + tags
      if all > 2000 then return reply.err('invalid_input', 'tags: at most 2000 a call') end
      if tags > 0 and not argv[after - 1] then return reply.err('invalid_input', 'arguments: tags are cut short') end
      t = create.template(ctx, argv, i)
    end
    local twin = seen[argv[i]]
    local answer = t.refusal or create.refuse(argv, i, after, i + digest) or
        create.known(ctx, argv, i, i + digest, twin and at[twin] + digest, twin and wanted[twin].state)
    local closed = not answer and lane.refusal(ctx, argv[alike and 4 or i + 1], argv[alike and 5 or i + 2])
    if closed then answer = '-' .. closed end
    if not answer and not create.room(ctx, t) then answer = '-too_many_routes 1024' end
    if not answer then
      answer = '+' .. t.state
      seen[argv[i]] = n
      wanted[n] = t
    end
    out[3 + n], at[n] = answer, i
    i = after
  end
  if argv[i] then return reply.err('invalid_input', 'arguments: more than count items') end

  for n = 1, count do
    if wanted[n] then create.write(ctx, argv, at[n], wanted[n], nil, alike and at[n] + 1) end
  end
  home.apply(ctx)
  create.close(ctx)
  return out
end
