-- ff_version: the identity of the loaded library.
-- Flags:   no-writes
-- Go:      Engine.loadOn
-- Args:    none, no keys
-- Replies: OK protocol revision hash
-- Errors:  none
local function ff_version(k, argv)
  return reply.ok('@PROTOCOL@', '@REVISION@', '@HASH@')
end
