// Package mcp puts kinds of work in front of clients of the Model Context Protocol: each becomes a tool. A call of
// the tool submits an execution, so it survives crashes, and a client that supports tasks may come back for it days
// later.
//
//	server, err := mcp.New(c, mcp.Config{Name: "publisher", Authorize: tokens.Authorize},
//		mcp.Tool(Write, "Writes an article about a topic."))
//	h, err := server.HTTP()      // streamable HTTP: mount it anywhere
//	err = server.Stdio(ctx)      // or speak to the process that started this one
//
// It is built on the official Go SDK, whose server is [Server.SDK]: add prompts, resources and other tools to that.
// The command flowfabric-mcp serves kinds that a file names, for those who have no Go program.
//
// # A call
//
//	client ── tools/call ──▶ check arguments against the schema ──▶ decode into In ──▶ client.Submit
//	       ◀─ progress ────── frames of the types token and progress (ProgressFrames) ◀── tail
//	       ◀─ a question ──── the execution is suspended, and the client can ask its user (elicitation)
//	       ◀─ result ──────── Out as structured content and as text; a failure as a tool error with our category
//
// A client that disconnects ends its wait and nothing else. The execution goes on, and its result is kept for
// [Config.Retention].
//
// # A task
//
// A client that declares the extension io.modelcontextprotocol/tasks in its request gets a task at once, unless the
// tool has [Tasks] of [TasksNever]. The task is the execution:
//
//	waiting, active, delayed …   working
//	suspended                    input_required, if this caller may answer; else working
//	completed                    completed, with the result
//	failed, expired, skipped     completed, with a result that is a tool error: the protocol wants that
//	failed by our machinery      failed, with a JSON-RPC error: a panic, an input that the handler cannot read, workers that die of it
//	cancelled                    cancelled
//
// The id of a task is the id of the execution and a MAC over it and the name of the caller. Nobody can guess it, and
// in the hands of another caller it names nothing. No state is held here: any process with the same [Config.TaskKey]
// and the same kinds answers for any task.
//
// # Questions
//
// What an execution waits for is an elicitation, a form: each open waitpoint with the choices of handler.Task.Ask, with
// the fields that [Waitpoint] declares for its key, or with one text; and so the mailbox of handler.Receive.
// Declining presses the choice named reject, if there is one. Dismissing a question leaves it open.
//
// Answers to waitpoints are delivered as client.Approve delivers them, under the name of the caller. So the caller's
// role must be operator or admin, as in the HTTP API; a producer's executions wait until somebody answers on another
// way. Messages are sent as client.Send sends them, also by producers: they are what the caller says to its own
// execution. A client with tasks may send one at any time: an answer in tasks/update whose key is "mailbox:" and the
// name. [AnsweredElsewhere] keeps all questions of a tool from its callers.
//
// # Turns
//
// With [Turns] a tool says that its handler runs an agent. The server then has four more tools, which stop an answer of
// a task that the caller has, have it made again, also to another message, and fork the task. What a turn is, and what
// becomes of tokens and effects, package agent says.
//
// # What can go wrong, and what follows
//
//   - The process dies during a call: the client sees a lost connection, and the execution goes on. A client with a
//     task asks any other process.
//   - The submit is not answered: the call is an error that says so. The execution may exist; a repeated call makes a
//     second one, so give the tool a key ([Submit] with a flowfabric.Key, or [Key]) where that matters. A client that
//     gives its calls keys itself ([Key]) has no such worry.
//   - The key of the task ids is lost: their tasks are not found any more. The executions go on.
//   - The store is away: calls wait, tasks/get answers an internal error; nothing is lost.
package mcp
