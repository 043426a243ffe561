package main

// holdingMutants break what a worker believes to hold, and the frames it writes and follows.
var holdingMutants = []Mutant{
	{"lease: trusted for its whole ttl", "internal/keeper.New",
		`cfg.TTL - margin(cfg.TTL),`, `cfg.TTL,`, in("internal/keeper", "^(TestBlackHoleEndsTrust|TestWallClockJump)$")},
	{"lease: the wall clock is not asked", "internal/keeper.Instant.Since",
		`max(i.Mono-earlier.Mono, i.Wall.Sub(earlier.Wall))`, `i.Mono - earlier.Mono`, in("internal/keeper", "^TestWallClockJump$")},
	{"lease: the number of a claim is not used up", "internal/keeper.Keeper.finish",
		`		s.number++`, ``, in("internal/keeper", "^TestClaimNumbers$")},
	{"lease: a claim without an answer is forgotten", "internal/keeper.Keeper.unresolved",
		`	s.pending = true
`, ``, in("internal/keeper", "^(TestLostClaimReplyIsRepeated|TestUnresolvedThenClose|TestNoHandBackWhileAClaimIsPending)$")},
	{"lease: renewed after its end", "internal/keeper.session.untilRenewal",
		`s.keeper.cfg.TTL/3 - now`, `2*s.keeper.cfg.TTL - now`, in("internal/keeper", "^TestRenewalKeepsHoldsAlive$")},
	{"lease: an older hold goes on", "internal/keeper.Keeper.hold",
		`		old.lose(flowfabric.ErrLeaseLost)
`, ``, in("internal/keeper", "^TestNewerHoldWins$")},
	{"lease: a notice that overtakes its claim is lost", "internal/keeper.session.notice",
		`		s.early[lost.Execution] = lost`, `		s.early = nil`, in("internal/keeper", "^TestLostNoticeOvertakesClaim$")},
	{"lease: an expired execution looks cancelled", "internal/keeper.causeOf",
		`		return flowfabric.ErrDeadline`, `		return flowfabric.ErrCancelled`, in("internal/keeper", "^TestLostNotices$")},
	{"lease: acknowledges a notice that is still to come", "internal/keeper.Keeper.renewOnce",
		`s.generation = reply.Generation //`, `s.generation = reply.Generation + 1 //`, in("internal/keeper", "^TestLostNotices$")},
	{"lease: the holds of a dead session go on", "internal/keeper.Keeper.lose",
		`	for h := s.held.first; h != nil; h = h.next {
		h.lose(flowfabric.ErrLeaseLost)
	}
`, ``, in("internal/keeper", "^TestExpiredSession$")},
	{"lease: what was abandoned is kept", "internal/keeper.Keeper.forget",
		`	if !h.session.dead {
		h.session.doubt(0)
		k.nudge()
	}
`, ``, in("internal/keeper", "^TestAbandonedHoldIsHandedBack$")},
	{"lease: handed back while a claim is in flight", "internal/keeper.Keeper.compare",
		`if s.dead || s.pending || s.retiring {`, `if s.dead || s.retiring {`, in("internal/keeper", "^TestLookThatWaitedForALostClaim$")},
	{"lease: a session that is closed keeps orphans", "internal/keeper.Keeper.closeSession",
		`	if errors.Is(err, denied.SessionHeld) {`, `	if errors.Is(err, denied.ClaimOrder) {`, in("internal/keeper", "^TestOrphansAreHandedBackBeforeTheClose$")},

	{"writer: a sequence is used twice", "internal/framelog.Writer.prepare",
		`w.acked + 1 + uint64(i)`, `w.acked + max(uint64(i), 1)`, in("internal/framelog", "^TestWriterBatchesTenThousandAppendsInOrder$")},
	{"writer: a short answer is taken for whole", "internal/framelog.Writer.send",
		`answer.LastSequence < last:`, `answer.LastSequence > last:`, in("internal/framelog", "^TestWriterRefusesAShortAnswer$")},
	{"writer: an unanswered batch is dropped", "internal/framelog.Writer.send",
		`flowfabric.ClassOf(err) == flowfabric.ClassRetry:`, `flowfabric.ClassOf(err) == 99:`, in("internal/framelog", "^TestWriterSurvivesLostRepliesExactly$")},
	{"writer: a fenced task is not cancelled", "internal/framelog.Writer.stop",
		`		w.cfg.Cancel(err)`, ``, in("internal/framelog", "^TestWriterFencedInMidStream$")},
	{"tail: a gap is skipped", "internal/framelog.tailer.follow",
		`f.Sequence > t.cursor.sequence+1:`, `f.Sequence > t.cursor.sequence+1000:`, in("internal/framelog", "^TestTailReadsWhatAMessageLost$")},
	{"tail: frames that were read are delivered again", "internal/framelog.tailer.follow",
		`		case f.Sequence <= t.cursor.sequence:
			continue
		case f.Sequence > t.cursor.sequence+1:
			return false, nil
		}
		t.cursor.sequence, t.cursor.durables = f.Sequence, f.Durables
		if f.ID.Compare(t.cursor.id) <= 0 {
			continue // the consumer asked for later ones
		}`, `		case f.Sequence > t.cursor.sequence+1:
			return false, nil
		}
		t.cursor.sequence, t.cursor.durables = f.Sequence, f.Durables`, in("internal/framelog", "^TestTail(JoinsABurst|CatchesUpAndGoesLive|ReadsWhatAMessageLost)$")},
	{"tail: nothing is read after a lost connection", "internal/framelog.feed.confirmed",
		`	f.mu.Unlock()
	f.tell(newsBehind)`, `	f.mu.Unlock()`, in("internal/framelog", "^TestTailSurvivesALostConnection$")},
	{"tail: the inbox has no bound", "internal/framelog.inbox.push",
		`b.frames+len(m.frames) > inboxFrames || b.bytes+m.bytes > inboxBytes:`, `b.frames < 0:`, in("internal/framelog", "^TestInboxIsBounded$")},
	{"hub: the last tailer leaves its subscription behind", "internal/framelog.Hub.leave",
		`		f.stop()`, ``, in("internal/framelog", "^TestTailBreakReleasesEverything$")},
}
