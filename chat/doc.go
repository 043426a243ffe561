// Package chat connects chat front ends to agents: any that speaks the AI SDK's UI message stream or AG-UI. The browser
// needs no code of this library.
//
//	page ── POST / ──▶ Handler ── Send ──▶ execution: Run ── the agent ── its frames ┐
//	     ◀── stream ──         ◀───────────────── one tail, one fold ◀───────────────┘
//	other tabs ── GET /{id}/stream, /{id}/watch ──▶ the same
//
// A conversation is one execution. Its key is made of the owner and the application's own name for it. Everything that
// was said is in its steps, its frames and its input, and nowhere else. So if a worker, a web server or a browser dies
// in the middle of an answer, nothing that was recorded is lost. The worker:
//
//	var Talk = handler.Define[chat.Conversation, agent.Result]("talk", handler.MaxReplays(1000))
//
//	func talk(ctx context.Context, t *handler.Task, in chat.Conversation) (agent.Result, error) {
//		return chat.Run(ctx, t, in, agent.Config{Model: model, Tools: tools})
//	}
//
// The web server, which may be another process:
//
//	h, err := chat.New(c, Talk, chat.Config{Who: whoIsLoggedIn})
//	mux.Handle("/api/chat/", http.StripPrefix("/api/chat", h))
//	mux.Handle("/api/chat", http.StripPrefix("/api/chat", h))
//
// # Routes
//
// All are below the mount point. {id} is the application's name of a conversation, which the front end chooses: 1..128
// bytes of UTF-8 without control characters, not "." nor "..". A conversation of another owner answers 404.
//
//	POST   /                  AI SDK: a message, an edit, another answer, decisions; answers with the stream
//	POST   /agui              the same for AG-UI
//	GET    /                  the owner's conversations: ?limit=1..1000 (100), ?cursor= as next says
//	GET    /{id}              id, title, state (idle, answering, asking, ended), messages as UI messages
//	PATCH  /{id}              {"title": …}: at most 256 bytes; the default is the beginning of the first message
//	DELETE /{id}              cancels and deletes it; idempotent
//	GET    /{id}/stream       the answer in progress, from its beginning, or from behind ?after= or Last-Event-ID;
//	                          204 if there is none, or the conversation has not begun
//	GET    /{id}/watch        server-sent events {"messages", "busy", "state", "asks"} for each change
//	POST   /{id}/stop         stops the answer in progress: {"stopped": false} if there was none
//	POST   /{id}/answer       {"approvalId", "approved", "reason", "arguments"}, or {"id", "choice", "comment"}
//	GET    /{id}/files/{ref}  an image or a file of a message
//
// Lists are made from tags (chat.owner, chat.id, chat.title), which have no index yet: a page looks at up to 10,000
// executions of the kind. Within a page the newest come first. Everybody who may list executions sees tags, also
// viewers of the HTTP API, and a function that redacts does not get them. The title is the beginning of the first
// message, unless Begin sets another one. A client with a cipher encrypts titles, and then they have less room; owner
// and id stay readable.
//
// # What a front end sends
//
// The server's history is the truth. A front end may send its whole history, or the newest message alone. The id of a
// message is its idempotency key: a repeated POST sends nothing, and gets the answer.
//
//   - Known id, other text, and the request names it in messageId: an edit. Its answer, and everything after it, is
//     dropped.
//   - The history only lacks messages that other tabs have sent: accepted.
//   - Any other difference is refused, or is taken as an edit (Config.EditHistory).
//
// Answers of the current link of a conversation can be regenerated, see [Run]; earlier ones answer 409. A request to
// regenerate an answer in progress follows that answer, and an edit stops it first. If a conversation has failed,
// expired or ended because nobody wrote, a message or a request to regenerate replays it. A cancelled one has ended for
// good: 410.
//
// # Errors
//
// A refusal is a problem document (RFC 9457) with a code and a text that names the field and its limit:
//
//	400 invalid_input           413 payload_too_large         503 the store does not answer
//	401 unauthorized            403 cross_origin              404 conversation_unknown, message_unknown, …
//	409 history_differs         the front end's history is not the server's: read it again
//	409 answer_too_old          it is in an earlier link, and cannot be regenerated
//	409 answer_not_ready        it is not recorded yet: try again
//	409 already_answered        another person has decided differently
//	409 interrupts_pending      people are asked, and messages do not end that (agent.Interrupt)
//	410 conversation_ended      it was cancelled, or replayed too often
//	422 arguments_refused       the decision, or the changed arguments, do not fit the question
//	429 limit_reached           1,000 messages, or 1 MiB of them, are waiting for the agent
//
// Internal failures are in the log; people see "An error occurred.", or the text of Config.ShowError.
//
// # What can go wrong, and what follows
//
//   - The browser closes. The answer continues; the next request resumes it.
//   - The worker dies during an answer. The stream ends with an abort and without a finish. A client that resumes gets
//     the same message from its beginning, as another worker makes it.
//   - The web server dies during an answer. Another one, or the same one after a restart, continues the stream.
//   - Two tabs begin a conversation, send or stop at the same time. There is one conversation, the agent gets all
//     messages in the order in which they came, and each stop ends at most one turn.
//   - Two people decide the same question. The same decision is no error; a different one is told who was first.
//   - A slow reader does not delay others. Its stream is closed when it takes nothing for 30 s.
//   - A page of another origin sends a request with the person's cookies. It is refused (Config.CrossOrigin).
package chat
