package main

const (
	modesFile   = "lua/lib/modes.lua"
	valueFile   = "stream/value.go"
	readFile    = "stream/read.go"
	writerFile  = "stream/writer.go"
	summaryFile = "stream/summary.go"
)

// modeMutants break summaries, best-effort frames, and how they are read with the durable ones.
var modeMutants = []Mutant{
	{"modes: deltas trim the durable frames", "30-T1", modesFile,
		`'XTRIM', deltas,`, `'XTRIM', main,`, suite("modes")},
	{"modes: best-effort frames trim the durable ones", "30-T2", modesFile,
		`'XTRIM', live,`, `'XTRIM', main,`, suite("modes")},
	{"modes: deltas are kept for ever", "30 §2.3", modesFile,
		`    redis.call('XTRIM', deltas, 'MAXLEN', '~', modes.deltas)`, ``, suite("modes")},
	{"modes: best-effort frames stay for ever", "30 §3.2", modesFile,
		`    redis.call('PEXPIRE', live, 2 * ttl)`, ``, suite("modes")},
	{"modes: best-effort frames go after their ttl", "30 §3.2", modesFile,
		`2 * ttl`, `ttl`, suite("modes")},
	{"modes: a ttl of a millisecond", "30 §3.2", modesFile,
		`1000, 60000)`, `1, 60000)`, suite("modes")},
	{"modes: a ttl of an hour", "30 §3.2", modesFile,
		`1000, 60000)`, `1000, 3600000)`, suite("modes")},
	{"modes: deltas are not compared", "30 §3.1", modesFile,
		`  return m.s > 0 and m.base + old ~= tonumber(version or '0')`, `  return false`, suite("modes")},
	{"modes: deltas that were skipped are not counted", "30 §6.2", modesFile,
		`m.base + old ~=`, `m.base ~=`, suite("modes")},
	{"modes: the document tells when it changed as when it began", "30 §1.3", modesFile,
		`if not b.version then`, `if b.version ~= 0 then`, suite("modes")},
	{"modes: the document is not stored", "30 §3.1", modesFile,
		`'d', m.text, `, ``, suite("modes")},
	{"modes: a document of any size", "30 §3.1", modesFile,
		`#m.text > modes.document`, `#m.text > 2 * modes.document`, suite("modes")},
	{"modes: ids follow the clock back", "30-T28", modesFile,
		`if ctx.now > ms then`, `if ctx.now ~= ms then`, suite("modes")},
	{"modes: durable frames of a mixed attempt have an order of their own", "30-T28", appendFile,
		`  if mixed or m[7] or m[8] then`, `  if mixed then`, suite("modes")},
	{"modes: durable frames are not told apart", "30 §4.4", modesFile,
		`if durable ~= sequence then put('d', durable) end`, ``, suite("modes")},
	{"modes: best-effort frames count as durable", "30 §3", modesFile,
		`if mode == 'd' then durable`, `if mode ~= 's' then durable`, suite("modes")},
	{"modes: more words than frames", "30 §2.2", modesFile,
		`local comma = n < count and string.find`, `local comma = string.find`, suite("modes")},
	{"modes: tailers are not told", "30 §3", appendFile,
		`part(spelled and spelled[n] or '')`, `part('')`, suite("modes")},
	{"modes: tailers are told the wrong version", "30 §3", modesFile,
		`word = 's' .. reply.int(version)`, `word = 's' .. reply.int(version - 1)`, suite("modes")},
	{"purge: the summary stays", "30-T25", "lua/lib/purge.lua",
		`      keys.summary(r, id, a), keys`, `      keys`, suite("modes")},
	{"purge: the live log stays", "30-T25", "lua/lib/purge.lua",
		`keys.live(r, id, a),`, ``, suite("modes")},
	{"read stream: deltas are called best effort", "30 §4.2", "lua/read/ff_read_attempt_stream.lua",
		`m[7] or '0', m[8] or '0',`, `m[8] or '0', m[7] or '0',`, suite("modes")},

	{"summary: an empty object wipes", "30-T12", valueFile,
		`	if target != nil && target.object {`, `	if target != nil && target.object && len(patch.members) > 0 {`, in("stream", "TestMerge|TestWriterMerges")},
	{"summary: a deleted member is stored as null", "RFC 7396", valueFile,
		`		case change.value.isNull():`, `		case change.value.isNull() && was == nil:`, in("stream", "TestMerge")},
	{"summary: the sentinel is stored", "30 §3.1", valueFile,
		`	if text == SummaryNull {`, `	if text == SummaryText {`, in("stream", "TestMerge")},
	{"summary: numbers of any range", "30-T12", valueFile,
		`	if _, err := strconv.ParseFloat(text, 64); err != nil {`, `	if _, err := strconv.ParseFloat(text, 64); err == nil && text == "" {`, in("stream", "TestMerge")},
	{"summary: 17 levels", "30 §3.1", valueFile,
		`	if level > flowfabric.MaxSummaryDepth {`, `	if level > flowfabric.MaxSummaryDepth+1 {`, in("stream", "TestMerge")},
	{"summary: a delete and an object become one patch", "30 §6.1", valueFile,
		`			ok = false
`, `			out = append(out, *b)
`, in("stream", "TestComposed|TestWriterComposes")},
	{"summary: the document may grow", "30 §3.1", summaryFile,
		`next.size > flowfabric.MaxSummary {`, `next.size > flowfabric.MaxSummary+1 {`, in("stream", "TestMergeSummaryLimit")},
	{"summary: a refused delta is merged all the same", "30 §11 #9", summaryFile,
		`	if merge() == nil && w.extend(q) {`, `	defer func() { w.summary.document = merged(w.summary.document, patch) }()
	if merge() == nil && w.extend(q) {`, in("stream", "TestWriterRefusesDeltas")},
	{"summary: a later pass begins anew", "30 §3.1", summaryFile,
		`	if w.cfg.LastSequence > 0 {`, `	if w.cfg.LastSequence > 1<<40 {`, in("stream", "TestWriterGoesOn")},
	{"writer: the newest best-effort frame goes", "30 §6.1", writerFile,
		`	for w.blocked == 0 && !w.room(size) {`, `	for w.blocked == 0 && !w.room(size) && size < 0 {`, in("stream", "TestWriterFullQueue")},
	{"writer: a flush forgets frames behind one that was dropped", "30 §6.4", writerFile,
		`		return ticket < w.queue[0].ticket
`, `		return ticket <= w.queue[0].ticket
`, in("stream", "TestWriter")},
	{"live: the rate forgets its batches", "30 §3.2", "stream/live.go",
		`1000*float64(frames)/float64(passed)`, `1000/float64(passed)`, in("stream", "TestLiveSizing")},
	{"read: hidden frames hold the cursor", "30-T3", readFile,
		`	return pageUpTo(bound, after, frames, meta), nil`, `	return pageOf(after, frames, meta), nil`, in("stream", "TestReadPassesOver")},
	{"read: logs are merged beyond what is known of each", "30 §4.2", readFile,
		`			bound = more[len(more)-1].ID // what follows in this log is not known`, ``, in("stream", "TestRead")},
	{"tail: who joins late is told of what was not meant to last", "30 §5.2", "stream/tail.go",
		`	if !t.current || t.visible != VisibleAll {`, `	if t.visible != VisibleAll {`, in("stream", "TestTail")},
	{"tail: best-effort frames are shown to who does not want them", "30 §4.2", "stream/tail.go",
		`		if !t.visible.shows(f.Mode) {
			continue
		}
`, ``, in("stream", "TestTailModes")},
}
