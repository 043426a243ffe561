package main

// behind is what goes on behind every event of a tail.
var behind = in("internal/framelog", "^TestTailGoesOnBehindEveryEvent$")

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
	{"lease: an expired execution looks cancelled", "internal/engine.Lost.Err",
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
		if f.ID.Compare(t.cursor.id) <= 0 { // the consumer asked for later ones
			t.cursor.sequence, t.cursor.durables = f.Sequence, f.Durables
			continue
		}`, `		case f.Sequence > t.cursor.sequence+1:
			return false, nil
		}`, in("internal/framelog", "^TestTail(JoinsABurst|CatchesUpAndGoesLive|ReadsWhatAMessageLost)$")},
	{"tail: behind a gap it is told again", "internal/framelog.justBefore",
		`	p.sequence--`, `	p.sequence -= 2`, behind},
	{"tail: behind a gap a frame is lost", "internal/framelog.justBefore",
		`	if p.id.Seq--; f.ID.Seq == 0 {`, `	if f.ID.Seq == 0 {`, behind},
	{"tail: behind a run that was told it is told again", "internal/framelog.tailer.resume",
		`	if r.Run <= t.again {`, `	if r.Run < t.again {`, behind},
	{"tail: a position forgets the runs that were told", "internal/framelog.tailer.position",
		`at.id.Ms, at.id.Seq, t.again, t.wait`, `at.id.Ms, at.id.Seq, 0, t.wait`, behind},
	{"tail: a position forgets the counts", "internal/framelog.tailer.position",
		`		if at.known {`, `		if at.known && at.sequence == 0 {`, behind},
	{"tail: a run that was published lies behind its first frame", "internal/framelog.tailer.follow",
		`		t.cursor = PlaceOf(f)
		if t.durable`, `		if t.durable`, in("internal/framelog", "^TestTail")},
	{"tail: the attempt is told again behind its begin", "internal/framelog.tailer.place",
		`t.begun, t.again, t.wait = true, p.Run, p.Wait`, `t.again, t.wait = p.Run, p.Wait`, behind},
	{"tail: a suspension is told at every look", "internal/framelog.tailer.pending",
		`	if mark(record) == t.wait {
		return nil
	}
`, ``, in("internal/framelog", "^TestTailTellsWhatIsWaitedFor$")},
	{"tail: a suspension is read at every look", "internal/framelog.tailer.pending",
		`	t.looked = meta.Epoch
`, ``, in("internal/framelog", "^TestTailTellsWhatIsWaitedFor$")},
	{"tail: a retry is told at every look", "internal/framelog.tailer.pending",
		`		t.told = true
`, ``, in("internal/framelog", "^TestTail(TellsWhatIsWaitedFor|EndsBetweenAttempts)$")},
	{"tail: the end is told again", "internal/framelog.tailer.finish",
		`		if t.ended != 0 && t.ended == meta.End.At.UnixMilli() {`, `		if t.ended < 0 {`, in("internal/framelog", "^TestTailGoesOnBehind")},
	{"tail: a second end is taken for the first", "internal/framelog.tailer.finish",
		`t.ended != 0 && t.ended == meta.End.At.UnixMilli()`, `t.ended != 0`, in("internal/framelog", "^TestTailGoesOnBehindTheEnd$")},
	{"tail: what earlier attempts recorded is forgotten by who comes later", "internal/framelog.tailer.start",
		`t.upto < t.attempt; t.upto++`, `t.upto > t.attempt; t.upto++`, in("internal/framelog", "^TestTail(OfOneAttemptGoesOn|GoesOnBehindEveryEvent)$")},
	{"tail: what the attempt before recorded is counted twice", "internal/framelog.tailer.finish",
		`		t.cover(meta)
		t.upto++`, `		t.cover(meta)`, in("internal/framelog", "^TestTail(OfOneAttemptGoesOn|GoesOnBehindEveryEvent)$")},
	{"position: a number with a leading zero", "internal/tailpos.number",
		`err == nil && strconv.FormatUint(n, 10) == text`, `err == nil`, in("internal/tailpos", "^TestPosition$")},
	{"transcript: frames of an attempt that failed stay", "stream.Transcript.Add",
		`c.Attempt == t.parts[i].attempt && f.Sequence <= c.Recorded`, `c.Attempt == t.parts[i].attempt`, in("stream", "^TestTranscript$")},
	{"transcript: a resumed run repeats what it had", "stream.Transcript.Add",
		`!e.Resumed.Repeats(f)`, `true`, in("stream", "^TestTranscript$")},
	{"tail: nothing is read after a lost connection", "internal/framelog.feed.confirmed",
		`	f.mu.Unlock()
	f.tell(newsBehind)`, `	f.mu.Unlock()`, in("internal/framelog", "^TestTailSurvivesALostConnection$")},
	{"tail: the inbox has no bound", "internal/framelog.inbox.push",
		`b.frames+len(m.frames) > inboxFrames || b.bytes+m.bytes > inboxBytes:`, `b.frames < 0:`, in("internal/framelog", "^TestInboxIsBounded$")},
	{"hub: the last tailer leaves its subscription behind", "internal/framelog.Hub.leave",
		`		f.stop()`, ``, in("internal/framelog", "^TestTailBreakReleasesEverything$")},
}
