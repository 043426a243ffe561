package httpapi

// filters choose executions.
var filters = []param{
	{name: "namespace", text: "Default: the first of the token's, or default; * is all, for tokens that may see all",
		kind: "string"},
	{name: "state", text: "One or more states; failed also lists what timed out; ended and held as well. Default: all",
		kind: "string", list: true},
	{name: "lane", kind: "string"}, {name: "kind", kind: "string"},
	{name: "category", text: "One or more categories of failure", kind: "string", list: true},
	{name: "since", text: "From this time on: of the creation in lists in its order, else of the end of what ended",
		kind: "string"},
	{name: "until", text: "Before this time", kind: "string"},
	{name: "error", text: "Part of the error message", kind: "string"},
	{name: "shape",
		text: "Of a group of failures: its key, or the shape of its message. Without states: those that failed",
		kind: "string"},
	{name: "version",
		text: "Of the application, whose worker claimed last. Without states: those that have not ended",
		kind: "string"},
	{name: "tag", text: "key=value; all of them", kind: "string", list: true},
	{name: "flow", text: "Only members of this flow", kind: "string"},
	{name: "held_by", text: "A worker instance or session", kind: "string"},
	{name: "newest",
		text: "Newest first: by creation, or in other lists each state in reverse",
		kind: "boolean"},
}

// sharedHeader is that of routes whose answers may be shared.
var sharedHeader = []param{{name: "Cache-Control",
	text: "max-age=<seconds>, at most 20: an answer that somebody else got so long ago will do", kind: "string"}}

// paged are the parameters of a list that is read a page at a time.
var paged = []param{{name: "limit", text: "1..1000, default 100", kind: "integer"},
	{name: "cursor", text: "next_cursor of the page before", kind: "string"}}

var namespaced = []param{{name: "namespace", kind: "string"}}
