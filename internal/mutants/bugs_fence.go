package main

// fenceMutants break who is the holder, and what a caller who is not learns.
var fenceMutants = []Mutant{
	{"complete: the token forgets the session", "ff_complete.judge",
		`record.token(f.session, f.claim,`, `record.token(string.match(text or '', '^%S+ (%S+)') or '', f.claim,`, suite("settle|stream|lease|time|errors")},
	{"complete: the token forgets the claim number", "ff_complete.judge",
		`f.session, f.claim, f.epoch,`, `f.session, string.match(text or '', '^%S+ %S+ (%S+)') or '', f.epoch,`, suite("lease|settle|errors")},
	{"complete: the token forgets the epoch", "ff_complete.judge",
		`f.claim, f.epoch, f.attempt)`, `f.claim, string.match(text or '', '^%S+ %S+ %S+ (%S+)') or '', f.attempt)`, suite("lease|settle|errors")},
	{"complete: the token forgets the attempt", "ff_complete.judge",
		`f.epoch, f.attempt)
  if text`, `f.epoch, string.match(text or '', '^%S+ %S+ %S+ %S+ (%S+)') or '')
  if text`, suite("lease|settle|errors")},
	{"complete: a dead session holds a plain one", "ff_complete.judge",
		` and session.read(ctx, f.session).alive then`, ` then`, suite("settle|lease")},
	{"fence: the session is not compared", "fence.check",
		`if c.session ~= f.session or c.claim_number`, `if c.claim_number`, suite("lease|errors")},
	{"fence: the claim number is not compared", "fence.check",
		`c.claim_number ~= f.claim or c.epoch ~= f.epoch or`, `c.epoch ~= f.epoch or`, suite("lease|errors")},
	{"fence: the epoch is not compared", "fence.check",
		`or c.epoch ~= f.epoch or core`, `or core`, suite("lease|errors")},
	{"fence: the attempt is not compared", "fence.check",
		` or core.attempt(c) ~= f.attempt then`, ` then`, suite("lease|errors")},
	{"fence: a dead session holds", "fence.check",
		`  if c.session == f.session and not session.read(ctx, f.session).alive then return reply.err('lease_expired') end`, ``, suite("lease|settle")},
	{"fence: a revoked holder is not told so", "fence.check",
		`  if c.state == 'A3' and c.session == f.session then return reply.err('lease_revoked') end`, ``, suite("operator")},
	{"fence: two slots of not-active swapped", "fence.not_active",
		`c.epoch or '0', core.attempt(c), c.last_release or ''`, `core.attempt(c), c.epoch or '0', c.last_release or ''`, suite("settle|lease|errors|operator|golden")},
	{"fence: a repeat of another operation is recognised", "fence.released",
		`o ~= op or `, ``, suite("settle|golden|errors")},
	{"fence: a repeat under an older epoch is recognised", "fence.released",
		`epoch ~= f.epoch or `, ``, suite("edge cases")},
	{"fence: a repeat by another holder is recognised", "fence.released",
		`  if c.epoch == f.epoch and (c.session ~= f.session or c.claim_number ~= f.claim) then return nil end`, ``, suite("edge cases")},
	{"fence: a fence without an attempt is taken for whole", "fence.refuse",
		` or f.attempt == '' then`, ` then`, suite("cancel|errors|settle")},
}
