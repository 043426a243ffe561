package main

// agentMutants break what agents promise.
var agentMutants = []Mutant{
	{"agent: a model call is repeated by every run", "agent.run.ask",
		`r.cfg.prefixed("model " + strconv.Itoa(r.done.Turns+1))`, `r.cfg.prefixed("model " + strconv.Itoa(r.done.Turns+1) + strconv.Itoa(int(r.task.Fence().Epoch)))`, in("agent", "^TestCrashes$")},
	{"agent: a tool is repeated by every run", "agent.run.step",
		`r.cfg.prefixed(j.named("tool"))`, `r.cfg.prefixed(j.named("tool")) + fmt.Sprint(r.task.Fence().Epoch)`, in("agent", "^TestCrashes$")},
	{"agent: a message is shown outside of a step", "agent.run.ask",
		`	conversation := slices.Concat(`, `	for _, m := range fresh { _ = r.show(ctx, m) }
	conversation := slices.Concat(`, in("agent", "^TestCrashes$")},
	{"agent: results of tools are not shown", "agent.run.answer",
		`range fresh {`, `range r.says {`, in("agent", "^TestFrames$")},
	{"agent: nothing is spent", "agent.run.answer",
		`if err := r.spend(ctx, response.Usage); err != nil {`, `if err := r.spend(ctx, Usage{}); err != nil {`, in("agent", "^TestSpending$")},
	{"agent: what ended with an error is kept", "agent.run.answer",
		`	if err != nil {
		return turn{}, err
	}
	if err := r.spend`, `	if err := r.spend`, in("agent", "^(TestStoppedInMidAnswer|TestModelErrors)$")},
	{"agent: one turn too many", "agent.run.limit", `r.done.Turns >= cfg.MaxTurns`, `r.done.Turns > cfg.MaxTurns`, in("agent", "^TestLimits$")},
	{"agent: one answer too many", "agent.run.limit", `r.done.Usage.Total() >= cfg.MaxTokens`, `r.done.Usage.Total() > cfg.MaxTokens`, in("agent", "^TestLimits$")},
	{"agent: the time of tools does not count", "agent.run.perform", `r.took += j.done.Took`, ``, in("agent", "^TestLimits$")},
	{"agent: tools run behind a limit", "agent.run.loop",
		`if err := r.limit(); err != nil { // the model`, `if false { // the model`, in("agent", "^TestLimits$")},
	{"agent: a conversation waits behind a limit", "agent.run.next",
		`if err := r.limit(); err != nil {`, `if err != nil {`, in("agent", "^TestConversationsWithALimit$")},
	{"agent: a limit is retried", "agent.run.limit", `handler.Permanent(over)`, `over`, in("agent", "^TestLimits$")},
	{"agent: what was rejected runs", "agent.run.result", `if j.denied != "" {`, `if j.denied == "never" {`, in("agent", "^TestApproval$")},
	{"agent: people are asked about bad arguments", "agent.run.jobOf", ` && j.bad() == nil`, ``,
		in("agent", "^TestNobodyIsAskedAboutBadArguments$")},
	{"agent: bad arguments reach the tool", "agent.run.result", `bad != nil {`, `bad != nil && j.tool == nil {`, in("agent", "^TestArgumentsAreChecked$")},
	{"agent: a question is measured before it is encoded", "agent.cut", `after > bytes || size > encoded`, `after > bytes`, in("agent", "^TestQuestions$")},
	{"agent: a question may turn the direction of writing", "agent.visible", `unicode.Is(unicode.Bidi_Control, c)`, `false`, in("agent", "^TestQuestions$")},
	{"agent: long histories leave no room for the answer", "agent.told", `room = min(room, maxSaid)`, `room = maxSaid`, in("agent", "^TestLongHistoriesLeaveRoomForTheAnswer$")},
	{"agent: readers get what is private", "agent.shortened", `m.Private = nil`, ``, in("agent", "^TestFrames$")},
	{"agent: a refusal calls tools", "agent.turn.settle", `a.Stop == StopRefusal`, `false`, in("agent", "^TestAnswersAreCompleted$")},
	{"agent: a result of any length", "agent.run.result", `n > limits.MaxToolResult`, `n > 100*limits.MaxToolResult`, in("agent", "^TestLongResults$")},
	{"agent: what a stopped tool says goes to the model", "agent.run.ends", `ctx.Err() != nil || `, ``, in("agent", "^TestToolsStoppedByTheirHandler$")},
	{"agent: permanent errors go to the model", "agent.run.ends", `out.Failure.Permanent || `, ``, in("agent", "^TestErrorsThatEndTheRun$")},
	{"agent: errors with a category go to the model", "agent.run.ends",
		`return out.Failure.Category != "handler_error" && `, `return out.Failure.Category == "" && `, in("agent", "^TestErrorsThatEndTheRun$")},
	{"agent: all calls have one key", "agent.callOf", `[]byte(callSpace(t)+step+"\n"+c.ID+"\n"+string(c.Arguments))`, `[]byte(step[:0])`, in("agent", "^TestCallFrom$")},
	{"agent: a message that comes during the last answer is left", "agent.run.next",
		`if err := r.hear(ctx); err != nil || len(r.says) > 0 {`, `if err != nil {`, in("agent", "^TestMessagesWhileItRuns$")},
	{"agent: messages wait for the end", "agent.run.loop",
		`		if err := r.hear(ctx); err != nil {
			return err
		}`, ``, in("agent", "^TestMessagesWhileItRuns$")},
	{"agent: an idle conversation waits for ever", "agent.run.receive", `suspend.Within(r.cfg.Idle)`, `suspend.Within(0)`, in("agent", "^TestConversationsThatEnd$")},
	{"agent: the edit changes the transcript", "agent.run.request", `slices.Clone(conversation)`, `conversation`, in("agent", "^TestRequest$")},
	{"agent: spans of what is recalled", "agent.newRun", `	return r
`, `	if r.spans != nil { _, s := r.spans.chat(context.Background(), Request{}); s.otel.End() }
	return r
`, in("agent", "^TestSpans$")},
	{"agent: a transcript has another agent's steps", "agent.placeOf",
		`strings.CutPrefix(step, Config{Name: agent}.prefixed(""))`, `step[max(0, strings.Index(step, "model ")):], true`, in("agent", "^TestReadTranscript$")},
}
