-- ff_count_executions: how many of the executions that the catalogue has for a list are in which state, the newest
-- first, up to 1,000 a call. index and key are those of ff_list_executions, created or tagged, and the place behind the
-- last one that was counted is where the next call goes on. since is the creation of the last one to be counted. Of
-- what is tagged, only those are counted whose route is asked for, as in a key of created; '' is any.
-- Flags:   no-writes
-- Go:      Engine.CountExecutions
-- Args:    protocol index:created|tagged key:bytes(512) score:score? member:bytes(128) since:n of:bytes(512)
--          limit:n(1..1000)
-- Replies: OK more:flag score:text member:text states:rows {code:text count:n}
-- Errors:  @root invalid_input not_indexed
local function ff_count_executions(ctx, q)
  local cursor = listing.cursor(q.score, q.member)
  if cursor == false then return reply.err('invalid_input', 'score: with a member, or neither') end
  local sets, refused = catalogue.sets(ctx, q.index, q.key)
  if not sets then return refused end
  local page, more = listing.merged(sets, cursor, true, q.limit)
  local counts, codes, last, wanted = {}, {}, nil, nil
  if q.of ~= '' then
    local list, wrong = catalogue.matching(ctx, q.of)
    if not list then return wrong and reply.err('invalid_input', wrong) or reply.err('not_indexed', 'of') end
    wanted = {}
    for i = 1, #list do wanted[list[i]] = true end
  end
  local names = {}
  for i = 1, #page do names[i] = keys.core(ctx.r, page[i].member) end
  for first = 1, #page, 100 do
    local texts = redis.call('MGET', unpack(names, first, math.min(first + 99, #page)))
    for i = 1, #texts do
      local x = page[first + i - 1]
      if tonumber(x.score) < q.since then
        more = false
        break
      end
      last = x
      local code, id = record.glance(texts[i] or '')
      if code and (not wanted or wanted[id]) then
        if not counts[code] then codes[#codes + 1] = code end
        counts[code] = (counts[code] or 0) + 1
      end
    end
    if last ~= page[math.min(first + 99, #page)] then break end
  end
  local out = {}
  for i = 1, #codes do out[2 * i - 1], out[2 * i] = codes[i], reply.int(counts[codes[i]]) end
  return reply.add(reply.ok(more and '1' or '0', last and last.score or '', last and last.member or ''), out, 2)
end
