// Package httpapi is FlowFabric for everything that is no Go program: an [http.Handler] that speaks JSON and
// Server-Sent Events, over package client and package admin. It can do nothing that these cannot. The command
// "flowfabric serve" runs it.
//
//	h, err := httpapi.New(httpapi.Config{Admin: admin.New(c), Tokens: tokens})
//	http.ListenAndServe("127.0.0.1:7788", h)
//
// Its routes, and what they take and answer, are the OpenAPI 3.1 document that it serves at /v1/openapi.json.
//
// # Errors
//
// Every refusal is a problem document (RFC 9457, application/problem+json) whose code is the code of our error, as
// the reference of errors lists them. Nothing is half done. What the store cannot answer at the moment is 503 with
// Retry-After.
//
// # Who may do what
//
// [Config.Authorize] says who asks. A [Principal] has a [Role], which decides which routes it may use, and
// namespaces, which bound what it sees and changes: what lies in another namespace does not exist for it. Its name is
// noted with every change. [Tokens] are bearer tokens from a file; [Open] lets everybody do everything and is for a
// loopback address. A page in a browser gets a token of its own, for one execution and at most an hour, which reads, or
// sends messages, stops answers and answers questions as well (createStreamToken).
package httpapi
