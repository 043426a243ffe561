package main

// mail are the scenarios of mailboxes.
var mail = suite("mailbox")

// mailboxMutants break messages to executions: which are kept, who gets them, and that each is received once.
var mailboxMutants = []Mutant{
	{"mailbox: any name will do", "mailbox.name", `not string.find(text, '[^ -~]')`, `true`, mail},
	{"mailbox: a repeat is stored again", "ff_send_message", `  if before then return`, `  if false then return`, suite("mailbox|repeat")},
	{"mailbox: repeats are known by their id alone", "mailbox.repeated", `m.key ~= '' and 'k' .. m.key or 's' .. m.id`, `'s' .. m.id`, mail},
	{"mailbox: a repeat after the end is refused", "ff_send_message",
		`  if before then return reply.already(reply.int(args.score(before)), mailbox.many(c)) end
  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end`,
		`  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end
  if before then return reply.already(reply.int(args.score(before)), mailbox.many(c)) end`, mail},
	{"mailbox: what has ended takes messages", "ff_send_message",
		`  if core.terminal(c) then return reply.err('target_not_signalable', c.state) end`, ``, suite("mailbox|golden")},
	{"mailbox: one message more than the limit", "mailbox.put", `n >= most then`, `n > most then`, mail},
	{"mailbox: bytes without a limit", "mailbox.put", `bytes + #text > most_bytes then`, `false then`, mail},
	{"mailbox: every message ever sent is known again", "mailbox.put", `if last >= known then`, `if false then`, mail},
	{"mailbox: one repeat less is known", "mailbox.put", `reply.int(last + 1 - known)`, `reply.int(last + 2 - known)`, mail},
	{"mailbox: the last comes first", "mailbox.put", `redis.call('RPUSH', keys.messages`, `redis.call('LPUSH', keys.messages`, mail},
	{"mailbox: the record does not count what is sent", "mailbox.put", `  count(ctx, id, last + 1, n + 1, bytes + #text)`, `  count(ctx, id, last + 1, n, bytes)`, mail},
	{"mailbox: the record does not count what is taken", "mailbox.take", `count(ctx, id, last, n - #list, all - bytes)`, `count(ctx, id, last, n, all)`, mail},
	{"mailbox: only the first 64 messages are looked at", "mailbox/each", `    if #list < 64 then return end`, `    if true then return end`, mail},
	{"mailbox: names are compared by how they begin", "mailbox/is", `at + #box + 1) == box .. US`, `at + #box) == box`, mail},
	{"mailbox: who receives gets what is in any mailbox", "mailbox.heads", `box ~= '' and not is(text, box)`, `false`, mail},
	{"mailbox: a page begins with the first message", "mailbox.heads", `<= behind then return false end`, `< 0 then return false end`, mail},
	{"mailbox: a receipt of any size", "mailbox.heads", `#out > 0 and bytes + #text > taken_bytes`, `false`, mail},
	{"mailbox: what was taken stays", "mailbox.take", `    redis.call('LREM', key, '1', list[i])`, ``, mail},
	{"mailbox: a message does not resume who waits for it", "ff_send_message", `  if core.suspended(c) then`, `  if false then`, mail},
	{"mailbox: a message resumes everybody who waits for one", "arrival.came", `nodes[i].op == op and nodes[i].box == box and`, `nodes[i].op == op and`, mail},
	{"mailbox: a message resumes everybody who waits", "arrival.came", `nodes[i].op == op and nodes[i].box == box and not u[field]`, `not u[field]`, mail},
	{"mailbox: nobody is told who resumed it", "ff_send_message", `who = m.by ~= '' and 'message ' .. m.by or nil`, `who = nil`, mail},
	{"mailbox: who waits does not see what is there", "arrival.begin", `n.op == 'M' and`, `false and`, mail},
	{"mailbox: a wait may have waitpoints beside", "condition/parse",
		`    if not nodes[#nodes].uses[w] then`, `    if nodes[#nodes].op ~= 'M' and not nodes[#nodes].uses[w] then`, mail},
	{"mailbox: the answer of a wait is kept beside its receipt", "suspension.remember", `if condition.of_mailbox(u.condition) and`, `if false and`, mail},
	{"mailbox: the answer of a wait without a receipt is lost", "suspension.remember",
		` and redis.call('HEXISTS', key, mailbox.step(u.name)) == 1 then`, ` then`, in("internal/model", "^TestProperty$")},
	{"receive: anybody may", "ff_receive_messages", `  if answer then return answer end
  local key, step`, `  local key, step`, mail},
	{"receive: a later run gets other messages", "ff_receive_messages", `  if stored then return`, `  if false then return`, mail},
	{"receive: that nothing came is always recorded", "ff_receive_messages", `  if #list == 0 and why == '' then return reply.ok('') end`, ``, mail},
	{"receive: that nothing came is never recorded", "ff_receive_messages", `if #list == 0 and why == ''`, `if #list == 0`, mail},
	{"receive: steps without number", "ff_receive_messages", `if c.step_bytes and redis.call('HLEN', key) >= 1000 then`, `if false then`, mail},
	{"receive: steps of any size", "ff_receive_messages", `if total > 8388608 then`, `if false then`, mail},
	{"receive: the step is not counted", "ff_receive_messages", `  record.set(ctx, f.id, 'step_bytes', reply.int(total))`, ``, mail},
	{"receive: nothing is taken", "ff_receive_messages", `  if #list > 0 then mailbox.take(ctx, c, f.id, list) end`, ``, mail},
	{"receive: frames are not covered", "ff_receive_messages", `  stream.recorded(ctx, c, f)`, ``, mail},
	{"mailbox: messages outlive the purge", "purge.run", `  if c.mailbox then mailbox.purge(ctx, id) end`, ``, mail},
	{"mailbox: marks outlive the purge", "mailbox.purge", `keys.messages(ctx.r, id), keys.marks(ctx.r, id)`, `keys.messages(ctx.r, id)`, mail},
	{"mailbox: an audit overlooks messages", "lua/operate/ff_audit_keys.lua", `mb = keys.messages, mk = keys.marks,`, `mk = keys.marks,`, mail},

	{"mailbox: a run forgets what it received under its hold", "internal/waits.Run.Take", `		p.took[name] = receipt{Receipt: r}`, ``, in("internal/waits", "^TestReceive")},
	{"mailbox: receipts are numbered across runs", "internal/waits.Run.Begin", `	clear(p.counts)`, ``, in("internal/waits", "^TestReceive|^TestDrain")},
	{"mailbox: frames are stored after the messages were taken", "internal/waits.Run.Take", `	if p.cfg.Flush != nil {`, `	if false {`, in("internal/waits", "^TestFramesComeFirst$")},
	{"mailbox: a receipt that is not used is not told", "internal/waits.Run.Unused", `			unused = append(unused, "messages "+name)`, ``, in("internal/waits", "^TestReceive")},
	{"mailbox: the end of a wait is not recorded", "suspend.receive", `		why = answer.Cause`, ``, in("internal/waits", "^TestReceive")},
	{"mailbox: an empty look is not recorded", "suspend.Drain", `limits.MaxReceived, waithook.WhyLooked)`, `limits.MaxReceived, waithook.WhyLooked[:0])`, in("internal/waits", "^TestDrain")},
}
