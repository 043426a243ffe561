-- keys: every key derives from the partition root, so all keys of a call share its slot.
-- The Go twin is internal/keys; a test holds the two together.
local keys = {}

-- One per partition.
function keys.routes(r) return r .. ':routes' end       -- hash: route -> row
function keys.route_ids(r) return r .. ':routeids' end  -- hash: row -> route
function keys.route_log(r) return r .. ':routelog' end  -- zset: class by table version
function keys.makers(r) return r .. ':makers' end       -- hash: class -> namespace that made it
function keys.ready(r) return r .. ':ready' end         -- set: classes with work that is handed out (ready)
function keys.delayed(r) return r .. ':delayed' end     -- zset: execution by delay_until
function keys.alarms(r) return r .. ':alarms' end       -- zset: execution by earliest deadline or timeout
function keys.sessions(r) return r .. ':sessions' end   -- zset: session by expiry (refreshed when it fires)
function keys.done(r) return r .. ':done' end           -- zset: ended execution by purge time
function keys.unsuccessful(r) return r .. ':unsuccessful' end -- zset: execution that ended other than completed by when
function keys.pending(r) return r .. ':pending' end     -- zset: pending waitpoint by expiry, as execution:waitpoint
function keys.kids(r) return r .. ':kids' end           -- hash: current token key, and the state of each
function keys.digests(r) return r .. ':digests' end     -- set: subscriptions that have waiters
function keys.parked(r) return r .. ':parked' end       -- zset: suspended execution by when it was suspended
-- hash: route -> executions that are retained; others of a class -> how many
function keys.route_use(r) return r .. ':routeuse' end
function keys.lanes(r) return r .. ':lanes' end         -- hash: namespace and lane -> what an operator said
function keys.workers(r) return r .. ':workers' end     -- zset: registered worker instance by expiry
function keys.versions(r) return r .. ':versions' end   -- zset: version of an application by when a worker had it last
function keys.schedules(r) return r .. ':schedules' end -- zset: schedule that is not paused by its next due time
function keys.schedule_names(r) return r .. ':scnames' end -- zset: every schedule, all of one score
function keys.feed(r) return r .. ':feed' end           -- stream: what happened, while somebody wants to know
function keys.trail(r) return r .. ':trail' end         -- stream: who changed what
function keys.blocked(r) return r .. ':blocked' end     -- zset: member that waits for others by when it was created
function keys.flows(r) return r .. ':flows' end         -- zset: flow by when it was created
function keys.flow_due(r) return r .. ':flowdue' end    -- zset: flow that the tick is to give up, or to forget
function keys.backlog(r) return r .. ':backlog' end     -- zset: unfinished work of flows by when it was filed
function keys.work(r) return r .. ':work' end           -- hash: what that work is
function keys.gready(r) return r .. ':gready' end       -- set: likewise, with gates
function keys.closed(r) return r .. ':closed' end       -- zset: route that a gate closed by when it opens again
function keys.aside(r, name) return r .. ':bad:' .. name end -- any: what an audit could not read, under its former name
-- hash: that route -> why, "w" and a route -> how often it was woken, "m" and a route -> what its gates measure
function keys.closings(r) return r .. ':closings' end
-- hash: scope -> gates of what is created in it, and who said so
function keys.attached(r) return r .. ':attached' end
-- stream: what gates and other executions are to be told
function keys.outbox(r) return r .. ':outbox' end
function keys.paused(r) return r .. ':paused' end       -- zset: execution that an operator paused by when
-- zset: execution:waitpoint, as a refused token named it, by when
function keys.refused(r) return r .. ':refused' end
function keys.refusals(r) return r .. ':refusals' end   -- hash: how many tokens were refused
-- hash: namespace and lane -> what it was given; lane -> where it is
function keys.shares(r) return r .. ':shares' end
function keys.weights(r) return r .. ':weights' end     -- hash: namespace and lane -> its weight
function keys.gates(r) return r .. ':gates' end         -- zset: every gate, all of one score
-- zset: open reservation, as gate and execution:epoch.number, by when it is to be asked about
function keys.reserved(r) return r .. ':reserved' end
function keys.streams_due(r) return r .. ':dsdue' end   -- zset: written stream by when it expires
function keys.news(r) return r .. ':news' end           -- channel: the feed has grown
function keys.urgent(r) return r .. ':urgent' end       -- channel: work that should come next (urgent)

-- One per route, subscription or session.
function keys.queue(r, route) return r .. ':q:' .. route end          -- zset: execution by score
-- zset: execution of a route by when it was created; execution that has a tag with a value, as key=value, likewise
function keys.made(r, route) return r .. ':cr:' .. route end
function keys.labelled(r, label) return r .. ':ct:' .. label end
function keys.values(r, key) return r .. ':cv:' .. key end            -- set: values of a tag that executions have
function keys.subscription(r, digest) return r .. ':sub:' .. digest end   -- set: classes, as ready has them
-- string: namespaces, none for all, and weights of lanes
function keys.spaces(r, digest) return r .. ':ins:' .. digest end
-- zset: namespaces with work in the order of their turns
function keys.ring(r, class) return r .. ':ring:' .. class end
function keys.gring(r, class) return r .. ':gring:' .. class end      -- zset: likewise, work with gates
-- zset: routes with gates and work
function keys.turns(r, class, namespace) return r .. ':turns:' .. class .. ':' .. namespace end
function keys.waiters(r, digest) return r .. ':w:' .. digest end      -- zset: instance by expiry
function keys.session(r, session) return r .. ':s:' .. session end    -- hash
function keys.held(r, session) return r .. ':h:' .. session end       -- zset: execution by claim number
function keys.lost(r, session) return r .. ':l:' .. session end       -- list: notices, oldest first
-- zset: open waitpoint of a token key by when it ends
function keys.open(r, kid) return r .. ':open:' .. kid end
function keys.worker(r, instance) return r .. ':wk:' .. instance end  -- hash: a registered worker instance
-- hash: kind -> schemas of its inputs and results, as workers say; '' -> their version
function keys.schemas(r, namespace) return r .. ':sm:' .. namespace end
-- Of a namespace, how long attempts waited and ran (ff_note_times): hash: minute of the day -> minute and tally of a
-- kind; hash: kind -> newest minute; and string: number of the last call of a sender.
function keys.minutes(r, namespace, kind) return r .. ':tm:' .. namespace .. '\31' .. kind end
function keys.timed_kinds(r, namespace) return r .. ':tk:' .. namespace end
function keys.times_sender(r, sender) return r .. ':tn:' .. sender end
function keys.schedule(r, name) return r .. ':sc:' .. name end        -- hash: a schedule
-- Of a subject that events are published with (lib/subject.lua): zset of the partition: every trigger, as namespace,
-- subject and name; hash: trigger -> terms; hash: what else is known of them; string: an event that was published.
function keys.triggers(r) return r .. ':triggers' end
function keys.trigger_terms(r, subject) return r .. ':tr:' .. subject end
function keys.trigger_facts(r, subject) return r .. ':td:' .. subject end
function keys.published(r, event) return r .. ':pb:' .. event end
-- Waitpoints that take its events (lib/expect.lua): zset of the partition: each by when; hash: what is known of them;
-- set: those that are filed under a term.
function keys.expected(r) return r .. ':expected' end
function keys.expectations(r, subject) return r .. ':ew:' .. subject end
function keys.filed(r, subject, term) return r .. ':et:' .. subject .. ':' .. term end
function keys.doorbell(r, instance) return r .. ':bell:' .. instance end  -- channel

-- counted and timed name what a limit of a key ("@<at once>.<starts>.<window>@<key>") counts: all limits of a key
-- share its slots, and those with the same window its starts. A gate's own name is what it is.
local function counted(name) return string.match(name, '^@%d+%.%d+%.%d+(@.+)$') or name end
local function timed(name)
  local window = string.match(name, '^@%d+%.%d+%.(%d+@.+)$')
  return window and '@' .. window or name
end

-- One per gate, in partitions of their own.
function keys.gate(r, name) return r .. ':ga:' .. name end           -- hash: definition
function keys.gate_log(r, name) return r .. ':gh:' .. name end      -- list: what was said of it, periods among it
function keys.usage(r, name) return r .. ':gu:' .. name end          -- hash: dimension -> used in this period
-- zset: execution, as <partition>.<uuid>, by its last report
function keys.spenders(r, name) return r .. ':gx:' .. name end
-- hash: what an execution reported
function keys.ledger(r, name, spender) return r .. ':gl:' .. name .. ':' .. spender end
-- zset: who waits for amounts, as <partition>.<uuid>, by priority and when
function keys.line(r, name) return r .. ':gq:' .. name end
-- hash: hour:dimension -> used in that hour, of the last 24 and this one
function keys.hours(r, name) return r .. ':go:' .. name end
-- list: what calls of a label used
function keys.samples(r, name, label) return r .. ':gp:' .. name .. ':' .. label end
function keys.report(r, name, key) return r .. ':gr:' .. name .. ':' .. key end -- string: a report that was applied
-- zset: route closed for want of an amount, as partition and id, by when
function keys.amount_waiters(r, name) return r .. ':gw:' .. name end
function keys.window(r, name) return r .. ':gt:' .. timed(name) end  -- zset: hold by when it was admitted
function keys.slots(r, name) return r .. ':gs:' .. counted(name) end -- zset: hold by when it is to be asked about
-- zset: route closed for want of a slot, and because of the rate
function keys.slot_waiters(r, name) return r .. ':gc:' .. counted(name) end
function keys.rate_waiters(r, name) return r .. ':ge:' .. timed(name) end
-- Of a service (lib/service.lua): hash: levels, what it learned; and zset: call under way by when it was let through.
function keys.pace(r, name) return r .. ':gv:' .. name end
function keys.calls(r, name) return r .. ':gk:' .. name end
-- zset: namespace that waits by its turn, one by its next turn, and who waits in one by priority and when
function keys.takers(r, name) return r .. ':gy:' .. name end
function keys.turn(r, name) return r .. ':gf:' .. name end
function keys.queued(r, name, namespace) return r .. ':gz:' .. name .. ':' .. namespace end
function keys.asking(r, name) return r .. ':gi:' .. name end         -- hash: who waits -> for what, and when it asks

-- One per execution.
function keys.core(r, id) return r .. ':x:' .. id end       -- string: lib/record.lua
function keys.input(r, id) return r .. ':i:' .. id end      -- string
function keys.tags(r, id) return r .. ':t:' .. id end       -- hash
function keys.steps(r, id) return r .. ':k:' .. id end      -- hash: step name -> value
-- hash: step name -> attempt, when it was recorded, how long it took
function keys.step_log(r, id) return r .. ':kl:' .. id end
function keys.attempts(r, id) return r .. ':a:' .. id end   -- hash: folded attempts, long texts, categories
function keys.history(r, id) return r .. ':e:' .. id end   -- list: what happened out of the ordinary
function keys.keyed(r, id) return r .. ':y:' .. id end     -- string: who has a key of callers (keyed)
function keys.tombstone(r, id) return r .. ':z:' .. id end -- string: what is left of a purged execution
-- string: the current or last suspension, and the waitpoints (wait_record)
function keys.waits(r, id) return r .. ':u:' .. id end
function keys.satisfied(r, id) return r .. ':us:' .. id end -- hash: what satisfied parts of an open condition
function keys.matched(r, id) return r .. ':um:' .. id end  -- hash: signal id -> a signal that a condition took
function keys.messages(r, id) return r .. ':mb:' .. id end -- list: messages that nobody has received (mailbox)
function keys.marks(r, id) return r .. ':mk:' .. id end   -- zset: what a message is known again by -> its number
-- hash: who waits for it, as partition and id -> token (wait_others)
function keys.awaiting(r, id) return r .. ':aw:' .. id end
function keys.events(r, id) return r .. ':ev:' .. id end    -- channel
function keys.frames(r, id) return r .. ':fr:' .. id end    -- channel
function keys.log_news(r, id) return r .. ':ln:' .. id end  -- channel: an attempt has logged something
-- hash: attempt -> how many forks have frames of it; fork -> of how many attempts it has some (base)
function keys.references(r, id) return r .. ':fk:' .. id end

-- One per stream that is written from outside (written).
function keys.written(r, id) return r .. ':ds:' .. id end      -- hash: the stream
function keys.written_log(r, id) return r .. ':dl:' .. id end  -- stream: what was appended
function keys.producers(r, id) return r .. ':dp:' .. id end    -- hash: producer -> its epoch and sequence
function keys.forks(r, id) return r .. ':df:' .. id end        -- set: forks that begin in it
function keys.written_news(r, id) return r .. ':dn:' .. id end -- channel: it has changed

-- One per flow, and per member of a flow.
function keys.flow(r, id) return r .. ':fw:' .. id end      -- hash: header
-- zset: member by number, dependants after what they depend on
function keys.members(r, id) return r .. ':fx:' .. id end
function keys.roots(r, id) return r .. ':fu:' .. id end     -- list: members that wait for the release alone
function keys.flow_tags(r, id) return r .. ':ft:' .. id end  -- hash
function keys.flow_stone(r, id) return r .. ':fz:' .. id end -- string: what is left of a purged flow
-- string: what a member depends on, and who depends on it (links)
function keys.links(r, id) return r .. ':m:' .. id end
function keys.outgoing(r, id) return r .. ':fo:' .. id end      -- list: those who depend on it, if they are many
function keys.incoming(r, id) return r .. ':fi:' .. id end      -- hash: upstream -> edge, if they are many
-- hash: child, or other that it waits for -> how it ended
function keys.children(r, id) return r .. ':fc:' .. id end

-- One per attempt.
function keys.result(r, id, attempt) return r .. ':o:' .. id .. ':' .. attempt end  -- string
function keys.stream(r, id, attempt) return r .. ':f:' .. id .. ':' .. attempt end  -- stream
function keys.meta(r, id, attempt) return r .. ':fm:' .. id .. ':' .. attempt end   -- hash
function keys.deltas(r, id, attempt) return r .. ':fd:' .. id .. ':' .. attempt end  -- stream: summary deltas
-- stream: best-effort frames, with a TTL
function keys.live(r, id, attempt) return r .. ':fl:' .. id .. ':' .. attempt end
function keys.summary(r, id, attempt) return r .. ':fs:' .. id .. ':' .. attempt end -- hash: the summary document
-- stream: runs after the first, by their first frame
function keys.runs(r, id, attempt) return r .. ':fe:' .. id .. ':' .. attempt end
function keys.log(r, id, attempt) return r .. ':lg:' .. id .. ':' .. attempt end     -- stream: log lines

-- One per waitpoint.
function keys.signals(r, id, waitpoint) return r .. ':g:' .. id .. ':' .. waitpoint end   -- list: signals in order
-- hash: what was delivered, to know repeats
function keys.delivered(r, id, waitpoint) return r .. ':gd:' .. id .. ':' .. waitpoint end
