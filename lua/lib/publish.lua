-- publish: sharded or plain publish, whichever the loader chose for this server.
local publish = { send = '@PUBLISH@', count = '@NUMSUB@' }

-- to sends a message and returns how many subscribers got it.
function publish.to(channel, message) return redis.call(publish.send, channel, message) end

-- listeners is how many subscribers a channel has, so that a message nobody hears need not be built.
function publish.listeners(channel) return tonumber(redis.call('PUBSUB', publish.count, channel)[2]) end
