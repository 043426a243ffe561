// Package approval lets outsiders answer a waitpoint over HTTP: people on a page that a link opens, and programs with
// JSON. The token in the link is the whole right to answer.
//
//	handler.Task.Pending ── token ──▶ Link ── mail ──▶ GET: the page, which changes nothing
//	                                                │ click (form), or a program's JSON
//	                                                ▼
//	                              New's handler ── signal ──▶ store ──▶ the wait returns the answer
//
//	mux.Handle("/answers", approval.New(approval.Config{Deliver: c})) // c is a *client.Client
//
// A program posts JSON to the same link. name is the choice, and payload is what the wait decodes, here a
// suspend.Answer:
//
//	{"name": "approve", "payload": {"choice": "approve", "comment": "ship it"}}
//
// The store alone judges a token. A forged or expired one is answered with the same bytes as none, so a caller learns
// nothing. When the store is away, a POST is answered with 503 and nothing is known to have been done; the link works
// again later. The second decision on a waitpoint changes nothing and is told which one stands.
package approval
