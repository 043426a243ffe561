package main

const fenceFile = "lua/lib/fence.lua"

// fenceMutants break who is the holder, and what a caller who is not learns.
var fenceMutants = []Mutant{
	{"complete: the token forgets the session", "10-F1", completeFile,
		`record.token(f.session, f.claim,`, `record.token(string.match(text or '', '^%S+ (%S+)') or '', f.claim,`, suite("settle|stream|lease|time|errors")},
	{"complete: the token forgets the claim number", "10-F1", completeFile,
		`f.session, f.claim, f.epoch,`, `f.session, string.match(text or '', '^%S+ %S+ (%S+)') or '', f.epoch,`, suite("lease|settle|errors")},
	{"complete: the token forgets the epoch", "10-F1", completeFile,
		`f.claim, f.epoch, f.attempt)`, `f.claim, string.match(text or '', '^%S+ %S+ %S+ (%S+)') or '', f.attempt)`, suite("lease|settle|errors")},
	{"complete: the token forgets the attempt", "10-F1", completeFile,
		`f.epoch, f.attempt)
  if text`, `f.epoch, string.match(text or '', '^%S+ %S+ %S+ %S+ (%S+)') or '')
  if text`, suite("lease|settle|errors")},
	{"complete: a dead session holds a plain one", "10-F6", completeFile,
		` and session.read(ctx, f.session).alive then`, ` then`, suite("settle|lease")},
	{"fence: the session is not compared", "10-F1", fenceFile,
		`if c.ss ~= f.session or c.cl`, `if c.cl`, suite("lease|errors")},
	{"fence: the claim number is not compared", "10-F1", fenceFile,
		`c.cl ~= f.claim or c.e ~= f.epoch or`, `c.e ~= f.epoch or`, suite("lease|errors")},
	{"fence: the epoch is not compared", "10-F1 D14", fenceFile,
		`or c.e ~= f.epoch or core`, `or core`, suite("lease|errors")},
	{"fence: the attempt is not compared", "10-D15", fenceFile,
		` or core.attempt(c) ~= f.attempt then`, ` then`, suite("lease|errors")},
	{"fence: a dead session holds", "10-F6", fenceFile,
		`  if c.ss == f.session and not session.read(ctx, f.session).alive then return reply.err('lease_expired') end`, ``, suite("lease|settle")},
	{"fence: a revoked holder is not told so", "10-F7", fenceFile,
		`  if c.s == 'A3' and c.ss == f.session then return reply.err('lease_revoked') end`, ``, suite("operator")},
	{"fence: two slots of not-active swapped", "10-D33", fenceFile,
		`c.e or '0', core.attempt(c), c.lr or ''`, `core.attempt(c), c.e or '0', c.lr or ''`, suite("settle|lease|errors|operator|golden")},
	{"fence: a repeat of another operation is recognised", "10-D33", fenceFile,
		`o ~= op or `, ``, suite("settle|golden|errors")},
	{"fence: a repeat under an older epoch is recognised", "10-D33", fenceFile,
		`epoch ~= f.epoch or `, ``, suite("holes")},
	{"fence: a repeat by another holder is recognised", "10-D33", fenceFile,
		`  if c.e == f.epoch and (c.ss ~= f.session or c.cl ~= f.claim) then return nil end`, ``, suite("holes")},
	{"fence: a fence without an attempt is taken for whole", "10-D14", fenceFile,
		` or f.attempt == '' then`, ` then`, suite("cancel|errors|settle")},
}
