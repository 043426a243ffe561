-- ff_list_budgets: the names of the budgets of a partition, in order, a page at a time.
-- Flags:   no-writes
-- Go:      Engine.BudgetNames
-- Args:    protocol after:bytes(64) limit:n(1..1000)
-- Replies: OK more:flag names:rows {name:label}
-- Errors:  @root invalid_input
local function ff_list_budgets(ctx, argv)
  local limit = args.int(argv[3], 1, 1000)
  if not limit or not argv[2] or #argv[2] > 64 then
    return reply.err('invalid_input', 'limit: 1..1000, after: a name')
  end
  local from = argv[2] == '' and '-' or '(' .. argv[2]
  local names = redis.call('ZRANGEBYLEX', keys.budgets(ctx.r), from, '+', 'LIMIT', '0', reply.int(limit + 1))
  local count = math.min(limit, #names)
  return reply.ok(#names > limit and '1' or '0', reply.int(count), unpack(names, 1, count))
end
