// Package adk runs agents of Google's Agent Development Kit (google.golang.org/adk/v2) in a handler, so that what a
// model or a tool has answered survives the death of the worker and is not paid for, or done, again.
//
//	support, err := llmagent.New(llmagent.Config{Name: "support", Model: adk.Model(gemini), Tools: tools})
//	…
//	handler.Bind(question, func(ctx context.Context, t *handler.Task, text string) (string, error) {
//		s, err := adk.New(ctx, t, adk.Config{Runner: runner.Config{Agent: support}})
//		if err != nil {
//			return "", err
//		}
//		answer, err := s.Send(ctx, genai.NewContentFromText(text, genai.RoleUser))
//		return answer.Text, err
//	})
//
// The agent is one of ADK's own: its sub-agents, transfers, loops, callbacks and plugins work as they do elsewhere.
// Only each model is wrapped by [Model]. Outside a session of this package such a model is the plain one.
//
// # What is recorded
//
// A call of a model is a step, "support model 2", and so is a call of a tool, "support tool 2.1 refund": the first of
// the second answer with calls. The step of a tool has its result or its error, and what it changed in the state of
// the session. A handler that runs again sends the same messages, and the runner of ADK comes the same way: it gets
// what is recorded and calls the rest. Steps have at most 256 KiB; with handler.Offloaded larger ones are in a store of
// objects.
//
// A tool begins before it is recorded, so one whose worker dies in the middle is called again. As everywhere, give the
// key of its effect to the service it calls; handler.Task.ID and the arguments make one.
//
// # People
//
// A tool that asks for confirmation (functiontool.Config.RequireConfirmation, tool.WithConfirmation,
// RequestConfirmation) suspends the execution: no worker holds it while people decide. All questions of an answer are
// open at once, each on the waitpoint "approve 1.1 refund", and are listed, answered and linked to like all approvals.
// A tool may also wait itself, with [TaskFrom].
//
// # What must be the same again
//
// Callbacks, plugins, instructions from functions and workflow nodes are run again when the handler is, and must then
// decide the same. An effect of theirs belongs into handler.Step with [TaskFrom]. Values in the state of a session, and
// results of tools, come back as JSON has them: a number is a float64.
//
// An error of a model ends the run, and the retry policy of the execution tries again. What tries again sooner, or
// another model, belongs inside of [Model]; a substitute of OnModelErrorCallback is not used. An error of a tool is
// an answer to the model and is recorded.
//
// # What ADK keeps closed
//
//   - Live sessions (Runner.RunLive) take no model but that of ADK, so nothing of them can be recorded.
//   - Streaming tools (functiontool.NewStreaming) are called without callbacks. They are refused.
//   - The runner that agenttool makes for its agent has no plugins. The calls of its models are recorded, and its
//     result as that of a tool, but not each of its tools; and nobody can be asked below it. Sub-agents have no such
//     limits.
//   - An agent that ADK runs several times at once, such as in workflow.ParallelWorker, has no order that would be the
//     same again. It is refused when two of its calls overlap.
package adk
