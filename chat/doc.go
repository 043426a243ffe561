// Package chat puts front ends for people on agents: any that speaks the AI SDK's UI message stream or AG-UI, with no
// code of this library in the browser.
//
//	page ── POST / ──▶ Handler ── Send ──▶ execution: Run ── the agent ── its frames ┐
//	     ◀── stream ──         ◀───────────────── one tail, one fold ◀───────────────┘
//	other tabs ── GET /{id}/stream, /{id}/watch ──▶ the same
//
// A conversation is one execution, found by the key of its owner and the application's own name for it. What was said
// is in its steps, its frames and its input, and nowhere else; so a worker, a web server or a browser that dies in
// mid-word loses nothing that was recorded. The worker:
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
// All are below the mount point; {id} is the application's name of a conversation, 1..128 bytes of UTF-8 without
// control characters, not "." nor "..", which the front end chooses. What another owner began is not there.
//
//	POST   /                  AI SDK: a message, an edit, another answer, decisions; answers with the stream
//	POST   /agui              the same for AG-UI
//	GET    /                  the owner's conversations: ?limit=1..1000 (100), ?cursor= as next says
//	GET    /{id}              id, title, state (idle, answering, asking, ended), messages as UI messages
//	PATCH  /{id}              {"title": …}: at most 256 bytes; first it is the beginning of the first message
//	DELETE /{id}              ends it and forgets all of it; again is no error
//	GET    /{id}/stream       the message that is being answered, from its beginning, or behind ?after= or
//	                          Last-Event-ID; 204 if nothing is, or nobody has said anything yet
//	GET    /{id}/watch        server-sent events {"messages", "busy", "state", "asks"} whenever something has changed
//	POST   /{id}/stop         ends the answer in mid-word: {"stopped": false} if there was nothing to stop
//	POST   /{id}/answer       {"approvalId", "approved", "reason", "arguments"}, or {"id", "choice", "comment"}
//	GET    /{id}/files/{ref}  an image or a file of a message
//
// A list is made by tags (chat.owner, chat.id, chat.title), for which there is no index yet: a page looks at up to
// 10,000 executions of the kind. Within a page the newest come first. Who may list executions sees tags, viewers of the
// HTTP API too, and a function that redacts does not get them: the title is the beginning of the first message, unless
// Begin gives another one. A client with a cipher encrypts it, and it has less room then; owner and id stay readable.
//
// # What a front end sends
//
// The server's history is the truth. A front end may send all that it has, or the newest message alone. Its id is the
// key of the message: a POST that comes again sends nothing, and gets the answer. A message whose id the server knows,
// with other words, and named by messageId, is an edit: its answer, and all that came after, is dropped. A history that
// only lacks what other tabs have said is no other one. Any other difference is refused, or is taken as an edit
// ([EditHistory]).
//
// Answers of the current link of a conversation can be made again, see [Run]; older ones answer 409. One that is being
// made is followed, and stopped before an edit. A message to a conversation that has failed, expired or ended because
// nobody wrote brings it back, and so does who wants another answer there. One that was cancelled has ended: 410.
//
// # Errors
//
// A refusal is a problem document (RFC 9457) with a code and a text that names the field and its limit:
//
//	400 invalid_input           413 payload_too_large         503 the store does not answer
//	401 unauthorized            403 cross_origin              404 conversation_unknown, message_unknown, …
//	409 history_differs         the front end's history is not the server's: read it again
//	409 answer_too_old          it lies in an earlier link, and cannot be made again
//	409 answer_not_ready        it is not recorded yet: try again
//	409 already_answered        somebody has decided otherwise
//	409 interrupts_pending      people are asked, and messages do not end that (agent.Interrupt)
//	410 conversation_ended      it was cancelled, or brought back too often
//	422 arguments_refused       the decision, or the arguments that a person has changed, do not fit the question
//	429 limit_reached           1,000 messages, or 1 MiB of them, were not heard yet
//
// What failed inside is in the log; people see "An error occurred.", or what Config.ShowError says.
//
// # What can go wrong, and what follows
//
//   - The browser goes away. Nothing stops; the next one resumes.
//   - The worker dies in mid-word. Its stream ends without finish, behind an abort; who resumes gets the same message
//     from its beginning, as another worker says it.
//   - The web server dies in mid-word. Another one, or the same one started again, goes on with the stream.
//   - Two tabs begin a conversation, send or stop at once. There is one conversation, all messages are heard in the
//     order in which they came, and each stop ends at most one turn.
//   - A person decides what another one has decided. The same decision is no error, another one is told who was first.
//   - A slow reader holds up nobody, and is cut off when it takes nothing for 30 s.
//   - A page of another origin sends a request with the person's cookies. It is refused (Config.CrossOrigin).
package chat
