// Package agent runs a language model that uses tools as durable work: the loop of model calls and tool calls in
// which nothing that was recorded is ever repeated, whatever crashes.
//
//	handler ── Run ──▶ ┌─▶ model 1 ───── a step: frames of what is new, the answer as it comes, what it cost, the answer
//	                   │      │ wants tools                                │ ends
//	                   │      ▼                                            ▼
//	                   │   tool 1.1 search ─┐ steps, at once            Result, or with Mailbox:
//	                   │   tool 1.2 fetch  ─┤                           a message came ──▶ model 2
//	                   │   approve 1.3 pay ─┤ a wait ─▶ tool 1.3 pay    Conversation   ──▶ a wait for the next one
//	                   │   children 1 ──────┴▶ a wait ─▶ tool 1.4 check
//	                   └────── results, and messages that came meanwhile
//
// An agent in a handler:
//
//	var search = agent.NewTool("search", "Finds pages about a topic.",
//		func(ctx context.Context, in Search) ([]Page, error) { return index.Find(ctx, in.Topic) })
//
//	func research(ctx context.Context, t *handler.Task, question string) (string, error) {
//		r, err := agent.Run(ctx, t, agent.Config{Model: model, Tools: []agent.Tool{search}, Prompt: question, MaxTurns: 20})
//		return r.Text, err
//	}
//
// A [Model] is one method; adapters of services are modules of their own. The retry policy of the handler's
// definition retries failed model calls, and a worker holds no slot meanwhile.
//
// [RunAs] is a run whose answer is of a type. Requests of a run begin with the same bytes, and say so ([Cache]), for
// services that keep the beginnings of prompts. Package agenttest has a model for tests that answers from files.
//
// # The transcript
//
// Followers of the execution (client.Execution.Tail) see it live, as frames: [FrameMessage] for each message when it is
// new to the model, then [FrameToken], [FrameReasoning], [FrameCall] and [FrameArguments] while an answer comes, then a
// [FrameMessage] of the answer and a [FrameUsage]. All of them are appended inside the steps of model calls, which run
// one after the other. So a reader that drops what a stream.Resumption says is repeated sees each of them once. Of
// several tools of an answer each has a [FrameResult] when it ends, for those who listen then. A message is one frame
// of at most 64 KiB: a longer text or longer arguments are cut there, with a note. About 10,000 frames of an attempt
// are kept, and a later attempt appends only what was not recorded. [ReadTranscript] reads the whole conversation from
// the recorded steps, at any time.
//
// # Tools that wait
//
// A tool with [MaySuspend] may wait for hours, and may have steps of its own: the execution is suspended meanwhile and
// holds nothing.
//
// The module agent/mcptools gives agents the tools of MCP servers. Tasks of such servers are such waits.
//
// # Agents that use agents
//
// A tool made with [Child] is an execution of any kind, which may be another agent. All such calls of a turn run at
// once while the parent is suspended, after the other tools of the turn. flow.Share among [ChildOptions] bounds what a
// child may spend of the parent's gates. A tail of the parent has the output of its children, too
// (stream.TailEvent.Child).
//
// # Images and files
//
// A [Message] has parts: texts, images, files and reasoning ([Part]). Tools answer with a []Part, users send them, and
// adapters give services what they take. With Config.Blobs the transcript has references of all bytes above 1 KiB, and
// each model call reads them. They are stored before what refers to them is recorded.
//
// # Limits
//
// MaxTurns, MaxTokens and MaxTime of [Config] end a run with a [*LimitError]. They look at recorded figures only, so
// a run that is repeated stops at the same place. Gates of the execution are for limits over many runs: what an
// answer cost is spent (handler.Task.SpendUsage) in the step that records it, so it is counted at least as often as the
// answer was recorded, and at most as often as the model was called.
//
// Four fifths into each of these limits the model is told, once, by a message of the conversation, so that it can come
// to an end or say what is missing.
//
// # Long conversations
//
// With Config.Compact the next request is weighed before each model call: what the last answer was reported to have
// read and written, and an estimate of what is new, as for the service's limits. If it has the stated share of the
// window, the model is first asked to summarise the older messages. That is a step of its own, "summary 7" after the
// 7th answer. From then on the model sees the instructions, the summary as a message of the user, and the messages that
// were kept, from an answer or a message of the user on. The next summary takes the place of this one, too. Result and
// transcript keep all messages. Readers get a [FrameSummary]. A summary counts as tokens and time, not as a turn; it
// waits for its turn at Config.Governor, and is spent. One that fails or comes empty fails the attempt, as a model call
// does. One that is longer than a quarter of what is too long, or 32 KiB, is cut.
//
// # The service's limits
//
// With Config.Governor each model call waits for its turn at the gate of the model's service (handler.Task.Acquire):
// as many pass as the service allows in a minute, over all workers, and tenants share it by weight. If the turn is
// far, Run returns an error that the handler must return; the execution gives its slot up, keeps its place, uses no
// retry, and goes on with what was recorded. A call is taken to use a token for every four bytes of the request, 1,500
// for an image and at most 100,000 for a file, and an answer as long as the longest of the last four of the run, but
// at least 256 tokens and at most MaxOutput. What the model reports corrects that. When the service refuses a call
// (status 429, 503 or 529, see [StatusError]), the gate is told, with the pause that the service asks for, and no
// worker calls it before that is over.
//
// # Messages
//
// With Config.Mailbox, what client.Execution.Send puts into that mailbox is what the user says. A JSON string, or the
// member text of an object, is the text. An array of [Part], or the member parts of an object such as a [Message], are
// parts: no reasoning, and no blobs without Config.Blobs. Anything else is taken as it is. The member id of such an
// object, printable text of at most 128 bytes, names the message ([Message].ID); a longer or other one is passed over.
// Messages are heard before each model call but the first, and when the model has ended; those that came meanwhile are
// answered together. With Config.OneByOne each gets an answer of its own.
//
// With Config.WhileBusy a message that comes while the agent talks ends the answer in mid-token, or is refused.
//
// # Stops, and another answer
//
// [Stop] ends an answer in mid-token, and keeps the run. [Regenerate] has an answer made again, and [Edit] to other
// words of the user, whatever the execution does: what came after is dropped, and the run goes on from there in a new
// attempt. Both return what was paid and done. Calls and children of the new answer are not taken for those of the old
// one.
//
// # Spans
//
// With Config.Tracer a run makes spans by the conventions of OpenTelemetry for generative AI: invoke_agent, and below
// it chat and execute_tool, with models, usage, reasons, and ids; never what was said. Each run of the handler that
// calls something has its own invoke_agent. Recalled steps make no spans. A model that is [Described] is named.
//
// # What can go wrong, and what follows
//
//   - The process dies while the model answers, or before the answer is recorded. The next run asks again: tokens are
//     paid twice, and readers are told which frames are repeated. A recorded answer is never asked for again.
//   - The process dies after a tool had its effect and before that is recorded. The next run calls the tool again,
//     with the same [Call].Key.
//   - A drain, a lost lease or a cancellation ends the context, in mid-answer too. What the model or a tool returns
//     as an error then is not recorded.
//   - A tool fails. The model is told, and that is recorded. [EndsRun] and errors that say what follows
//     (handler.Permanent and the others) end the run instead.
//   - A tool panics. That is a panic of the handler: category handler_panic, retried by the policy.
//   - The model asks for a tool that does not exist, or with arguments that do not fit. It is told so; no function is
//     called, and nobody is asked.
//   - The model writes arguments to deceive the one who approves. The question shows control characters and signs
//     that turn the direction of writing as escapes, and says when it is cut. What is approved is what runs.
//   - A child fails, is cancelled or expires. The model is told. The process of the parent dies while children run:
//     they go on, and the next run waits for the same ones.
//   - A person changes the arguments to some that do not fit. The answer is refused. If one comes in nevertheless, by
//     another client, the model is told that it was rejected and why, and the tool does not run.
//   - Nobody approves. The run waits, holding nothing, until [Decision].Within is over; then the model is told, or what
//     [Decision].Over says.
//   - An answer is larger than about 240 KiB: a failure for good that names the limit of a step. A tool's result
//     above 240 KiB goes to the model as an error. Bytes of images and files count only without Config.Blobs, and
//     then end the run.
//   - The store of blobs is away. The attempt fails, and the policy decides. What it has lost, or damaged, ends the
//     run for good when a model would need it.
//   - A gate, or a share of one (flow.Share), refuses what an answer cost. The answer is not recorded. The run ends for
//     good, because a retry would pay for the answer again. With HardBlock the execution waits for more room instead,
//     and with HardAsk for a person, see handler.Task.SpendUsage.
//   - The conversation is too long although it was compacted, because the instructions, tools or last messages alone
//     are. There is no further summary until a quarter more was said. The service refuses what does not fit.
//   - The handler was changed. Recorded steps are used by their names, so a run goes on with the new tools and
//     instructions from where it was. A tool that newly needs approval asks about recorded calls, too.
package agent
