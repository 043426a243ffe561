package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/words"
	"github.com/flowfabric/flowfabric-go/stream"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// route is one operation: how it is called, who may, what it takes and answers, and what does it. The mux and the
// OpenAPI document are made of the same table.
type route struct {
	method, path string // the path may end in an action: /v1/executions/{id}:cancel
	name         string // operationId
	summary      string
	need         need
	query        []param
	headers      []param
	body         reflect.Type // nil: none
	answers      []answer
	shared       bool // an answer may be given to others who ask the same a moment later
	streamToken  bool // a stream token of the execution will do, too
	handle       func(*call) error
}

// globals are where the paths of what belongs to no namespace begin.
var globals = []string{"/v1/budgets", "/v1/quotas", "/v1/limits", "/v1/gates", "/v1/doctor", "/v1/partitions", "/v1/token-keys",
	"/v1/schedule-owners", "/v1/workers/{session}:mark-dead"}

// global tells whether a token that is bound to namespaces is refused.
func (r *route) global() bool {
	return slices.ContainsFunc(globals, func(p string) bool { return strings.HasPrefix(r.path, p) })
}

// param is a parameter of a query, or a header.
type param struct {
	name, text string
	kind       string // of JSON Schema: string, integer, boolean
	list       bool   // may be there more than once
}

// answer is one that is no problem.
type answer struct {
	status int
	text   string
	body   reflect.Type // nil: none
	media  string       // default application/json
	also   []string     // other media types, whose content is text
}

func of[T any]() reflect.Type { return reflect.TypeFor[T]() }

func ok[T any](text string) []answer {
	return []answer{{status: http.StatusOK, text: text, body: of[T]()}}
}

// done is the answer of a change.
var done = []answer{{status: http.StatusNoContent, text: "Done (idempotent)."}}

// reasoned is the query of a change that has no body.
var reasoned = []param{{name: "reason", text: "The audit trail keeps 512 bytes of it", kind: "string"}}

// act is a change of one execution by an operator.
func act[Body any](action, name, summary string, who need, do func(*call, *Body) error) *route {
	return &route{method: http.MethodPost, path: "/v1/executions/{id}:" + action, name: name, summary: summary,
		need: who, body: of[Body](), answers: done,
		handle: func(c *call) error {
			var body Body
			if err := c.body(&body); err != nil {
				return err
			}
			if err := do(c, &body); err != nil {
				return err
			}
			c.w.WriteHeader(http.StatusNoContent)
			return nil
		}}
}

// filters choose executions.
var filters = []param{
	{name: "namespace", text: "Default: the first of the token's, or default; * is all, for tokens that may see all",
		kind: "string"},
	{name: "state", text: "One or more states; failed also lists what timed out; ended and held as well. Default: all",
		kind: "string", list: true},
	{name: "lane", kind: "string"}, {name: "kind", kind: "string"},
	{name: "category", text: "One or more categories of failure", kind: "string", list: true},
	{name: "since", text: "From this time on: of the end of what ended, else of the creation", kind: "string"},
	{name: "until", text: "Before this time", kind: "string"},
	{name: "error", text: "Part of the error message", kind: "string"},
	{name: "tag", text: "key=value; all of them", kind: "string", list: true},
	{name: "flow", text: "Only members of this flow", kind: "string"},
	{name: "held_by", text: "A worker instance or session", kind: "string"},
	{name: "newest", text: "From the other end of each state: failed, cancelled, expired and skipped ones by their end, or by their purge when completed ones are listed, too", kind: "boolean"},
}

// sharedHeader is that of routes whose answers may be shared.
var sharedHeader = []param{{name: "Cache-Control",
	text: "max-age=<seconds>, at most 5: an answer that somebody else got so long ago will do", kind: "string"}}

var namespaced = []param{{name: "namespace", kind: "string"}}

// routes are all of them, but for /metrics.
var routes = []*route{
	{method: http.MethodPost, path: "/v1/executions", name: "submit", summary: "Create an execution", need: producer,
		body: of[submission](), headers: keyParam,
		answers: []answer{{status: http.StatusCreated, text: "It was created.", body: of[submitted]()},
			{status: http.StatusOK, text: "Its key led to an execution that existed.", body: of[submitted]()}},
		handle: (*call).submit},
	{method: http.MethodPost, path: "/v1/executions:batch", name: "submitBatch",
		summary: "Create up to 1,000 executions, each on its own", need: producer, body: of[batch](),
		answers: ok[batchAnswer]("What became of each, in the order of the items."), handle: (*call).submitBatch},
	{method: http.MethodGet, path: "/v1/executions", name: "listExecutions",
		summary: "List executions, a page at a time", need: viewer, shared: true, headers: sharedHeader,
		query: slices.Concat(filters, []param{{name: "limit", text: "1..1000, default 100", kind: "integer"},
			{name: "cursor", text: "next_cursor of the page before", kind: "string"}}),
		answers: ok[executionPage]("A page. It may be short, or empty, and have a next one."), handle: (*call).list},
	{method: http.MethodGet, path: "/v1/executions/{id}", name: "getExecution", summary: "Read an execution",
		need: viewer, answers: ok[flowfabric.Snapshot]("A consistent snapshot."), handle: (*call).get},
	{method: http.MethodGet, path: "/v1/executions/{id}/input", name: "getInput",
		summary: "Read what an execution was submitted with", need: viewer,
		answers: ok[flowfabric.Payload]("The input."),
		handle:  (*call).input},
	{method: http.MethodGet, path: "/v1/executions/{id}/result", name: "getResult",
		summary: "Read how an execution ended, or wait for it", need: viewer, headers: []param{
			{name: "Prefer", text: "wait=<seconds>, at most 60: answer as soon as it has ended", kind: "string"}},
		answers: []answer{{status: http.StatusOK, text: "It has ended.", body: of[result]()},
			{status: http.StatusAccepted, text: "It has not ended yet.", body: of[unfinished]()}},
		handle: (*call).result},
	{method: http.MethodGet, path: "/v1/executions/{id}/history", name: "getHistory",
		summary: "Read what happened to an execution, oldest first", need: viewer, answers: ok[history]("Its history."),
		handle: (*call).history},
	{method: http.MethodGet, path: "/v1/executions/{id}/why", name: "explain",
		summary: "Say why an execution is where it is, and what moves it", need: viewer,
		answers: ok[flowfabric.Explanation]("An explanation in a sentence."), handle: (*call).why},
	{method: http.MethodGet, path: "/v1/executions/{id}/wait", name: "getWait",
		summary: "Read what an execution waits for now, with its question", need: viewer,
		answers: []answer{{status: http.StatusOK, text: "Its wait.", body: of[admin.Approval]()},
			{status: http.StatusNoContent, text: "It waits for nothing."}}, handle: (*call).wait},
	{method: http.MethodGet, path: "/v1/executions/{id}/waitpoints", name: "listWaitpoints",
		summary: "List what an execution waits for, or waited for", need: viewer,
		answers: ok[waitpointList]("Its waitpoints."), handle: (*call).waitpoints},
	{method: http.MethodGet, path: "/v1/executions/{id}/steps", name: "listSteps",
		summary: "List the recorded steps of an execution, and those that failed", need: viewer,
		answers: ok[stepList]("Its steps, what ended first at the beginning."), handle: (*call).steps},
	{method: http.MethodGet, path: "/v1/executions/{id}/steps/{key}", name: "getStep",
		summary: "Read the value that a step recorded", need: viewer, answers: ok[flowfabric.Payload]("The value."),
		handle: (*call).stepValue},
	{method: http.MethodGet, path: "/v1/executions/{id}/messages", name: "listMessages",
		summary: "List messages to an execution that nobody has received yet", need: viewer,
		query:   []param{{name: "after", text: "Those behind this number; default from the first", kind: "integer"}},
		answers: ok[client.Mailboxes]("How many there are, and a page of them."), handle: (*call).messages},
	{method: http.MethodPost, path: "/v1/executions/{id}/messages", name: "sendMessage",
		summary: "Send a message to a mailbox of an execution", need: producer, body: of[messageBody](),
		headers: keyParam,
		answers: ok[client.Sent]("It was accepted, or had been before."), handle: (*call).sendMessage},
	{method: http.MethodGet, path: "/v1/executions/{id}/summary", name: "getSummary",
		summary: "Read the summary document of the newest attempt", need: viewer,
		answers: ok[stream.Summary]("The document; version 0 if there is none."), handle: (*call).summary},
	{method: http.MethodGet, path: "/v1/executions/{id}/frames", name: "listFrames",
		summary: "Read stored frames of one attempt, a page at a time", need: viewer,
		query: []param{{name: "attempt", text: "1 for the first, which is the default", kind: "integer"},
			{name: "after", text: "next_cursor of the page before", kind: "string"},
			{name: "limit", text: "1..1000, default 100", kind: "integer"}},
		answers: ok[framePage]("A page. After the last one comes an empty page."), handle: (*call).frames},
	{method: http.MethodGet, path: "/v1/executions/{id}/events", name: "followExecution",
		summary: "Follow an execution live (Server-Sent Events)", need: viewer, streamToken: true,
		query: []param{{name: "after", text: "The id of the last event seen; Last-Event-ID comes before it",
			kind: "string"},
			{name: "attempt", text: "Only this attempt, 1 for the first", kind: "integer"},
			{name: "from_now", text: "Leave out what is stored", kind: "boolean"},
			{name: "durable", text: "Leave out frames that were not meant to last", kind: "boolean"}},
		headers: []param{{name: "Last-Event-ID", text: "The id of the last event seen", kind: "string"}},
		answers: []answer{{status: http.StatusOK,
			text: "Events until the execution has ended; the data of each is one JSON object.",
			body: of[stream.TailEvent](), media: "text/event-stream"},
			{status: http.StatusNoContent, text: "There is nothing after that event: a browser stops here."}},
		handle: (*call).events},
	{method: http.MethodGet, path: "/v1/executions/{id}/stream", name: "readStream",
		summary: "Read an execution's output with the Durable Streams protocol; HEAD tells where it ends", need: viewer,
		streamToken: true,
		query: []param{{name: "as",
			text: "What a message is: events (default), as of followExecution; json, the value of each frame; text or bytes, the payloads of the frames, joined", kind: "string"},
			{name: "offset", text: "Stream-Next-Offset of the read before; -1 is the beginning, which is the default; now is the end", kind: "string"},
			{name: "live", text: "long-poll waits up to 20 s; sse goes on for a minute", kind: "string"},
			{name: "cursor", text: "Stream-Cursor of the live read before", kind: "string"}},
		headers: []param{{name: "If-None-Match", text: "The ETag of such a read", kind: "string"}},
		answers: []answer{{status: http.StatusOK,
			text: "What is there, with the headers of the protocol: Stream-Next-Offset, Stream-Up-To-Date, Stream-Closed, Stream-Cursor. As json an array of any values.", body: of[[]stream.TailEvent](),
			also: []string{"text/plain", "application/octet-stream", "text/event-stream"}},
			{status: http.StatusNoContent, text: "A long poll ended without anything new."},
			{status: http.StatusNotModified, text: "It is as it was."}},
		handle: (*call).durableStream},
	{method: http.MethodPost, path: "/v1/executions/{id}/stream-token", name: "createStreamToken",
		summary: "Make a token that lets a browser follow this execution", need: viewer,
		body: of[streamTokenRequest](), answers: []answer{{status: http.StatusCreated,
			text: "Pass it as access_token to the events of this execution.", body: of[streamTokenAnswer]()}},
		handle: (*call).makeStreamToken},
	act("cancel", "cancel", "End an execution in any state", producer, func(c *call, b *why) error {
		return c.change(b, c.h.client.Cancel)
	}),
	act("replay", "replay", "Run an ended execution again", operator, (*call).replay),
	act("revoke", "revoke", "Take an execution from the worker that has it", operator, (*call).revoke),
	act("hold", "hold", "Keep an execution from being handed out", operator, func(c *call, b *why) error {
		return c.change(b, c.h.admin.Hold)
	}),
	act("unhold", "unhold", "Hand an execution out again", operator, func(c *call, b *why) error {
		return c.change(b, c.h.admin.Unhold)
	}),
	act("resume", "resume", "Let a suspended execution go on without an answer", operator, (*call).resume),
	act("run-now", "runNow", "Let a delayed execution run at once, also during a retry's pause", operator,
		func(c *call, b *why) error { return c.change(b, c.h.admin.RunNow) }),
	act("delay", "setDelay", "Change until when an execution is delayed", operator, (*call).setDelay),
	act("priority", "setPriority", "Change the priority of an execution", operator, (*call).setPriority),
	act("tags", "setTags", "Set and remove tags of an execution", operator, (*call).setTags),
	act("purge", "purge", "Remove an ended execution for good", root, (*call).purge),
	{method: http.MethodPost, path: "/v1/executions/{id}/waitpoints/{key}:answer", name: "answerWaitpoint",
		summary: "Answer a waitpoint on your own word", need: operator, body: of[reply](), headers: keyParam,
		answers: ok[suspend.Delivered]("It was delivered, or had been before."), handle: (*call).answer},
	{method: http.MethodPost, path: "/v1/signals", name: "signal",
		summary: "Send a signal with the token of its waitpoint", need: producer, body: of[signal](),
		headers: keyParam,
		answers: ok[suspend.Delivered]("It was delivered, or had been before."), handle: (*call).signal},
	{method: http.MethodPost, path: "/v1/executions:bulk", name: "bulk",
		summary: "Do something to every execution that a filter matches", need: operator, query: filters,
		body: of[bulkBody](),
		answers: ok[admin.BulkResult](
			"What was done within about 20 seconds. With a cursor there is more: repeat the request with it."),
		handle: (*call).bulk},
	{method: http.MethodGet, path: "/v1/executions/{id}/transcript", name: "getTranscript",
		summary: "Read what an execution has put out, as it stands now", need: viewer,
		answers: ok[transcript](
			"Frames of all attempts, without what was repeated; position is where its events go on."),
		handle: (*call).transcript},
	{method: http.MethodGet, path: "/v1/approvals", name: "listApprovals",
		summary: "List open waits of suspended executions, the oldest first", need: viewer, shared: true,
		headers: sharedHeader,
		query: []param{{name: "namespace", kind: "string"}, {name: "lane", kind: "string"},
			{name: "kind", kind: "string"},
			{name: "assignee", text: "Only what asks them", kind: "string"}, {name: "limit", text: "1..100, default 50",
				kind: "integer"}, {name: "cursor", text: "next_cursor of the page before", kind: "string"}},
		answers: ok[approvalPage]("A page."), handle: (*call).approvals},
	{method: http.MethodGet, path: "/v1/events", name: "followEvents",
		summary: "Follow what happens to all executions (Server-Sent Events)", need: viewer,
		query: []param{{name: "namespace", kind: "string"}, {name: "lane", kind: "string"},
			{name: "kind", kind: "string"},
			{name: "tag", text: "key=value; all of them", kind: "string", list: true},
			{name: "leases", text: "Also changes of state that are no end", kind: "boolean"},
			{name: "signals", text: "Also accepted signals", kind: "boolean"},
			{name: "after", text: "The id of the last event seen", kind: "string"}},
		headers: []param{{name: "Last-Event-ID", text: "The id of the last event seen", kind: "string"}},
		answers: []answer{{status: http.StatusOK,
			text: "Ends, and what else was asked for. An id comes about once a second: who resumes may see the events since then again.",
			body: of[flowfabric.FeedEvent](), media: "text/event-stream"}},
		handle: (*call).happenings},
	{method: http.MethodPost, path: "/v1/flows", name: "submitFlow",
		summary: "Create a flow: executions that depend on each other", need: producer, body: of[flowBody](),
		headers: keyParam,
		answers: []answer{{status: http.StatusCreated, text: "It was created.", body: of[flowMade]()},
			{status: http.StatusOK, text: "Its key led to a flow that existed.", body: of[flowMade]()}},
		handle: (*call).submitFlow},
	{method: http.MethodGet, path: "/v1/flows", name: "listFlows", summary: "List flows, the newest first",
		need: viewer, shared: true, headers: sharedHeader, query: []param{{name: "namespace", kind: "string"},
			{name: "kind", kind: "string"}, {name: "state", text: "One or more states", kind: "string", list: true},
			{name: "oldest", text: "From the other end", kind: "boolean"},
			{name: "limit", text: "1..1000, default 100", kind: "integer"},
			{name: "cursor", text: "next_cursor of the page before", kind: "string"}},
		answers: ok[flowPage]("A page."), handle: (*call).flows},
	{method: http.MethodGet, path: "/v1/flows/{id}", name: "getFlow",
		summary: "Read a flow and its graph: the nodes, and what each depends on", need: viewer,
		answers: ok[client.FlowSnapshot]("The flow."), handle: (*call).flow},
	{method: http.MethodGet, path: "/v1/flows/{id}/graph", name: "getFlowGraph", summary: "Draw a flow (Mermaid)",
		need: viewer, answers: []answer{{status: http.StatusOK, text: "A flowchart.", media: "text/vnd.mermaid"}},
		handle: (*call).graph},
	{method: http.MethodPost, path: "/v1/flows/{id}/nodes", name: "addToFlow",
		summary: "Add nodes to a flow that was submitted open", need: producer, body: of[nodesBody](),
		answers: ok[flowMade](
			"The flow has them. Those that it had before, with the same kind and input, are left alone."),
		handle: (*call).addToFlow},
	{method: http.MethodPost, path: "/v1/flows/{id}:cancel", name: "cancelFlow", summary: "Cancel a flow",
		need: producer, body: of[flowCancel](), answers: ok[client.FlowCancellation]("It is cancelled, or was before."),
		handle: (*call).cancelFlow},
	{method: http.MethodPost, path: "/v1/flows/{id}:replay", name: "replayFlow",
		summary: "Run what did not succeed of a flow again", need: operator, body: of[flowReplay](),
		answers: ok[admin.FlowReplayed]("What will run."), handle: (*call).replayFlow},
	{method: http.MethodPost, path: "/v1/flows/{id}:seal", name: "sealFlow", summary: "End the growth of a flow",
		need: operator, body: of[why](), answers: done, handle: (*call).sealFlow},
	{method: http.MethodPost, path: "/v1/flows/{id}:tags", name: "setFlowTags",
		summary: "Set and remove tags of a flow", need: operator, body: of[tagsBody](), answers: done,
		handle: (*call).setFlowTags},
	{method: http.MethodPost, path: "/v1/lanes/{key}:set", name: "setLane",
		summary: "Pause, drain, close or open a lane", need: operator, body: of[laneBody](), answers: done,
		handle: (*call).setLane},
	{method: http.MethodPost, path: "/v1/workers", name: "openWorker", summary: "Open a session of a worker",
		need: takes, body: of[workerBody](), answers: []answer{{status: http.StatusCreated, text: "It is open.",
			body: of[workerOpened]()}}, handle: (*call).openWorker},
	{method: http.MethodPost, path: "/v1/workers/{session}:claim", name: "claim",
		summary: "Take work, or wait for some", need: takes, body: of[claimBody](),
		answers: ok[claimAnswer](
			"What was taken, each with a lease of its own. Run it, renew its lease meanwhile, and settle it."),
		handle: (*call).claimWork},
	{method: http.MethodPost, path: "/v1/workers/{session}:renew", name: "renew",
		summary: "Renew the leases of what is still worked on", need: takes, body: of[leasesBody](),
		answers: ok[leasesAnswer]("Which are held. One that is not is somebody else's by now, or nobody's."),
		handle:  (*call).renewWork},
	work("frames", "appendFrames", "Append output frames to the stream of an attempt", "They are stored.",
		(*call).appendFrames),
	work("step", "recordStep", "Record the value of a step, so that later runs do not repeat it", "It is recorded.",
		(*call).recordStep),
	work("progress", "reportProgress", "Say how far it is", "", (*call).reportProgress),
	work("spend", "spend", "Count what was used of a budget", "What the budget says to it.", (*call).spend),
	work("waitpoint", "openWaitpoint", "Open a waitpoint before waiting for it, and get its token",
		"The token, to be handed out.", (*call).openWaitpoint),
	work("close-waitpoint", "closeWaitpoint", "Close a waitpoint that nothing waits for: its token is dead",
		"It is closed.", (*call).closeWaitpoint),
	work("receive", "receiveMessages", "Take messages of a mailbox, and record that",
		"What was taken now, or under this number before.", (*call).receive),
	work("suspend", "suspend", "Wait for signals, an approval, a message or a time", "It waits, or need not.",
		(*call).suspendWork),
	work("children", "waitChildren", "Make children and wait for them", "It waits, or need not.", (*call).waitChildren),
	work("complete", "complete", "End an execution with a result", "It has completed.", (*call).complete),
	work("fail", "fail", "End an attempt that failed", "What follows.", (*call).failWork),
	work("delay", "delay", "Put an execution aside for a while", "It goes on later, as the same attempt.",
		(*call).delayWork),
	work("continue", "continueWork", "Start an execution anew with another input", "It waits for its next attempt.",
		(*call).continueWork),
	work("cancel", "cancelWork", "End an execution as cancelled", "It is cancelled.", (*call).cancelWork),
	work("release", "release", "Give an execution back, so that another worker takes it", "It waits again.",
		(*call).releaseWork),
	{method: http.MethodPost, path: "/v1/workers/{session}:close", name: "closeWorker",
		summary: "End a session, and give back what it still has", need: takes, body: of[closeBody](),
		answers: done, handle: (*call).closeWorker},
	{method: http.MethodPost, path: "/v1/workers/{session}:mark-dead", name: "markWorkerDead",
		summary: "Declare a worker dead and requeue its work", need: operator, body: of[why](),
		answers: ok[markedDead]("It is given up."), handle: (*call).markDead},
	{method: http.MethodGet, path: "/v1/schedules", name: "listSchedules", summary: "List schedules", need: viewer,
		query: pages, answers: ok[scheduleList]("Schedules that you may see, by name."), handle: (*call).schedules},
	{method: http.MethodGet, path: "/v1/schedules/{key}", name: "getSchedule", summary: "Read a schedule", need: viewer,
		query:   []param{{name: "next", text: "How many of the runs to come are told, 0..1000, default 5", kind: "integer"}},
		answers: ok[admin.ScheduleInfo]("The schedule."), handle: (*call).getSchedule},
	{method: http.MethodPut, path: "/v1/schedules/{key}", name: "putSchedule", summary: "Create or change a schedule",
		need: operator, body: of[schedulePut](), answers: ok[client.ScheduleSet]("It is as the body says."),
		handle: (*call).putSchedule},
	{method: http.MethodPut, path: "/v1/schedule-owners/{key}", name: "syncSchedules",
		summary: "Declare all schedules of an owner: create, change and remove what differs", need: operator,
		body: of[ownedBody](), answers: ok[client.ScheduleSync]("What was done, by name."), handle: (*call).syncSchedules},
	{method: http.MethodPost, path: "/v1/schedules/{key}:pause", name: "pauseSchedule", summary: "Pause a schedule",
		need: operator, body: of[why](), answers: done, handle: (*call).pauseSchedule},
	{method: http.MethodPost, path: "/v1/schedules/{key}:resume", name: "resumeSchedule", summary: "Resume a schedule",
		need: operator, body: of[why](), answers: done, handle: (*call).resumeSchedule},
	{method: http.MethodDelete, path: "/v1/schedules/{key}", name: "removeSchedule", summary: "Remove a schedule",
		need: operator, query: reasoned, answers: done, handle: (*call).removeSchedule},
	{method: http.MethodGet, path: "/v1/budgets", name: "listBudgets", summary: "List budgets", need: viewer,
		query: pages, answers: ok[budgetList]("Budgets, by name."), handle: (*call).budgets},
	{method: http.MethodGet, path: "/v1/budgets/{key}", name: "getBudget", summary: "Read a budget", need: viewer,
		answers: ok[admission.BudgetRecord]("With what happened to it, and who used of it last."),
		handle:  (*call).budget},
	{method: http.MethodPut, path: "/v1/budgets/{key}", name: "putBudget", summary: "Create or change a budget",
		need: operator, body: of[budgetBody](), answers: ok[admission.BudgetRecord]("It is as the body says."),
		handle: (*call).putBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:ensure", name: "ensureBudget",
		summary: "Make a budget if there is none of its name, and leave one that is there as it is", need: operator,
		body: of[budgetEnsure](), answers: []answer{{status: http.StatusCreated, text: "It was made.",
			body: of[admission.BudgetRecord]()}, {status: http.StatusOK, text: "It was there, and is as it was.",
			body: of[admission.BudgetRecord]()}},
		handle: (*call).ensureBudget},
	{method: http.MethodDelete, path: "/v1/budgets/{key}", name: "removeBudget", summary: "Remove a budget",
		need: operator, query: reasoned, answers: done, handle: (*call).removeBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:adjust", name: "adjustBudget",
		summary: "Correct what was used of a budget", need: operator, body: of[adjustBody](),
		answers: ok[adjusted]("What was used then, of the dimensions that were corrected."),
		handle:  (*call).adjustBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:reset", name: "resetBudget",
		summary: "Begin a new period of a budget", need: operator, body: of[resetBody](),
		answers: ok[begun]("The period that began."), handle: (*call).resetBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:report", name: "reportUsage",
		summary: "Count what was used of a budget by somebody who holds no lease", need: operator,
		body: of[usageBody](), answers: ok[admission.Reported]("What the budget says to it. Above a hard limit nothing is counted."),
		handle: (*call).reportUsage},
	{method: http.MethodPost, path: "/v1/budgets/{key}:refund", name: "refundBudget",
		summary: "Give back what an execution used of a budget", need: operator, body: of[refundBody](),
		answers: ok[refunded]("Whether there was something to give back."), handle: (*call).refundBudget},
	{method: http.MethodGet, path: "/v1/quotas", name: "listQuotas", summary: "List quotas", need: viewer, query: pages,
		answers: ok[quotaList]("Quotas, by name."), handle: (*call).quotas},
	{method: http.MethodGet, path: "/v1/quotas/{key}", name: "getQuota", summary: "Read a quota", need: viewer,
		answers: ok[admission.QuotaRecord]("With what happened to it, and who holds its slots."),
		handle:  (*call).quota},
	{method: http.MethodGet, path: "/v1/limits/{key}", name: "getLimit",
		summary: "Read what a limit of a key counts", need: viewer,
		query: []param{{name: "concurrency", text: "Of the limit, as it was submitted", kind: "integer"},
			{name: "rate", text: "Likewise", kind: "integer"}, {name: "per_ms", text: "Likewise", kind: "integer"}},
		answers: ok[admission.QuotaRecord]("Who holds its slots, and how many wait. A key that nobody uses has nothing."),
		handle:  (*call).limit},
	{method: http.MethodPut, path: "/v1/quotas/{key}", name: "putQuota", summary: "Create or change a quota",
		need: operator, body: of[quotaBody](), answers: ok[admission.QuotaRecord]("It is as the body says."),
		handle: (*call).putQuota},
	{method: http.MethodPost, path: "/v1/quotas/{key}:ensure", name: "ensureQuota",
		summary: "Make a quota if there is none of its name, and leave one that is there as it is", need: operator,
		body: of[quotaEnsure](), answers: []answer{{status: http.StatusCreated, text: "It was made.",
			body: of[admission.QuotaRecord]()}, {status: http.StatusOK, text: "It was there, and is as it was.",
			body: of[admission.QuotaRecord]()}},
		handle: (*call).ensureQuota},
	{method: http.MethodDelete, path: "/v1/quotas/{key}", name: "removeQuota", summary: "Remove a quota",
		need: operator, query: reasoned, answers: done, handle: (*call).removeQuota},
	{method: http.MethodGet, path: "/v1/gates", name: "listGates",
		summary: "List what is attached to scopes, and what budgets and quotas keep from being handed out",
		need:    viewer,
		answers: ok[admin.GatesInfo]("As far as the partitions answer."), handle: (*call).gates},
	{method: http.MethodPost, path: "/v1/gates:attach", name: "attachGates",
		summary: "Apply budgets and quotas to everything created in a scope", need: operator,
		body:    of[attachBody](),
		answers: done, handle: (*call).attachGates},
	{method: http.MethodPost, path: "/v1/gates:detach", name: "detachGates", summary: "End that", need: operator,
		body: of[attachBody](), answers: done, handle: (*call).detachGates},
	{method: http.MethodGet, path: "/v1/doctor", name: "examine",
		summary: "Examine the deployment, as flowfabric doctor does", need: viewer,
		answers: ok[doctor.Checkup](
			"What was found, at most 5 seconds ago. A store that does not answer is a finding."),
		handle: (*call).examine},
	{method: http.MethodGet, path: "/v1/partitions", name: "listPartitions", summary: "Tell how the partitions are",
		need: viewer, answers: ok[partitionList]("All of them."), handle: (*call).partitions},
	{method: http.MethodPost, path: "/v1/partitions/{key}:freeze", name: "freezePartition",
		summary: "Make a partition refuse every call", need: root, body: of[why](), answers: done,
		handle: (*call).freezePartition},
	{method: http.MethodPost, path: "/v1/partitions/{key}:thaw", name: "thawPartition", summary: "End a freeze",
		need: root, body: of[why](), answers: done, handle: (*call).thawPartition},
	{method: http.MethodGet, path: "/v1/token-keys", name: "listTokenKeys",
		summary: "List the keys of waitpoint tokens, by partition", need: viewer,
		answers: ok[tokenKeyList]("Fingerprints, never secrets."), handle: (*call).tokenKeys},
	{method: http.MethodPost, path: "/v1/token-keys:rotate", name: "rotateTokenKeys",
		summary: "Sign waitpoint tokens with another key of this process's configuration", need: root,
		body: of[rotateBody](), answers: ok[rotatedList]("What the partitions said."), handle: (*call).rotateTokenKeys},
	{method: http.MethodGet, path: "/v1/audit", name: "listChanges", summary: "List who changed what, the newest first",
		need: viewer, query: []param{{name: "namespace",
			text: "Default: the first of the token's; for others all, also what is in none", kind: "string"},
			{name: "by", kind: "string"},
			{name: "on", text: "execution, executions (in bulk), flow, lane, schedule, budget, quota, scope, worker, partition or token key", kind: "string"},
			{name: "name", text: "Its id or name", kind: "string"}, {name: "since", text: "From this time on",
				kind: "string"}, {name: "until", text: "Before this time", kind: "string"},
			{name: "limit", text: "1..1000, default 100", kind: "integer"},
			{name: "cursor", text: "next_cursor of the page before", kind: "string"}},
		answers: ok[changePage]("A page. It may be short, or empty, and have a next one."), handle: (*call).changes},
	{method: http.MethodGet, path: "/v1/lanes", name: "listLanes", summary: "List lanes", need: viewer, shared: true,
		headers: sharedHeader, query: slices.Concat(namespaced, pages),
		answers: ok[laneList]("The lanes of a namespace."), handle: (*call).lanes},
	{method: http.MethodGet, path: "/v1/queues", name: "listQueues", summary: "List what waits, by lane and kind",
		need: viewer, shared: true, headers: sharedHeader, query: slices.Concat(namespaced, pages),
		answers: ok[queueList]("The queues of a namespace."), handle: (*call).queues},
	{method: http.MethodGet, path: "/v1/workers", name: "listWorkers", summary: "List workers", need: viewer,
		shared: true, headers: sharedHeader, query: pages,
		answers: ok[workerList]("Workers that serve a namespace that you may see."), handle: (*call).workers},
	{method: http.MethodGet, path: "/v1/me", name: "whoAmI", summary: "Tell whose token this is, and what it may do",
		need: everyone, answers: ok[self]("You."), handle: (*call).self},
	{method: http.MethodGet, path: "/v1/overview", name: "getOverview",
		summary: "Tell how much there is of everything, how fast it goes, and how it was in the last hour",
		need:    viewer,
		answers: ok[overview]("As this process saw it last, at most some seconds ago."), handle: (*call).overview},
	{method: http.MethodGet, path: "/v1/overview/events", name: "followOverview",
		summary: "Follow that (Server-Sent Events)", need: viewer,
		answers: []answer{{status: http.StatusOK,
			text: "An event sample about every two seconds, and away while the store does not answer. The store is looked at once for everybody who follows.",
			body: of[watchedOverview](), media: "text/event-stream"}}, handle: (*call).overviews},
	{method: http.MethodGet, path: "/v1/openapi.json", name: "getOpenAPI", summary: "This document", need: anybody,
		answers: []answer{{status: http.StatusOK, text: "OpenAPI 3.1."}}, handle: nil}, // see init
	{method: http.MethodGet, path: "/healthz", name: "healthz", summary: "Whether this process lives", need: anybody,
		answers: ok[health]("It does."), handle: (*call).healthz},
	{method: http.MethodGet, path: "/readyz", name: "readyz", summary: "Whether this process reaches its store",
		need: anybody, answers: ok[health]("It does."), handle: (*call).readyz},
}

func init() { // the document is made of the table
	for _, r := range routes {
		if r.name == "getOpenAPI" {
			r.handle = func(c *call) error {
				c.w.Header().Set("Content-Type", "application/json")
				_, err := c.w.Write(document())
				return err
			}
		}
	}
}

// operates tells whether the reader may see what words keep for operators.
func (c *call) operates() bool { return c.who.Role == Operator || c.who.Role == Admin }

// answerOr sends what was read, or says why it was not.
func (c *call) answerOr(err error, v any) error {
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, v)
}

// answerJSON sends a JSON document, without what the reader may not see of its words.
func (c *call) answerJSON(status int, v any) error {
	if c.broken != nil {
		return c.broken
	}
	if !c.operates() {
		v = words.Blanked(v, "operator")
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(status)
	_, _ = c.w.Write(append(text, '\n'))
	return nil
}
