-- ff_continue_execution: the holder ends its attempt and starts the execution anew with another input: a link. Its
-- id, key, messages, tags and deadline stay; its steps, waits and retries are those of a new execution. The answer
-- says how often it has continued. A repetition of the call is answered as the first one, until the execution is
-- released otherwise.
-- Flags:   allow-oom
-- Go:      Engine.ContinueExecution
-- Args:    protocol fence !payload_too_large input:bytes(1048576)
-- Replies: OK links:n; ALREADY_SATISFIED links:n
-- Errors:  @root @fence invalid_input payload_too_large
local function ff_continue_execution(ctx, q)
  local f = q.fence
  local c = core.read(ctx, f.id)
  local answer = fence.check(ctx, c, f)
  if answer then
    local before = fence.released(c, f, 'c')
    if before then return reply.already(before) end
    return answer
  end
  local count = chain.go(ctx, c, f, q.input)
  flow.apply(ctx)
  return reply.ok(count)
end
