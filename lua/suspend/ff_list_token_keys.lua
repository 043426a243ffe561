-- ff_list_token_keys: which keys verify tokens in this partition now, until when (0: it is the current one), and how
-- many waitpoints are open under each.
-- Flags:   no-writes
-- Go:      Engine.listTokenKeys
-- Args:    protocol
-- Replies: OK current:kid? keys:rows {kid:kid fingerprint:hex(16) expiry:instant open:n needed:instant}
-- Errors:  @root invalid_input
local function ff_list_token_keys(ctx, argv)
  local all, out, count = redis.call('HGETALL', keys.kids(ctx.r)), { 1, 'OK', token.current(ctx) or '', '0' }, 0
  for i = 1, #all, 2 do
    local fingerprint, expiry = string.match(all[i + 1], '^(%x+) (%d+)$')
    if string.sub(all[i], 1, 2) == 'k:' and fingerprint and token.good(ctx, tonumber(expiry)) then
      local kid = string.sub(all[i], 3)
      local zset = keys.open(ctx.r, kid)
      local last = redis.call('ZRANGE', zset, '-1', '-1', 'WITHSCORES')
      local needed = last[2] and reply.int(args.score(last[2])) or '0'
      local row = { kid, fingerprint, expiry, reply.int(redis.call('ZCARD', zset)), needed }
      for p = 1, #row do out[#out + 1] = row[p] end
      count = count + 1
    end
  end
  out[4] = reply.int(count)
  return out
end
