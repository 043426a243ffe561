// Package mcptools gives agents the tools of MCP servers (Model Context Protocol): programs that are started here, or
// services over HTTP.
//
//	pool, err := mcptools.New(mcptools.Config{},
//		mcptools.Server{Name: "files", Command: []string{"mcp-files", "/srv/docs"}},
//		mcptools.Server{Name: "tickets", URL: "https://tickets.example/mcp"})
//	defer pool.Close()
//	…
//	tools, err := pool.Tools(ctx, t) // in the handler
//	result, err := agent.Run(ctx, t, agent.Config{Model: model, Tools: tools, Prompt: question})
//
// It is built on the official Go SDK, and speaks every version of the protocol that the SDK does.
//
// # What is recorded
//
//   - The list of a server's tools, once for each execution: the step "mcp tools NAME". A later run of the handler sees
//     the same tools, whatever the server says by then. A tool that is gone, or takes other arguments, is an error to
//     the model at the call.
//   - Each call, like that of any tool. What was recorded is not called again. A call whose process died before that is
//     made again, with the same key: the server finds it in _meta of the request under [KeyName]. A server that looks
//     at it can make each call count once.
//   - The start of a task and its polls, see below.
//
// # Results
//
//	text                       a text
//	image                      an image
//	audio                      a file
//	embedded resource          a text, an image or a file
//	link to a resource         a text that names it
//	structuredContent          a text, its JSON, unless a text has the same already
//	isError                    a failed result, with the texts
//
// The limits of tools hold (agent.NewTool): 240 KiB as JSON, and bytes go to agent.Config.Blobs. A message of a server
// has at most 16 MiB; a longer one ends its session.
//
// # Tasks
//
// A server may answer a call with a task, for work that takes hours: by the extension io.modelcontextprotocol/tasks, or
// by the tasks of protocol 2025-11-25 for tools that support them. Both are used where the server has them,
// unless [Server].NoTasks is set. The start of the task is a step. Then the execution is suspended, holds neither a
// slot nor a request, and asks again after the server's poll interval, 1 s to 1 h. After ten polls the pauses grow
// by a quarter each, up to an hour, since a poll costs two of the steps of an execution. Calls of such tools come after
// the others of a turn, one after the other (agent.MaySuspend), also when the server answers at once.
//
// A task that wants input from a user is cancelled, and the model is told what it asked: an agent has no user at hand.
// So is a task while somebody stops the agent (agent.Stop), or an operator lets it go on without the result.
// When the execution is cancelled while it asks the server, the task is cancelled, too. An execution that is cancelled
// while it is suspended runs nothing any more, so its task continues until the server ends it.
//
// # What can go wrong, and what follows
//
//	the server refuses the call, or the tool fails    the model is told
//	no answer within CallTimeout                      the model is told that the call may have happened
//	the server is away, or dies during the call       the model is told; with RetryAway the attempt fails
//	it is away when its tools are listed              the attempt fails, category mcp_away
//	it is away when a task is polled                  the next poll asks again; after ten in a row, as in a call
//	a schema that cannot be checked                   the model gets it, and any object is accepted
//	a name that models do not take, or that is taken  it is replaced, see [Pool.Tools]
//
// Descriptions of tools reach the model as the server wrote them, cut to 8 KiB. Use [Server].Include and
// [Server].Options, for approvals, with servers that you do not trust.
package mcptools
