-- ff_create_execution: admits up to 100 executions. Each item is judged alone: a refused one does not touch its
-- neighbours. An answer is +<state> (created), =<state> (the id existed, the payload digest agrees), =<state> <id>
-- (another execution has its key), ~<state> <id> (it replaced what that execution was submitted with, whose key
-- debounces) or -<code> <detail> (refused). What items have in common is said once, before them and how many they
-- are. The id of an item with a key is "<id> <key> <span>" (lua/lib/keyed.lua).
-- Flags:   none
-- Go:      Engine.CreateExecutions
-- Args:    protocol {* start executions:rows(1..100) {id:text digest:bytes(64) payload:bytes(1048576)}}
-- Replies: OK answers:rows {answer:text}
-- Errors:  @root invalid_input
local function ff_create_execution(ctx, argv)
  local done = create.plainly(ctx, argv)
  if done then return done end
  local items, bad = create.parse(argv, 2)
  if not items then return bad end
  local out, new, seen = { 1, 'OK', reply.int(#items) }, {}, {}
  keyed.look(ctx, items)
  create.look(ctx, items)
  for n = 1, #items do
    local item = items[n]
    local answer = create.refuse(ctx, item) or create.known(ctx, item, seen[item.id]) or
        item.most and debounce.known(ctx, item, seen[item.key]) or
        item.key and not item.most and keyed.known(ctx, item, seen[item.key]) or create.admit(ctx, item)
    if not answer and item.over then
      answer = debounce.follow(ctx, item, seen[item.key])
      if not seen[item.key] then seen[item.key], new[#new + 1] = item, item end
    elseif not answer then
      answer = '+' .. item.group.template.state
      seen[item.id], new[#new + 1] = item, item
      if item.key then seen[item.key] = item end
    end
    out[3 + n] = answer
  end

  for n = 1, #new do
    if new[n].was then debounce.write(ctx, new[n]) else create.write(ctx, new[n]) end
  end
  indexes.apply(ctx)
  create.close(ctx)
  return out
end
