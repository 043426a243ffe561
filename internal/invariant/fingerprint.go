package invariant

import (
	"context"
	"fmt"

	"github.com/redis/rueidis"

	"github.com/flowfabric/flowfabric-go/internal/keys"
)

// hashing is a script that hashes all a partition holds on the server.
const hashing = `
local out, all = {}, {}
for _, key in ipairs(redis.call('KEYS', KEYS[1] .. '*')) do
  if string.sub(key, #KEYS[1] + 1, #KEYS[1] + #ARGV[1]) ~= ARGV[1] then all[#all + 1] = key end
end
table.sort(all)
local function add(list)
  for i = 1, #list do
    if type(list[i]) == 'table' then add(list[i]) else out[#out + 1] = tostring(list[i]) end
  end
  out[#out + 1] = '.'
end
for _, key in ipairs(all) do
  local kind = redis.call('TYPE', key).ok
  out[#out + 1] = key .. ' ' .. kind .. (redis.call('PTTL', key) >= 0 and ' expires' or '')
  if kind == 'hash' then
    local list, pairs = redis.call('HGETALL', key), {}
    for i = 1, #list, 2 do pairs[#pairs + 1] = list[i] .. '=' .. list[i + 1] end
    table.sort(pairs)
    add(pairs)
  elseif kind == 'set' then
    local list = redis.call('SMEMBERS', key)
    table.sort(list)
    add(list)
  elseif kind == 'zset' then
    add(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'))
  elseif kind == 'list' then
    add(redis.call('LRANGE', key, 0, -1))
  elseif kind == 'stream' then
    add(redis.call('XRANGE', key, '-', '+'))
  else
    add({ redis.call('GET', key) })
  end
end
return redis.sha1hex(table.concat(out, '\n'))`

// traces begins the keys that count refused tokens: a refusal changes nothing else.
const traces = ":refus"

// Fingerprint is a hash of all that a partition holds, made on the server: the fast way to see that nothing changed.
// It is meant for partitions of at most some thousand keys, and on the embedded server, whose Lua is slow, the Text
// of a Dump is the faster way.
func Fingerprint(ctx context.Context, client rueidis.Client, partition uint16) (string, error) {
	root := keys.Root(partition)
	h, err := client.Do(ctx, client.B().Eval().Script(hashing).Numkeys(1).Key(root).Arg(traces).Build()).ToString()
	if err != nil {
		return "", fmt.Errorf("fingerprint of partition %d: %w", partition, err)
	}
	return h, nil
}
