-- record: the one string that holds an execution, and the only file that knows its layout. Its Go twin is
-- internal/record; a test holds the two together. A record is one line of words and, behind its end, the input and
-- the result:
--   <hot words> <cold words> {<name>=<value>}\n<input><result>
-- The hot words change with every claim and end, and the first five of them are the fence of the holder. Cold words
-- are written once. Fields that most executions lack have a name, of two letters. "-" stands for an absent field.
-- Sizes are stored, so nothing ever searches behind the line end, and payloads may hold any byte. An input or result
-- of more than record.inline bytes has a key of its own. The rest of the library knows fields by long names. The hot
-- words are: state (its code), session, claim_number, epoch, attempt (number of the last), ended_at, result_size
-- (bytes), claimed_at, first_claimed_at, attempt_type, retries, reclaims. The cold words are: route (its id),
-- created_at, priority, policy, digest (of the payload), input_size (bytes). input and result, if they are small, are
-- fields of the table, too. session and claim_number stay after a release, as the record of the last holder; only the
-- state A1 makes them a lease.
local record = {}

-- inline is how many bytes an input or a result may have that is part of the record.
record.inline = 1024

-- layout has the other fields and the names under which they are stored, in the order in which they are.
local layout = {
  'attempt_deadline', 'ta', -- alarm of the running attempt
  'delay_until', 'du',
  'attempt_left', 'tr', -- attempt time left, ms
  'attempt_timeout', 'to', -- ms
  'deadline', 'dl',
  'retention', 'rt', -- seconds to keep it after its end, if its policy says so
  'flow', 'fl',
  'node', 'nd',
  'upstreams', 'g', -- how many it depends on (lib/links.lua)
  'children_wait', 'wt', -- wait for children (lib/wait_children.lua)
  'has_inputs', 'ip', -- 1 = has named inputs
  'start_delay', 'dd', -- delay in ms once it may run
  'frames_attempt', 'fa', -- attempt that has frames
  'step_bytes', 'sb',
  'step_order', 'so', -- number of the last step that was recorded
  'has_tags', 'tg', -- 1
  'has_categories', 'ca', -- 1
  'creator', 'cr',
  'failure_category', 'fc',
  'cancelled_by', 'cb', -- the person or token, if it was named
  'cancel_source', 'cs', -- operator_override, owner (the session names it), flow_cascade or system_timeout_policy
  'last_release', 'lr', -- op,epoch,attempt,slot; an epoch and an attempt that are not stored are the record's own
  'replay_request', 'rq', -- the last one
  'revoke_request', 'rv', -- the last one
  'deadline_span', 'ds', -- the original one
  'purged_until', 'pu', -- the first attempt that is not purged yet
  'replays', 'pc',
  'suspension_deadline', 'tt',
  'open_waitpoints', 'wp',
  'had_waits', 'uw', -- 1 = had waitpoints or suspensions
  'resume_bytes', 'sg', -- of the last resumption, which the next claims bring along
  'resume_request', 'rw', -- the last one
  'last_signal', 'gq', -- number of the last signal it accepted, whatever the waitpoint
  'mailbox', 'mb', -- messages: number of the last, how many wait, their bytes (mailbox)
  'dropped_attempts', 'sd', -- attempts started before a replay dropped the recorded steps
  'resumed_epoch', 'rs', -- epoch that continued an attempt
  'attempt_began', 'ab', -- first claim of an attempt that was continued, but of the first: first_claimed_at
  'grant_deadline', 'gx', -- when the grant ends of one that is granted and not yet claimed (G1)
  'grant_session', 'gs',
  'grant_number', 'gn', -- its claim number
  'grant_epoch', 'ge', -- epoch of the last grant that was not claimed
  -- of one that has continued: how often, the first attempt of this link, the first one that is kept (chain)
  'links', 'lk',
  'replaced', 'rd', -- how often another submit under the key that debounces it has replaced what it was submitted with
  'rewinds', 'rx', -- how often it was rewound before it ended, in this link (rewind)
  'awaited', 'aw', -- 1 = others wait for its end (wait_others)
  'fork_of', 'fo', -- execution that it was made of, by fork, and the step before which; '' for behind the last
  'base', 'bs', -- how many of its first attempts are those of the execution that it was made of (base)
  'forked', 'fr', -- 1 = forks have had frames of it
  'turn', 'tn', -- of a run that talks: number of the last step before its turn, and over once the turn is (talk)
  'stop', 'sp', -- the stop that waits to be heeded: its request, by whom and why (talk)
  'busy', 'bz', -- what becomes of messages while it talks: interrupt or refuse, and the mailbox (talk)
  'key', 'ky', -- its key and how long it has it (keyed); the last one, so that it can be added to a text
}

-- long has the field of a stored name, stored the name of a field; both are made when first needed.
local long, stored = {}, {}

local function learn()
  for i = 1, #layout, 2 do long[layout[i + 1]], stored[layout[i]] = layout[i], layout[i + 1] end
end

-- numbers are the named fields that are reckoned with.
local numbers = { attempt_deadline = true, delay_until = true, attempt_left = true, attempt_timeout = true,
  deadline = true, upstreams = true, start_delay = true, step_bytes = true, step_order = true, deadline_span = true,
  purged_until = true, replays = true, suspension_deadline = true, open_waitpoints = true, resume_bytes = true,
  last_signal = true, dropped_attempts = true,
  grant_deadline =
  true, grant_number = true, grant_epoch = true, replaced = true, rewinds = true, base = true }

local line = '^(%S+) (%S+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) ' ..
    '(%S+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) ([%d-]+) (%S+) (%S+) ([%d-]+)([^\n]*)\n()'

-- glance returns the state and the route of a record's text, without reading the rest; nil if it is none.
function record.glance(text)
  return string.match(text, '^(%S+) %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ (%S+) ')
end

local marks = { [' '] = '%s', ['\n'] = '%n', ['\t'] = '%t', ['\r'] = '%r', ['\11'] = '%v', ['\12'] = '%f', ['%'] =
  '%%' }
local meanings = { s = ' ', n = '\n', t = '\t', r = '\r', v = '\11', f = '\12', ['%'] = '%', ['-'] = '-', e = '' }

-- escape makes one word of any text.
local function escape(text)
  if text == '' then return '%e' end
  if text == '-' then return '%-' end
  if not string.find(text, '[%s%%]') then return text end
  return (string.gsub(text, '[%s%%]', marks))
end

local function unescape(text)
  if not string.find(text, '%', 1, true) then return text end
  return (string.gsub(text, '%%(.)', meanings))
end

-- decode reads a record into a table. A text that is no record, or has something else where a number belongs, becomes
-- a table without fields but damaged, which says why.
function record.decode(text)
  local c = {}
  local state, session_id, claim, epoch, attempt, ended, result_size, claimed, first, type_, retries, reclaims,
    route_id, created, priority,
    policy_, digest, size, named, body = string.match(text, line)
  if not state then return { damaged = 'it is no record' } end
  c.state = state
  if session_id ~= '-' then c.session = unescape(session_id) end
  if claim ~= '-' then c.claim_number = claim end
  if epoch ~= '-' then c.epoch = epoch end
  if attempt ~= '-' then c.attempt = attempt end
  if ended ~= '-' then c.ended_at = ended end
  if result_size ~= '-' then c.result_size = result_size end
  if claimed ~= '-' then c.claimed_at = claimed end
  if first ~= '-' then c.first_claimed_at = first end
  if type_ ~= '-' then c.attempt_type = type_ end
  if retries ~= '-' then c.retries = retries end
  if reclaims ~= '-' then c.reclaims = reclaims end
  c.route, c.created_at = route_id, created
  if priority ~= '-' then c.priority = priority end
  if policy_ ~= '-' then c.policy = unescape(policy_) end
  if digest ~= '-' then c.digest = unescape(digest) end
  if size ~= '-' then
    c.input_size = size
    size = tonumber(size)
    if size <= record.inline then
      c.input = string.sub(text, body, body + size - 1)
      body = body + size
    end
  end
  if result_size ~= '-' and tonumber(result_size) <= record.inline then c.result = string.sub(text, body) end
  if named ~= '' then
    if not long.fl then learn() end
    for name, value in string.gmatch(named, '(%l+)=(%S+)') do
      local field = long[name] or name
      if numbers[field] and not (tonumber(value) and string.find(value, '^%d+$')) then
        return { damaged = 'field ' .. field .. ' is no number' }
      end
      c[field] = unescape(value)
    end
    local release = c.last_release
    if release and string.find(release, '^%l,,,') then
      c.last_release = string.sub(release, 1, 2) .. epoch .. ',' .. attempt .. string.sub(release, 4)
    end
  end
  return c
end

-- encode is the reverse of decode.
function record.encode(c)
  local out = { c.state, c.session and escape(c.session) or '-', c.claim_number or '-', c.epoch or '-',
    c.attempt or '-', c.ended_at or '-', c.result_size or '-', c.claimed_at or '-', c.first_claimed_at or '-',
    c.attempt_type or '-', c.retries or '-', c.reclaims or '-', c.route, c.created_at, c.priority or '-',
    c.policy and escape(c.policy) or '-',
    c.digest and escape(c.digest) or '-',
    c.input_size or '-' }
  local n = 18
  for i = 1, #layout, 2 do
    local value = c[layout[i]]
    if value then
      n = n + 1
      out[n] = layout[i + 1] .. '=' .. escape(value)
    end
  end
  return table.concat(out, ' ') .. '\n' .. (c.input or '') .. (c.result or '')
end

-- load reads those of many records, of all or the first most, that the call does not have yet with one command. texts
-- has each as it is stored, false where there is none.
function record.load(ctx, ids, most)
  local texts, list, asked = ctx.cache.texts, {}, {}
  for i = 1, math.min(#ids, most or #ids) do
    if texts[ids[i]] == nil then
      asked[#asked + 1] = ids[i]
      list[#asked] = keys.core(ctx.r, ids[i])
      texts[ids[i]] = false
    end
  end
  if #asked == 0 then return end
  local values = redis.call('MGET', unpack(list))
  for i = 1, #asked do texts[asked[i]] = values[i] end
end

-- text returns a record as it is stored, false when there is none or when the key has another type.
function record.text(ctx, id)
  local text = ctx.cache.texts[id]
  if text == nil then
    text = redis.call('MGET', keys.core(ctx.r, id))[1] -- GET would fail for another type
    ctx.cache.texts[id] = text
  end
  return text
end

-- read returns the fields of an execution as this call has left them; none when there is no such execution. A table
-- that was returned does not change when the execution does: it is the state before what the caller does next. A
-- record that cannot be read is as one that is not there, so that it stops nobody: a function that meets its entry in
-- an index removes that, and an audit sets it aside.
function record.read(ctx, id)
  if not ctx.cache.records then ctx.cache.records, ctx.cache.own = {}, {} end
  local c = ctx.cache.records[id]
  if c then
    ctx.cache.own[id] = nil
    return c
  end
  local text = record.text(ctx, id)
  c = text and record.decode(text) or {}
  ctx.cache.records[id] = c
  return c
end

-- change returns the table that the call may change, and plans to write it. A table that was read before keeps the
-- fields as they were.
local function change(ctx, id)
  if ctx.cache.own and ctx.cache.own[id] then return ctx.cache.own[id] end
  local new = {}
  for field, value in pairs(record.read(ctx, id)) do new[field] = value end
  ctx.cache.records[id], ctx.cache.own[id] = new, new
  if not ctx.cache.dirty then ctx.cache.dirty = {} end
  ctx.cache.dirty[id] = true
  if ctx.cache.spliced then ctx.cache.spliced[id] = nil end
  return new
end

-- add plans to write a new execution, of which the call knows all fields.
function record.add(ctx, id, c)
  if not ctx.cache.records then ctx.cache.records, ctx.cache.own = {}, {} end
  ctx.cache.records[id] = c
  if not ctx.cache.dirty then ctx.cache.dirty = {} end
  ctx.cache.dirty[id] = true
end

-- writes is the list of what the call stores when it ends, keys and values in turn.
function record.writes(ctx)
  local w = ctx.cache.written
  if not w then
    w = {}
    ctx.cache.written = w
  end
  return w
end

-- write plans to store a value under a key of its own.
function record.write(ctx, key, value)
  local w = record.writes(ctx)
  w[#w + 1] = key
  w[#w + 1] = value
end

-- splice plans to store a record that a plain path has made of one that the call has not decoded.
function record.splice(ctx, id, text)
  if not ctx.cache.spliced then ctx.cache.spliced = {} end
  ctx.cache.texts[id], ctx.cache.spliced[id] = text, text
end

-- The plain paths. What follows makes and reads the texts of executions that have no named field, or but tags, a key or
-- those of a member of a flow, without a table for each; it must agree with the codec above, byte for byte.

-- spliceable returns a record as it is stored, if a plain path may make another one of it: the call has not decoded it.
function record.spliceable(ctx, id)
  if ctx.cache.records and ctx.cache.records[id] then return nil end
  return record.text(ctx, id)
end

local tagged = ' tg=1'

-- simple tells whether the named fields of a record are none, or a key that is not held up to an instant, or but
-- those that every member has: flow, node, how many it depends on, and whether it has inputs; each with or without
-- tags. It returns these, and whether there are tags.
local function simple(named)
  if named == '' then return true end
  local at = string.find(named, tagged, 1, true)
  if at then
    local plain, flow_id, node, edges = simple(string.sub(named, 1, at - 1) .. string.sub(named, at + #tagged))
    return plain, flow_id, node, edges, true
  end
  local flow_id, node, rest = string.match(named, '^ fl=(%S+) nd=(%S+)(.*)$')
  if not flow_id then return string.find(named, '^ ky=[^:%s]+:[0~%-]$') ~= nil end
  if rest == '' or string.find(rest, '^ g=%d+$') then return true, flow_id, node end
  if string.find(rest, '^ g=%d+ ip=1$') then return true, flow_id, node, string.match(rest, '%d+') end
  return false
end

-- fresh is the record of a new execution in three parts: before the digest, behind the size of the input, and its end.
function record.fresh(c)
  local text = record.encode(c)
  local before, named = string.match(text,
    '^(%S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ %S+ )%S+ %S+([^\n]*\n)')
  return before, named
end

-- stem is what fresh says of an execution whatever its route and time, in three parts: before these, between them and
-- the digest, and the end; grow makes of it what fresh would.
function record.stem(c)
  local copy = { route = '-' }
  for field, value in pairs(c) do copy[field] = copy[field] or value end
  local before, named = record.fresh(copy)
  local words, behind = string.match(before, '^(.* )%- %S+( %S+ %S+ )$')
  return { before = words, behind = behind, named = named }
end

function record.grow(stem, route, created) return stem.before .. route .. ' ' .. created .. stem.behind, stem.named end

-- joining makes of the parts of a plain new execution those of a member of a flow, whose further fields are m; nil if
-- the parts or the fields have more names than a plain member has. Its state is m.state, if that is given.
function record.joining(before, named, m)
  if named ~= '\n' or m.start_delay then return nil end
  if m.state then before = m.state .. string.sub(before, 4) end
  return before, ' fl=' .. escape(m.flow) .. ' nd=' .. escape(m.node) .. (m.upstreams and ' g=' .. m.upstreams or '') ..
      (m.has_inputs and ' ip=1' or '') .. '\n'
end

-- tagging adds to the end of a plain new execution's parts that it has tags.
function record.tagging(named) return string.sub(named, 1, -2) .. tagged .. '\n' end

-- holding adds a key to the end of a new execution's parts.
function record.holding(named, key) return string.sub(named, 1, -2) .. ' ky=' .. key .. '\n' end

-- lead is a new record up to its payload of so many bytes.
function record.lead(before, named, digest, size)
  return before .. (digest == '' and '-' or escape(digest)) .. ' ' .. (size == 0 and '-' or reply.int(size)) .. named
end

function record.compose(before, named, digest, payload)
  local size = #payload
  return record.lead(before, named, digest, size) .. (size <= record.inline and payload or '')
end

local new = 'R1f - - - - - - - - - - - '

local first = '^R[13]f %- %- %- %- %- %- %- %- %- %- %- (%d+) (%d+) ([%d-]+) %S+ %S+ ([%d-]+)([^\n]*)\n()'

-- unclaimed reads a plain record that waits for its first claim in a route: created, priority, input bytes ('-' for
-- none), the place of the body, of a member flow, node and how many upstreams its inputs come from, if it has some,
-- and whether it has tags; nil if it is none.
function record.unclaimed(text, route)
  local own, created, priority, size, named, body = string.match(text, first)
  if own ~= route or string.byte(text, 2) ~= 49 then return nil end -- 1
  local plain, flow_id, node, edges, tags = simple(named)
  if not plain then return nil end
  return created, priority, size, body, flow_id, node and unescape(node), edges, tags
end

-- queued is what a record begins with that waits for its first claim in a route.
function record.queued(route) return new .. route .. ' ' end

-- next reads one that begins so, if it has no named field but that it has tags: created, priority, input bytes, the
-- place of the body, and what it says of tags, '' for none; nil if it is another.
function record.next(text, queued)
  if string.find(text, queued, 1, true) ~= 1 then return nil end
  local created, priority, size, named, body =
    string.match(text, '^(%d+) ([%d-]+) %S+ %S+ ([%d-]+)([^\n]*)\n()', #queued + 1)
  if created and (named == '' or named == tagged) then return created, priority, size, body, named end
  return nil
end

-- blocked reads a plain record of a member that waits for others and never ran, as core.read would, if that is all
-- that is to be known of it; nil if it is none.
function record.blocked(text)
  local route, created, priority, _, named = string.match(text, first)
  if not route or string.byte(text, 2) ~= 51 then return nil end -- 3
  local plain, flow_id = simple(named)
  if not plain or not flow_id then return nil end
  return { state = 'R3f', route = route, created_at = created, priority = priority ~= '-' and priority or nil,
    flow = flow_id, plain = true }
end

-- freed is that record once it may run.
function record.freed(text) return 'R1' .. string.sub(text, 3) end

-- claimed is that record under a first lease; lease is what leases of one call have in common (record.lease).
function record.claimed(text, lease) return lease .. string.sub(text, #new + 1) end

function record.lease(session_id, number, epoch, now)
  return 'A1 ' .. escape(session_id) .. ' ' .. number .. ' ' .. epoch .. ' 1 - - ' .. now .. ' ' .. now ..
    ' initial - - '
end

-- token is how the record of an execution begins that this fence holds.
function record.token(session_id, number, epoch, attempt)
  return 'A1 ' .. escape(session_id) .. ' ' .. number .. ' ' .. epoch .. ' ' .. attempt .. ' '
end

-- holder is who holds the execution of a record: session, claim number, epoch and attempt; nil if nobody does.
function record.holder(text)
  local session_id, claim, epoch, attempt = string.match(text, '^A1 (%S+) (%d+) (%d+) (%d+) ')
  if session_id then return unescape(session_id), claim, epoch, attempt end
end

-- plain tells whether a record that begins with a token is plain, and returns its route, and of a member its flow.
function record.plain(text, token)
  local route, named = string.match(text, '^%- %- %S+ %S+ %S+ %S+ %S+ (%S+) %S+ %S+ %S+ %S+ %S+([^\n]*)\n', #token + 1)
  if not route then return nil end
  local plain, flow_id = simple(named)
  if not plain then return nil end
  return route, flow_id
end

-- bare tells whether a record that begins with a token has no named field but that it has tags, if it is easy to tell:
-- what is not bare may still be plain.
function record.bare(text, token)
  local stop, named = string.find(text, '\n', #token + 1, true), string.find(text, '=', #token + 1, true)
  return stop and (not named or named > stop or named == stop - 2 and string.sub(text, stop - 5, stop - 1) == tagged)
end

-- ended is what such a record begins with after its end with success, with a result of so many bytes.
function record.ended(token, now, size)
  return 'T1' .. string.sub(token, 3) .. now .. ' ' .. (size == 0 and '-' or reply.int(size)) .. ' '
end

-- completed is that record then.
function record.completed(text, token, ended, result)
  return ended .. string.sub(text, #token + 5) .. (#result <= record.inline and result or '')
end

-- set changes fields, given as names and values. They are written when the call ends.
function record.set(ctx, id, ...)
  local c, v = change(ctx, id), { ... }
  for i = 1, #v, 2 do c[v[i]] = v[i + 1] end
end

-- clear removes fields.
function record.clear(ctx, id, ...)
  local c, v = change(ctx, id), { ... }
  for i = 1, #v do c[v[i]] = nil end
end

-- forget drops what the call knows of an execution whose record was removed.
function record.forget(ctx, id)
  if ctx.cache.records then ctx.cache.records[id], ctx.cache.own[id] = {}, nil end
  if ctx.cache.dirty then ctx.cache.dirty[id] = nil end
  if ctx.cache.spliced then ctx.cache.spliced[id] = nil end
end

-- flush writes what changed, as the last thing that a call does.
function record.flush(ctx)
  local out = ctx.cache.written or {}
  if ctx.cache.spliced then
    for id, text in pairs(ctx.cache.spliced) do
      out[#out + 1] = keys.core(ctx.r, id)
      out[#out + 1] = text
    end
  end
  if ctx.cache.dirty then
    for id in pairs(ctx.cache.dirty) do
      out[#out + 1] = keys.core(ctx.r, id)
      out[#out + 1] = record.encode(ctx.cache.records[id])
    end
  end
  for first = 1, #out, 1000 do redis.call('MSET', unpack(out, first, math.min(first + 999, #out))) end
end

local word = '%S+ '
local four = word .. word .. word .. word
local words = '^' .. four .. four .. four .. four .. word .. '%S+()'

-- move changes the state and named fields (false removes one) of an execution. If this call has only read it, its
-- text is edited, which is half the work of set.
function record.move(ctx, id, code, fields)
  if ctx.cache.dirty and ctx.cache.dirty[id] then
    record.set(ctx, id, 'state', code)
    for field, value in pairs(fields) do
      if value then record.set(ctx, id, field, value) else record.clear(ctx, id, field) end
    end
    return
  end
  local text = record.text(ctx, id)
  local first, from = string.find(text, ' ', 1, true), string.match(text, words)
  local line = string.find(text, '\n', from, true)
  local named, added = string.sub(text, from, line - 1), ''
  if not stored.flow then learn() end
  for field, value in pairs(fields) do
    local name = ' ' .. stored[field] .. '='
    if named ~= '' then
      local a = string.find(named, name, 1, true)
      local b = a and string.find(named, ' ', a + 1, true)
      if a then named = string.sub(named, 1, a - 1) .. (b and string.sub(named, b) or '') end
    end
    if value then added = added .. name .. escape(value) end
  end
  record.splice(ctx, id, code .. string.sub(text, first, from - 1) .. named .. added .. string.sub(text, line))
  ctx.cache.records[id] = nil
end

-- started is how many attempts there were: the number of the last one, as they count from 1.
function record.started(c) return tonumber(c.attempt or '') or 0 end

-- kept is the first attempt of which something is stored: one that continues drops old ones.
function record.kept(c) return tonumber((string.match(c.links or '', ',(%d+)$')) or '1') end

-- list returns names and values of the fields, for readers in Go.
function record.list(c)
  local out = c.attempt and { 'attempts', reply.int(record.started(c)) } or {}
  for field, value in pairs(c) do
    if field ~= 'attempt' and field ~= 'input' and field ~= 'result' then
      out[#out + 1] = field
      out[#out + 1] = value
    end
  end
  return out
end
