-- ff_audit_index: looks at one page of an index from its own side, and with repair 1 removes what no record names or
-- restores what the records tell. Indexes: delayed alarms parked blocked paused done unsuccessful pending sessions
-- routelog workers schedules scnames flows flowdue dsdue backlog closed q:<route> ring:<class> gring:<class>
-- turns:<class>:<namespace> h:<session> open:<kid> fx:<flow> cr:<route>
-- ct:<tag>=<value> (entries by place, of which none hides what is behind it),
-- ready gready types routes routeids work closings attached shares weights makers (in no order), outbox (oldest first),
-- and at once s:<session> l:<session> w:<digest> sc:<schedule> wk:<instance> root wake. In a partition of gates: gates
-- gs:<gate> gs:@<key> (slots, of which what is no hold is removed), and at once ga:<gate>. The cursor is '' for the
-- first page, and in the answer when there is no more.
-- Flags:   allow-oom
-- Go:      Engine.AuditIndex
-- Args:    protocol repair:flag index:text cursor:bytes(65536) limit:n(1..100)
-- Replies: OK cursor:text checked:n findings
-- Errors:  @root invalid_input
local ff_index = {}

-- parse says what is looked at, nil when there is no such index.
function ff_index.parse(ctx, index)
  local entries = audit_entries.sets[index]
  if entries then return { family = index, key = entries(ctx.r), look = audit_entries.look } end
  local look = audit_tables.looks[index] or audit_root.looks[index]
  if look then return { look = look, stream = index == 'outbox' } end
  local family, of = string.match(index, '^(%l+):(.+)$')
  if not family or #of > (family == 'gs' and 129 or family == 'ct' and 330 or 80) then return nil end
  entries, look = audit_entries.families[family], audit_owners.looks[family]
  if entries then return { family = family, of = of, key = entries(ctx.r, of), look = audit_entries.look } end
  return look and { of = of, alone = look } or nil
end

-- valid judges a cursor; one of a scan is a number.
function ff_index.valid(q)
  if q.cursor == '' then return true end
  if q.stream then return string.find(q.cursor, '^%d+%-%d+$') and #q.cursor <= 40 end
  if not q.key then return args.int(q.cursor, 0, 9007199254740991) end
  return audit_entries.position(string.match(q.cursor, '^(%S+) .') or '')
end

local function ff_audit_index(ctx, q)
  audit.begin(ctx, q.repair)
  local x = ff_index.parse(ctx, q.index)
  if not x then return reply.err('invalid_input', 'index: no such one') end
  x.index, x.cursor, x.limit = q.index, q.cursor, q.limit
  if not ff_index.valid(x) then return reply.err('invalid_input', 'cursor: none of this index') end
  local checked, cursor = 1, ''
  if x.alone then x.alone(ctx, x.of) else checked, cursor = x.look(ctx, x) end
  return audit.finish(ctx, { 1, 'OK', cursor, reply.int(checked) })
end
