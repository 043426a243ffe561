package main

// engineMutants break the Go face of the library: calls, replies, key names.
var engineMutants = []Mutant{
	{"engine: an unanswered call is not repeated", "internal/engine.Engine.run",
		`	if err == nil || f.once || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err`, `	if err == nil || err != nil {
		return r, err`, suite("lost replies")},
	{"engine: a refusal is repeated", "internal/engine.Engine.run",
		`	if err == nil || f.once || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err`, `	if err == nil {
		return r, err`, in("internal/engine", "^TestOneCallOneRefusal$")},
	{"engine: what its caller repeats is repeated, too", "internal/engine.Engine.run",
		` || f.once`, ``, in("internal/engine", "^TestACallThatItsCallerRepeatsIsMadeOnce$")},
	{"engine: a lost library is not loaded again", "internal/engine.Engine.equipped",
		`	if missingFunction(err) {
		r, err`, `	if missingFunction(err) && false {
		r, err`, in("internal/engine", "^TestReload$")},
	{"engine: each call boots a lost store for itself", "internal/engine.Engine.bootAgain",
		`	if e.reboots.count.Load() != seen {`, `	if seen > 1<<62 {`, in("internal/engine", "^TestFlushedStoreIsBootedAgain$")},
	{"engine: a store of other counts is booted", "internal/engine.Engine.sameCounts",
		`	if err == nil && stored != used {`, `	if err == nil && stored.Executions == 0 {`, in("internal/engine", "^TestStoreMadeAnewWithOtherCounts$")},
	{"runtime: token keys stay unknown after a flush", "runtime.tokenSeeds.signing",
		`	if s.keyring == nil || !errors.Is(err, denied.NoTokenKeys) {`, `	if s.keyring == nil || err == nil || errors.Is(err, denied.NoTokenKeys) {`, in("runtime", "^TestAHandlerThatWaitsOutlivesAFlush$")},
	{"client: a subscription is not recorded again after a flush", "admin.follower.again",
		`	if err == nil && !slices.Equal(now, f.booted) {`, `	if err == nil && !slices.Equal(now, f.booted) && len(now) == 0 {`, in("admin", "^TestAClientOutlivesAFlush$")},
	{"engine: what already held looks new", "internal/engine.decode",
		`		r.already = true`, `		r.already = false`, suite("settle|lease")},
	{"engine: a failed-over server is not asked again", "internal/engine.callError",
		`"READONLY", `, ``, in("internal/engine", "^TestRefusals$")},
	{"engine: claim number and epoch swapped", "internal/engine.words.fence",
		`w.number(f.Claim), w.number(f.Epoch)`, `w.number(f.Epoch), w.number(f.Claim)`, suite("settle")},
	{"engine: another partition's execution is completed", "internal/engine.Engine.CompleteExecutions",
		`x.Fence.Execution.Partition() != partition {`, `x.Fence.Execution.Partition() > 60000 {`, in("internal/engine", "^TestForeignPartitions$")},
	{"engine: a retry lies in the past", "internal/engine.Engine.FailExecution",
		`max(0, at-now)`, `max(0, now-at)`, suite("settle")},
	{"engine: retries and reclaims of a claim swapped", "internal/engine.Engine.claims",
		`c.Retries, c.Reclaims = `, `c.Reclaims, c.Retries = `, suite("time|settle")},
	{"engine: a duplicate looks created", "internal/engine.reader.answer",
		`return s[1:], s[0], nil`, `return s[1:], '+', nil`, suite("create|settle")},
	{"engine: a negative length is believed", "internal/engine.reader.count",
		`(n < 0 || int(n) >`, `(int(n) >`, in("internal/engine", "^TestLyingCounts$")},
	{"engine: only announcements tell of a new primary", "internal/engine.sentinels",
		`TopologyRefreshInterval: sentinelRefresh`, `TopologyRefreshInterval: 0`, in("internal/engine", "^TestSentinelURLs$")},
	{"engine: Sentinels are asked in plain text", "internal/engine.Config.options",
		`o.Dialer, o.TLSConfig, o.ClientName`, `o.Dialer, nil, o.ClientName`, in("internal/engine", "^TestSentinelURLs$")},
	{"engine: a + in the password of the Sentinels is a space", "internal/engine.sentinelCredentials",
		`url.PathUnescape(text)`, `url.QueryUnescape(text)`, in("internal/engine", "^TestSentinelURLs$")},
	{"engine: a Sentinel passes for a server", "internal/engine.identify",
		`text("mode") == "sentinel"`, `text("mode") == ""`, in("internal/sentinel", "^TestURL$")},
	{"keys: Go and Lua disagree", "internal/keys.Partition.Alarms",
		`":alarms"`, `":alarm"`, in("internal/keys", ".")},
}
