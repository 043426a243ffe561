package main

// engineMutants break the Go face of the library: calls, replies, key names.
var engineMutants = []Mutant{
	{"engine: an unanswered call is not repeated", "design §2.8", "engine/call.go",
		`	if err == nil || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err`, `	if err == nil || err != nil {
		return r, err`, suite("lost")},
	{"engine: a refusal is repeated", "design §2.8", "engine/call.go",
		`	if err == nil || !errors.Is(err, flowfabric.ErrTransport) {
		return r, err`, `	if err == nil {
		return r, err`, in("engine", "^TestOneCallOneRefusal$")},
	{"engine: a lost library is not loaded again", "10 §9 #70", "engine/call.go",
		`	if err == nil || !missingFunction(err) {`, `	if err == nil || err != nil {`, in("engine", "^TestReload$")},
	{"engine: each call boots a lost store for itself", "ADR 26", "engine/reboot.go",
		`	if e.reboots.count.Load() != seen {`, `	if seen > 1<<62 {`, in("engine", "^TestFlushedStoreIsBootedAgain$")},
	{"engine: a store of other counts is booted", "ADR 26", "engine/reboot.go",
		`	if err == nil && stored != used {`, `	if err == nil && stored.Executions == 0 {`, in("engine", "^TestStoreMadeAnewWithOtherCounts$")},
	{"runtime: token keys stay unknown after a flush", "ADR 26", "runtime/suspend.go",
		`	if r.keyring == nil || !errors.Is(err, flowfabric.ErrNoTokenKeys) {`, `	if err != nil {`, in("runtime", "^TestAWorkerOutlivesAFlush$")},
	{"client: a subscription is not recorded again after a flush", "ADR 26", "client/subscribe.go",
		`	if err == nil && !slices.Equal(now, f.booted) {`, `	if err == nil && len(now) == 0 {`, in("client", "^TestAClientOutlivesAFlush$")},
	{"engine: what already held looks new", "10-D33", "engine/call.go",
		`		r.already = true`, `		r.already = false`, suite("settle|lease")},
	{"engine: a failed-over server is not asked again", "40 §10", "engine/call.go",
		`"READONLY", `, ``, in("engine", "^TestRefusals$")},
	{"engine: claim number and epoch swapped", "10-F1", "engine/execution.go",
		`w.number(f.Claim), w.number(f.Epoch)`, `w.number(f.Epoch), w.number(f.Claim)`, suite("settle")},
	{"engine: another partition's execution is completed", "design §2.2", "engine/execution.go",
		`x.Fence.Execution.Partition() != partition {`, `x.Fence.Execution.Partition() > 60000 {`, in("engine", "^TestForeignPartitions$")},
	{"engine: a retry lies in the past", "10-D7", "engine/execution.go",
		`max(0, at-now)`, `max(0, now-at)`, suite("settle")},
	{"engine: retries and reclaims of a claim swapped", "10 §4", "engine/worker.go",
		`c.Retries, c.Reclaims = `, `c.Reclaims, c.Retries = `, suite("time|settle")},
	{"engine: a duplicate looks created", "10 §9 #4", "engine/reader.go",
		`return s[1:], s[0] == '=', nil`, `return s[1:], false, nil`, suite("create|settle")},
	{"engine: a negative length is believed", "10-D1", "engine/reader.go",
		`(n < 0 || int(n) >`, `(int(n) >`, in("engine", "^TestLyingCounts$")},
	{"keys: Go and Lua disagree", "design §2.2", "internal/keys/keys.go",
		`":alarms"`, `":alarm"`, in("internal/keys", ".")},
}
