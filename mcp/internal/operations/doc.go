// Package operations serves the HTTP API's reads and changes of a running system as tools of the Model Context
// Protocol, so that an assistant can operate it.
//
// Nothing about a tool is written here but its place in the table: its name, schema, path and text come from the
// OpenAPI document of the API, and /v1/me says which operations the token may use. A rule that the API has holds here,
// because every call is a request of the API.
//
//	assistant ── tools/call ──▶ check arguments ──▶ a change: ask its user ──▶ request of the API
//	          ◀─ one line of JSON between <data> tags, 24 KiB at a time ◀── answer
//
// What the store holds was written by programs and people, and may hold instructions to the assistant. The server
// follows none: a call makes the one request that its name says. The answer marks such text as data, and the text
// cannot end the mark, hide behind invisible characters, or begin a line.
//
// A change needs the consent of a person. A client that can show a form is asked, whatever the arguments say. For any
// other client the argument confirm must be true.
package operations
