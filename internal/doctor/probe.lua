#!lua name=@NAME@
-- What flowfabric doctor --probe loads for a moment: it runs commands on throw-away keys as a function of FlowFabric
-- does, and removes the keys before it ends.
-- Arguments: the command that removes keys, how many keys it is to remove, these, and then the commands: for each how
-- many words it has, and these. The answer is what each was refused with, or nothing.
redis.register_function('@NAME@', function(_, args)
  local out, i = {}, 3 + tonumber(args[2])
  while args[i] do
    local words = tonumber(args[i])
    local said = redis.pcall(unpack(args, i + 1, i + words))
    out[#out + 1] = said and not tonumber(said) and said.err or ''
    i = i + 1 + words
  end
  redis.call(args[1], unpack(args, 3, 2 + tonumber(args[2])))
  return out
end)
