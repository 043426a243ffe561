-- ff_configure: reads the deployment's partition counts, and fixes them if nobody has and the caller may.
-- The one function whose key is not a partition root: KEYS = { ff:config:partitions }.
-- Flags:   allow-oom
-- Go:      Engine.configured
-- Args:    protocol executions:n gates:n create:flag
-- Replies: OK executions:n gates:n created:flag
-- Errors:  invalid_input config_missing
local function ff_configure(k, argv)
  local names = { 'num_flow_partitions', 'num_gate_partitions' }
  local h = redis.call('HMGET', k[1], unpack(names))
  local created = '0'
  for i = 1, 2 do
    if h[i] and not args.int(h[i], 1, 65535) then
      return reply.err('invalid_input', names[i] .. ' is stored as ' .. h[i])
    end
    if not args.int(argv[i + 1], 1, 65535) then return reply.err('invalid_input', names[i] .. ': 1..65535') end
  end
  if not h[1] or not h[2] then
    if argv[4] ~= '1' then return reply.err('config_missing', k[1]) end
    created = '1'
    for i = 1, 2 do h[i] = h[i] or argv[i + 1] end
    redis.call('HSET', k[1], names[1], h[1], names[2], h[2])
  end
  return reply.ok(h[1], h[2], created)
end
