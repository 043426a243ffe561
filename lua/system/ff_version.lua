-- ff_version: the identity of the loaded library. It takes no keys.
-- Flags:   no-writes
-- Go:      Engine.loadOn
-- Args:    none
-- Replies: OK protocol revision:n hash:text
-- Errors:  none
local function ff_version(k, argv)
  return reply.ok('@PROTOCOL@', '@REVISION@', '@HASH@')
end
