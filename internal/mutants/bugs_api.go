package main

// api runs tests of the HTTP API.
func api(tests string) Test { return in("httpapi", tests) }

// apiMutants are bugs of the HTTP API.
var apiMutants = []Mutant{
	{"api: every role may do everything", "httpapi.call.authorize",
		`	if !slices.Contains(c.route.need, who.Role) {`, `	if !slices.Contains(c.route.need, who.Role) && who.Role == "" {`, api("^TestRolesAndRoutes$")},
	{"api: without a token everything is open", "httpapi.call.authorize",
		`	if len(c.route.need) == 0 {`, `	if len(c.route.need) == 0 || c.r.Header.Get("Authorization") == "" {`, api("^TestRolesAndRoutes$")},
	{"api: any secret will do", "httpapi.Tokens.Authorize",
		`subtle.ConstantTimeCompare(list[i].sum[:], sum[:]) == 1`, `subtle.ConstantTimeCompare(list[i].sum[:], sum[:]) >= 0`, api("^TestRolesAndRoutes$")},
	{"api: what lies elsewhere is seen", "httpapi.Principal.may",
		`slices.Contains(p.Namespaces, namespace)`, `namespace != ""`, api("^TestNamespacesBound$")},
	{"api: a stream token opens every execution", "httpapi.Handler.streamMAC",
		`"flowfabric stream token\n" + id + "\n" + until`, `"flowfabric stream token\n" + until`, api("^TestStreamTokens$")},
	{"api: a stream token is good for ever", "httpapi.Handler.streamTokenValid",
		`now.Unix() < until`, `until != 0`, api("^TestStreamTokens$")},
	{"api: wrong tokens are not counted", "httpapi.limiter.fail",
		`	f.n++`, ``, api("^TestWrongTokensAreLimited$")},
	{"api: members that it does not know are taken", "httpapi.call.body",
		`json.RejectUnknownMembers(true)`, `json.RejectUnknownMembers(false)`, api("^TestBadRequests$")},
	{"api: a body of any size", "httpapi.call.body",
		`c.r.Body, maxBody)`, `c.r.Body, 1<<40)`, api("^TestBadRequests$")},
	{"api: who comes back begins anew", "httpapi.call.events",
		`		field, text = "Last-Event-ID", last`, `		field = "Last-Event-ID"`, api("^TestResumeElsewhere$")},
	{"api: a browser comes back to what has ended for ever", "httpapi.call.nothingAfter",
		`	c.w.WriteHeader(http.StatusNoContent)
	return true, nil`, `	return false, nil`, api("^TestEveryRoute$")},
	{"api: a silent stream looks dead", "httpapi.eventWriter.comment",
		`	o.write(": \n\n")
`, ``, api("^TestHeartbeat$")},
	{"api: a page of another origin may call", "httpapi.Handler.crossed",
		`	if err := h.cross.Check(q); err != nil {`, `	if err := h.cross.Check(q); err != nil && q.URL.Path == "" {`, api("^TestOrigins$")},
	{"api: a store that is away is our bug", "httpapi.problemOf",
		`	p.retry = p.Status == http.StatusServiceUnavailable`, ``, api("^TestStore")},
	{"api: a lease of another session will do", "httpapi.workerSession.fence",
		`	case ids.Worker(f.Session) != s.id:`, `	case ids.Worker(f.Session) == "":`, api("^TestEveryWriteIsFenced$")},
	{"api: a session is anybody's", "httpapi.tokenOf",
		`sha256.Sum256([]byte(who.Name))`, `sha256.Sum256([]byte(who.Role[:0]))`, api("^TestAnotherGatewayGoesOn$")},
	{"api: a session that this process does not know is none", "httpapi.call.session",
		`		info, owner, found, err := c.h.conn.Engine.ReadWorker(c.ctx(), id)`, `		info, owner, found, err := c.h.conn.Engine.ReadWorker(c.ctx(), id+"x")`, api("^TestAnotherGatewayGoesOn$")},
	{"api: a worker takes work of any namespace", "httpapi.workerBody.info",
		`		if !c.who.may(name) {`, `		if false {`, api("^TestRemoteWorkerInput$")},
	{"api: spends from any budget", "httpapi.call.spend",
		`!slices.Contains(s.Route.Gates, flowfabric.BudgetGate(b.Budget))`, `len(s.Route.Gates) > 9`, api("^TestRemoteWorkerSpends$")},
	{"api: waits on a fresh waitpoint though one was handed out", "httpapi.call.pending",
		`		if w.State == "pending" {`, `		if w.State == "" {`, api("^TestRemoteWorkerWaits$")},
	{"gateway: what nobody took is kept", "internal/gateway.Gateway.Claim",
		`			g.Return(got)`, ``, api("^TestClaimOfNobody$")},
	{"gateway: a lease that has ended is held", "internal/gateway.Gateway.Renew",
		`	if !slices.Contains(held,`, `	if len(held) > 9 && !slices.Contains(held,`, api("^TestRemoteWorker$")},
	{"gateway: notices of a loss are ignored", "internal/gateway.Gateway.Renew",
		`			return lost.Err()`, `			break`, api("^TestLossesHaveTheirReason$")},
	{"gateway: several executions share a session", "internal/gateway.pool.claim",
		`				session = p.session(q.Worker)
`, ``, api("^TestManyRemoteWorkers$|^TestClaimOfNobody$")},
	{"gateway: what is left is nobody's", "internal/gateway.Gateway.leave",
		`	if p.anyHot(p.used) {
		p.wakeFirst()
	}`, ``, in("internal/gateway", "^TestWhatIsLeft$")},
	{"gateway: a ring for nobody is not passed on", "internal/gateway.Gateway.ring",
		`			g.tasks.Go(func() { p.forward(x) })`, ``, in("internal/gateway", "^TestRingForNobody$")},
	{"gateway: nobody is rung", "internal/gateway.Gateway.ring",
		`		x.hot, x.registered = true, time.Time{}`, ``, in("internal/gateway", "^TestRing$")},
	{"api: the preference to wait is ignored", "httpapi.call.prefers",
		`		return min(time.Duration(seconds)*time.Second, maxWait), nil`, `		return 0 * min(time.Duration(seconds)*time.Second, maxWait), nil`, api("^TestEveryRoute$")},
	{"api: a durable stream is never closed", "httpapi.over",
		`parts.Stage == tailpos.Over`, `parts.Stage > 99`, api("^TestEveryRoute$")},
	{"api: an offset skips a frame", "httpapi.durable.read",
		`		if size >= most { // there is more
			return out, nil`, `		if size >= most { // there is more
			d.take(&chunk{}, e)
			out.next = e.Position
			return out, nil`, api("^TestChunks$")},
	{"api: a part is all", "httpapi.durable.read",
		`			return out, nil
		}
		size`, `			out.upToDate = true
			return out, nil
		}
		size`, api("^TestChunks$")},
	{"api: a long poll does not wait", "httpapi.durable.poll",
		`err = d.wait(x.next, d.c.h.poll)`, `err = nil`, api("^TestDurableStream$")},
	{"api: a space is lost at the beginning of a line", "httpapi.dataLines",
		`		if strings.HasPrefix(line, " ") { // readers take one space away
			line = " " + line
		}
`, ``, api("^TestChunks$")},
	{"api: offsets do not sort", "httpapi.offsetText",
		`parts.Attempt, stage, parts.Ms, parts.Seq, parts.Run,`, `parts.Run, stage, parts.Ms, parts.Seq, parts.Attempt,`, api("^TestOffsets$")},
	{"api: a waiting stream was read to a place that does not last", "httpapi.chunk.pass",
		`e.Kind == stream.TailSuspended || e.Kind == stream.TailRetry`, `e.Kind == stream.TailRetry`, api("^TestStreamOfASuspendedExecution$")},
}
