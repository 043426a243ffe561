package main

// workerMutants break what users touch: the worker, the handler, the client, the loop of ticks.
var workerMutants = []Mutant{
	{"runtime: what was settled is never forgotten", "ADR 25", "runtime/settle.go",
		`	r.slots.settled(len(done))`, `	r.slots.settled(0)`, in("runtime", "^TestDrainWaits$")},
	{"runtime: more runs than slots", "ADR 25", "runtime/slots.go",
		`	case s.running < s.capacity:`, `	case s.running <= s.capacity:`, in("runtime", "^TestClaimsAheadRunNoMoreHandlers$")},
	{"runtime: a slot is taken until the completion is answered", "ADR 25", "runtime/job.go",
		"		settled = true\n		j.leave()\n", "		settled = true\n", in("runtime", "^TestSlotsAreFreeBeforeCompletionsAreAnswered$")},
	{"runtime: a drain keeps what waits for a slot", "ADR 25", "runtime/drain.go",
		`	r.giveBack(r.slots.close())`, `	r.giveBack(nil)`, in("runtime", "^TestDrainGivesBackWhatIsAhead$")},
	{"runtime: what waits too long for a slot is kept", "ADR 25", "runtime/slots.go",
		`	if left := s.pace.patience - now.Sub(s.ahead[0].since); left > 0 {`, `	if left := time.Hour; left > 0 {`, in("runtime", "^TestWhatWaitsTooLongGoesElsewhere$")},
	{"runtime: what was taken away while it waited begins", "ADR 25", "runtime/job.go",
		`	case !j.since.IsZero() && held.Check() != nil:`, `	case j == nil && held.Check() != nil:`, in("runtime", "^TestTakenAwayWhileAhead$")},
	{"runtime: claims gated work ahead", "ADR 25", "runtime/schedule.go",
		`p.dry || p.gated ||`, `p.dry ||`, in("runtime", "^TestWhatIsClaimedAhead$")},
	{"runtime: a claim ahead registers", "ADR 25", "runtime/schedule.go",
		`	p.ahead, p.dry = free == 0, false`, `	p.ahead, p.dry = false, false`, in("runtime", "^TestWhatIsClaimedAhead$")},
	{"runtime: a drain does not tell the handlers", "40 §12", "runtime/drain.go",
		`		held.Cancel(flowfabric.ErrDraining)`, `		_ = held`, in("runtime", "^TestDrainReleases$")},
	{"runtime: settles twice", "10-F9", "runtime/job.go",
		`	settled = true
`, ``, in("runtime", "^TestSettlesOnce$")},
	{"runtime: an unanswered settlement is given up", "40 §10", "runtime/job.go",
		`		if flowfabric.ClassOf(err) != flowfabric.ClassRetry && !errors.Is(err, context.DeadlineExceeded) {`, `		if ctx != nil || errors.Is(err, nil) {`,
		in("runtime", "^TestUnheardCompletionIsSentAgain$")},
	{"runtime: a deadline looks like a timeout", "40 §8", "runtime/job.go",
		`claim.DeadlineIn, flowfabric.ErrDeadline
`, `claim.DeadlineIn, flowfabric.ErrAttemptTimeout
`, in("runtime", "^TestDeadline$")},
	{"runtime: an ended attempt leaves frames behind", "30 §11 #25", "runtime/frames.go",
		`f.err = w.Close(f.job.ctx)`, `f.err = nil`, in("runtime", "^TestStepsAndFrames$")},
	{"runtime: a job waits for the handler before it", "design §6", "runtime/hands.go",
		`		h.call()
		return j, true`, `		return j, true`, in("runtime", "^TestHandsRunJobsTogether$")},
	{"runtime: a frame outlives its attempt", "30 §6", "runtime/frames.go",
		`		if f.closed {`, `		if false {`, in("runtime", "^TestFrameAfterTheHandler$")},
	{"client: lone submits fill one partition", "design §9", "client/coalescer.go",
		` || c.stayed == maxStay {`, ` {`, in("client", "^TestLoneSubmitsStayInTheirPartition$")},
	{"runtime: a completion is answered with its neighbour's", "10 §4.3", "runtime/settle.go",
		`			refused = answers[i].Err`, `			refused = answers[0].Err`, in("runtime", "^TestCompletedBatch$")},
	{"runtime: completions claim while the worker drains", "design §6", "runtime/visit.go",
		"	if r.draining.Load() {\n		return nil, false, nil\n	}\n	p := r.sched", "	p := r.sched", in("runtime", "^TestNoClaimWhileDraining$")},
	{"runtime: what was refused in a batch counts as settled", "10 §4.3", "runtime/settle.go",
		`			refused = answers[i].Err`, ``, in("runtime", "^TestCompletedBatch$")},
	{"runtime: runs another kind under a lost route id", "design §5", "runtime/visit.go",
		`case !r.offer.serves(route):`, `case false:`, in("runtime", "^TestAnotherKindUnderALostRouteID$")},
	{"runtime: a frozen partition fails a handler that reports progress", "design §9", "runtime/job.go",
		`if flowfabric.ClassOf(err) == flowfabric.ClassRetry && ctx.Err() == nil {`, `if false {`, in("runtime", "^TestProgressOfAFrozenPartition$")},
	{"runtime: offers what it cannot run", "40 §4", "runtime/partition.go",
		`return !o.capabilities[c] })`, `return o.capabilities[c] })`, in("runtime", "^TestOffer$")},
	{"runtime: a claim after the drain began is run", "40 §12", "runtime/visit.go",
		`		case r.draining.Load():
			r.handBack(held)
			continue
`, ``, in("runtime", "^TestClaimAnsweredDuringTheDrain$")},

	{"handler: a recorded step runs again", "design §4", "handler/step.go",
		`recorded, found = t.steps[name]`, `recorded, found = t.steps[""]`, in("handler", "^TestStepIsMemoisedOverPasses$")},
	{"handler: a step is recorded before its frames", "design §4", "handler/step.go",
		`	if err := t.Flush(ctx); err != nil {
		return fmt.Errorf("flush frames: %w", err)
	}
`, ``, in("handler", "^TestStepFlushesFirst$")},
	{"handler: a drained attempt fails", "40 §12", "handler/outcome.go",
		`		return Outcome{Kind: OutcomeRelease, Err: err}, true`, `		return plainFailure(CategoryHandlerError, err), true`, in("handler", "^TestClassify$")},
	{"handler: what is permanent is retried", "40 §11", "handler/outcome.go",
		`out.Failure.Permanent = is[*permanentError](err)`, `out.Failure.Permanent = false`, in("handler", "^TestClassify$")},
	{"handler: a name is used twice in a pass", "design §4", "handler/step.go",
		`	t.asked[name] = struct{}{}
`, ``, in("handler", "^TestStepRefusals$")},

	{"client: a submit is answered with its neighbour's", "design §7", "client/coalescer.go",
		`p.created, p.err = created[at], itemError(p.sub, created[at])`, `p.created, p.err = created[at*0], itemError(p.sub, created[at*0])`, in("client", "^TestErrorsArePerItem$")},
	{"client: an unanswered submit is not repeated", "design §2.8", "client/coalescer.go",
		`	if err != nil && repeatable(err) && ctx.Err() == nil {`, `	if err != nil && ctx.Err() != nil {`, in("client", "^TestRepeatsKeepTheIDs$")},
	{"client: a refused submit is repeated", "design §2.8", "client/coalescer.go",
		`	if err != nil && repeatable(err) && ctx.Err() == nil {`, `	if err != nil && ctx.Err() == nil {`, in("client", "^TestFinalErrorsAreNotRepeated$")},
	{"client: every batch goes to one partition", "design §9", "client/coalescer.go",
		`	c.turn = (c.turn + 1) % c.partitions
`, ``, in("client", "^TestPartitionsRotate$")},
	{"client: what its caller took back is sent", "design §7", "client/coalescer.go",
		`		p.gone = true
`, ``, in("client", "^TestCallerLeavesTheQueue$")},

	{"maintain: never ticks again", "design §8", "maintain/loop.go",
		`	case p.owned && !res.reply.Idle:
		r.schedule.at(p, now.Add(max(res.reply.Next, minPause)))
`, ``, in("maintain", "^TestOwnerTicksWhenDue$")},
	{"maintain: ticks what others own", "design §8", "maintain/loop.go",
		`	case p.owned && !res.reply.Idle:`, `	case !res.reply.Idle:`, in("maintain", "^TestOwnershipLost$")},
	{"maintain: keeps what it owned", "design §8", "maintain/loop.go",
		`		if p.owned || p.unsure {`, `		if p.unsure {`, in("maintain", "^TestEndReleases$")},
	{"maintain: a ring during a tick is lost", "design §8", "maintain/loop.go",
		`	case p.state == ticking:
		p.again = true`, `	case p.state == ticking:
		p.again = false`, in("maintain", "^TestRingDuringATickIsNotLost$")},
	{"maintain: a take-over makes nobody ask for the others", "timers are on time after a take-over", "maintain/loop.go",
		`	if took {`, `	if false {`, in("maintain", "^TestTakeOverAsksTheOthers$")},
	{"maintain: every take-over asks at once", "idle cost", "maintain/loop.go",
		`later(now, r.swept.Add(sweepPause))`, `now`, in("maintain", "^TestSweepsArePaced$")},
	{"runtime: a new subscription asks for no tick", "timers are on time after a reconnect", "runtime/bell.go",
		`					d.run.ticks.Ask(p.id)
`, ``, in("runtime", "^TestTimerSetWhileNobodyListens$")},
	{"maintain: a refused take-over is tried at once", "design §8", "maintain/schedule.go",
		`	return later(now, p.ended.Add(bystanderPause))`, `	return now`, in("maintain", "^TestBystander$")},
	{"maintain: nobody takes over", "design §8", "maintain/loop.go",
		`		r.schedule.soonest(p, p.afterRefusal(now))`, ``, in("maintain", "^TestFleet$")},
}
