package main

// workerMutants break what users touch: the worker, the handler, the client, the loop of ticks.
var workerMutants = []Mutant{
	{"runtime: what was settled is never forgotten", "runtime.jobs.completed",
		`	js.slots.settled(len(done))`, `	js.slots.settled(0)`, in("runtime", "^TestDrainWaits$")},
	{"runtime: more runs than slots", "runtime.slots.enter",
		`	case s.running < s.capacity:`, `	case s.running <= s.capacity:`, in("runtime", "^(TestClaimsAheadRunNoMoreHandlers|TestSlotsAreEntered)$")},
	{"runtime: a slot is taken until the completion is answered", "runtime.job.work",
		`kept := j.leave(outcome.Kind == handler.OutcomeComplete && j.member())`, `kept := false`, in("runtime", "^TestSlotsAreFreeBeforeCompletionsAreAnswered$")},
	{"runtime: the slot of a member is anybody's", "runtime.slots.leave",
		`		if keep {`, `		if false {`, in("runtime", "^TestSlotsAreKept$")},
	{"runtime: a slot that was kept is lost when nothing is claimed", "runtime.claimer.completeAndClaim",
		`	slots := kept`, `	slots := 0`, in("runtime", "^TestNoClaimWhileDraining$")},
	{"runtime: a ring is passed on at once", "runtime.scheduler.owed",
		`		case patient && wait > 0:`, `		case patient && wait > passPatience:`, in("runtime", "^TestRingsThatAreOwed$")},
	{"link: a try that was not answered is forgotten", "internal/link.Persist",
		`			err = engine.Unanswered(err)`, ``, in("client", "^TestSubmitFlowIsRefusedAfterALostAnswer$")},
	{"runtime: a drain keeps what waits for a slot", "runtime.run.drain",
		`	r.jobs.giveBack(r.slots.close())`, `	r.jobs.giveBack(nil)`, in("runtime", "^TestDrainGivesBackWhatIsAhead$")},
	{"runtime: what more waits behind goes back as soon", "runtime.pace.bound",
		`	if deep {`, `	if false {`, in("runtime", "^TestWorkOfADeepQueueMayWaitLonger$")},
	{"runtime: one of a deep queue keeps what others want", "runtime.slots.stale",
		`s.pace.bound(j.deep)`, `s.pace.bound(s.ahead[0].deep)`, in("runtime", "^TestWorkOfADeepQueueMayWaitLonger$")},
	{"runtime: what waits too long for a slot is kept", "runtime.slots.stale",
		`		left = min(left, s.pace.bound(j.deep)`, `		left = min(left, time.Hour+s.pace.bound(j.deep)`, in("runtime", "^TestWhatWaitsTooLongGoesElsewhere$")},
	{"runtime: what was taken away while it waited begins", "runtime.job.work",
		`	case !j.since.IsZero() && held.Check() != nil:`, `	case j == nil && held.Check() != nil:`, in("runtime", "^TestTakenAwayWhileAhead$")},
	{"runtime: claims gated work ahead", "runtime.scheduler.pick",
		`	case !p.gated: `, `	case true: `, in("runtime", "^TestWhatIsClaimedAhead$")},
	{"runtime: a claim ahead registers", "runtime.scheduler.pick",
		`	p.ahead, p.dry = free == 0, false`, `	p.ahead, p.dry = false, false`, in("runtime", "^TestWhatIsClaimedAhead$")},
	{"runtime: a drain does not tell the handlers", "runtime.run.interrupt",
		`		held.Cancel(flowfabric.ErrDraining)`, `		_ = held`, in("runtime", "^TestDrainReleases$")},
	{"runtime: settles twice", "runtime.job.work",
		`	settled = true
`, ``, in("runtime", "^TestSettlesOnce$")},
	{"runtime: an unanswered settlement is given up", "runtime.persist",
		`		if flowfabric.ClassOf(err) != flowfabric.ClassRetry && !errors.Is(err, context.DeadlineExceeded) {`, `		if ctx != nil || errors.Is(err, nil) {`,
		in("runtime", "^TestUnheardCompletionIsSentAgain$")},
	{"runtime: a deadline looks like a timeout", "runtime.job.context",
		`claim.DeadlineIn, flowfabric.ErrDeadline
`, `claim.DeadlineIn, flowfabric.ErrAttemptTimeout
`, in("runtime", "^TestDeadline$")},
	{"runtime: an ended attempt leaves frames behind", "runtime.frames.close",
		`f.err = w.Close(f.job.jobs.ctx)`, `f.err = nil`, in("runtime", "^TestStepsAndFrames$")},
	{"runtime: a job waits for the handler before it", "runtime.goroutinePool.next",
		`		p.call()
		return j, true`, `		return j, true`, in("runtime", "^TestPoolRunsJobsTogether$")},
	{"runtime: a frame outlives its attempt", "runtime.frames.make",
		`		if f.closed {`, `		if false {`, in("runtime", "^TestFrameAfterTheHandler$")},
	{"client: lone submits fill one partition", "internal/coalesce.placement.place",
		` || p.stayed == maxStay {`, ` {`, in("internal/coalesce", "^TestLoneSubmitsStayInTheirPartition$")},
	{"runtime: a completion is answered with its neighbour's", "runtime.jobs.completed",
		`			refused = answers[i].Err`, `			refused = answers[i*0].Err`, in("runtime", "^TestCompletedBatch$")},
	{"runtime: completions claim while the worker drains", "runtime.claimer.completeAndClaim",
		"	if c.draining.Load() {\n		return nil, false, nil\n	}\n	p := c.sched", "	p := c.sched", in("runtime", "^TestNoClaimWhileDraining$")},
	{"runtime: what was refused in a batch counts as settled", "runtime.jobs.completed",
		`			refused = answers[i].Err`, `			_ = answers[i].Err`, in("runtime", "^TestCompletedBatch$")},
	{"runtime: runs another kind under a lost route id", "runtime.claimer.start",
		`case !c.offer.Serves(route):`, `case false:`, in("runtime", "^TestAnotherKindUnderALostRouteID$")},
	{"runtime: a frozen partition fails a handler that reports progress", "runtime.job.UpdateProgress",
		`if flowfabric.ClassOf(err) == flowfabric.ClassRetry && ctx.Err() == nil {`, `if false {`, in("runtime", "^TestProgressOfAFrozenPartition$")},
	{"runtime: offers what it cannot run", "internal/offer.Offer.class",
		`return !o.Capabilities[c] })`, `return o.Capabilities[c] })`, in("internal/offer", "^TestOffer$")},
	{"runtime: keeps offering classes of work that went", "internal/offer.Table.Learn", `min(2*t.whole+maxGone, limits.MaxClasses)`, `limits.MaxClasses`,
		in("internal/offer", "^TestRoutesThatWent$")},
	{"runtime: a claim after the drain began is run", "runtime.claimer.start",
		`		case c.draining.Load():
			c.jobs.handBack(held)
			continue
`, ``, in("runtime", "^TestClaimAnsweredDuringTheDrain$")},

	{"handler: a recorded step runs again", "handler.Task.ask",
		`recorded, found = t.steps[name]`, `recorded, found = t.steps[""]`, in("handler", "^TestStepIsMemoisedOverRuns$")},
	{"handler: a step is recorded before its frames", "handler.Task.record",
		`	if err := t.Flush(ctx); err != nil {
		return fmt.Errorf("flush frames: %w", err)
	}
`, ``, in("handler", "^TestStepFlushesFirst$")},
	{"handler: a drained attempt fails", "handler.interrupted",
		`		return Outcome{Kind: OutcomeRelease, Err: err}, true`, `		return plainFailure(codes.CategoryHandlerError, err), true`, in("handler", "^TestClassify$")},
	{"handler: what is permanent is retried", "handler.failed",
		`out.Failure.Permanent = is[*permanentError](err)`, `out.Failure.Permanent = false`, in("handler", "^TestClassify$")},
	{"handler: a name is used twice in a run", "handler.Task.ask",
		`	t.asked[name] = struct{}{}
`, ``, in("handler", "^TestStepRefusals$")},

	{"client: a submit is answered with its neighbour's", "internal/coalesce.Coalescer.answer",
		`p.Created, p.Err = created[i], itemError(p.Sub, created[i])`, `p.Created, p.Err = created[i*0], itemError(p.Sub, created[i*0])`, in("internal/coalesce", "^TestErrorsArePerItem$")},
	{"client: an unanswered submit is not repeated", "internal/coalesce.Coalescer.send",
		`		if err != nil && link.Repeatable(err) {
			if pauses`, `		if err == nil && link.Repeatable(err) {
			if pauses`, in("internal/coalesce", "^TestRepeatsKeepTheIDs$")},
	{"client: a refused submit is repeated", "internal/coalesce.Coalescer.send",
		`		if err != nil && link.Repeatable(err) {
			if pauses`, `		if err != nil {
			if pauses`, in("internal/coalesce", "^TestFinalErrorsAreNotRepeated$")},
	{"client: every batch goes to one partition", "internal/coalesce.placement.rotate",
		`	p.turn = (p.turn + 1) % p.partitions
`, ``, in("internal/coalesce", "^TestPartitionsRotate$")},
	{"client: what its caller took back is sent", "internal/coalesce.Coalescer.abandon",
		`		p.gone = true
`, ``, in("internal/coalesce", "^TestCallerLeavesTheQueue$")},

	{"maintain: never ticks again", "internal/maintain.run.settle",
		`	case p.owned && !res.reply.Idle:
		r.schedule.at(p, now.Add(max(res.reply.Next, minPause)))
`, ``, in("internal/maintain", "^TestOwnerTicksWhenDue$")},
	{"maintain: ticks what others own", "internal/maintain.run.settle",
		`	case p.owned && !res.reply.Idle:`, `	case !res.reply.Idle:`, in("internal/maintain", "^TestOwnershipLost$")},
	{"maintain: keeps what it owned", "internal/maintain.run.release",
		`		if p.owned || p.unsure {`, `		if p.unsure {`, in("internal/maintain", "^TestEndReleases$")},
	{"maintain: a ring during a tick is lost", "internal/maintain.run.ring",
		`	case p.state == ticking:
		p.again = true`, `	case p.state == ticking:
		p.again = false`, in("internal/maintain", "^TestRingDuringATickIsNotLost$")},
	{"maintain: a take-over makes nobody ask for the others", "internal/maintain.run.settle",
		`	if took {`, `	if took && false {`, in("internal/maintain", "^TestTakeOverAsksTheOthers$")},
	{"maintain: every take-over asks at once", "internal/maintain.run.sweep",
		`later(now, r.swept.Add(sweepPause))`, `now`, in("internal/maintain", "^TestSweepsArePaced$")},
	{"runtime: a new subscription asks for no tick", "runtime.doorbell.keep",
		`					d.ticks.Ask(p.id)
`, ``, in("runtime", "^TestTimerSetWhileNobodyListens$")},
	{"maintain: a refused take-over is tried at once", "internal/maintain.partition.afterRefusal",
		`	return later(now, p.ended.Add(bystanderPause))`, `	return now`, in("internal/maintain", "^TestBystander$")},
	{"maintain: nobody takes over", "internal/maintain.run.ring",
		`		r.schedule.soonest(p, p.afterRefusal(now))`, ``, in("internal/maintain", "^TestFleet$")},
}
