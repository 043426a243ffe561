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
	"github.com/flowfabric/flowfabric-go/internal/apiv1"
	"github.com/flowfabric/flowfabric-go/internal/words"
	"github.com/flowfabric/flowfabric-go/stream"
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
var globals = []string{"/v1/budgets", "/v1/quotas", "/v1/limits", "/v1/gates", "/v1/doctor", "/v1/partitions",
	"/v1/token-keys",
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

// get reads what do returns.
func get[Answer any](path, name, summary, text string, do func(*call) (Answer, error)) *route {
	return &route{method: http.MethodGet, path: path, name: name, summary: summary, need: viewer,
		answers: ok[Answer](text), handle: func(c *call) error {
			answer, err := do(c)
			return c.answerOr(err, answer)
		}}
}

// about reads what do returns of one execution.
func about[Answer any](part, name, summary, text string,
	do func(*call, flowfabric.ExecutionID) (Answer, error)) *route {
	return get("/v1/executions/{id}"+part, name, summary, text, func(c *call) (none Answer, err error) {
		id, err := c.id()
		if err != nil {
			return none, err
		}
		return do(c, id)
	})
}

// post makes a change: do is given the body, and what it returns is answered, unless that is nothing.
func post[Body, Answer any](path, name, summary string, who need, text string,
	do func(*call, *Body) (Answer, error)) *route {
	r := &route{method: http.MethodPost, path: path, name: name, summary: summary, need: who, body: of[Body](),
		answers: done}
	silent := of[Answer]() == of[nothing]()
	if !silent {
		r.answers = ok[Answer](text)
	}
	r.handle = func(c *call) error {
		var body Body
		if err := c.body(&body); err != nil {
			return err
		}
		answer, err := do(c, &body)
		if silent {
			return c.nothingToSay(err)
		}
		return c.answerOr(err, answer)
	}
	return r
}

// change is a post that answers nothing.
func change[Body any](path, name, summary string, who need, do func(*call, *Body) error) *route {
	return post(path, name, summary, who, "",
		func(c *call, b *Body) (nothing, error) { return nothing{}, do(c, b) })
}

// act is a change of one execution.
func act[Body any](action, name, summary string, who need,
	do func(*call, flowfabric.ExecutionID, *Body) error) *route {
	return change("/v1/executions/{id}:"+action, name, summary, who, func(c *call, b *Body) error {
		id, err := c.id()
		if err != nil {
			return err
		}
		return do(c, id, b)
	})
}

// onFlow is a change of one flow.
func onFlow[Body, Answer any](action, name, summary string, who need, text string,
	do func(*call, *client.Flow, *Body) (Answer, error)) *route {
	return post("/v1/flows/{id}"+action, name, summary, who, text, func(c *call, b *Body) (none Answer, err error) {
		f, _, err := c.flowOf()
		if err != nil {
			return none, err
		}
		return do(c, f, b)
	})
}

// asking adds parameters of the query.
func (r *route) asking(query ...param) *route {
	r.query = query
	return r
}

// keyed lets a header have the idempotency key of the body.
func (r *route) keyed() *route {
	r.headers = keyParam
	return r
}

// putting makes a change one that may be repeated.
func (r *route) putting() *route {
	r.method = http.MethodPut
	return r
}

// sharing lets answers be given to others.
func (r *route) sharing() *route {
	r.shared, r.headers = true, sharedHeader
	return r
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
	{name: "newest",
		text: "From the other end of each state: failed, cancelled, expired and skipped ones by their end, or by their purge when completed ones are listed, too", kind: "boolean"},
}

// sharedHeader is that of routes whose answers may be shared.
var sharedHeader = []param{{name: "Cache-Control",
	text: "max-age=<seconds>, at most 5: an answer that somebody else got so long ago will do", kind: "string"}}

// paged are the parameters of a list that is read a page at a time.
var paged = []param{{name: "limit", text: "1..1000, default 100", kind: "integer"},
	{name: "cursor", text: "next_cursor of the page before", kind: "string"}}

var namespaced = []param{{name: "namespace", kind: "string"}}

// routes are all of them, but for /metrics.
var routes = []*route{
	{method: http.MethodPost, path: "/v1/executions", name: "submit", summary: "Create an execution", need: producer,
		body: of[submission](), headers: keyParam,
		answers: []answer{{status: http.StatusCreated, text: "It was created.", body: of[submitted]()},
			{status: http.StatusOK, text: "Its key led to an execution that existed.", body: of[submitted]()}},
		handle: (*call).submit},
	post("/v1/executions:batch", "submitBatch", "Create up to 1,000 executions, each on its own", producer,
		"What became of each, in the order of the items.", (*call).submitBatch),
	get("/v1/executions", "listExecutions", "List executions, a page at a time",
		"A page. It may be short, or empty, and have a next one.", (*call).list).sharing().asking(
		slices.Concat(filters, paged)...),
	about("", "getExecution", "Read an execution", "A consistent snapshot.", (*call).get),
	about("/input", "getInput", "Read what an execution was submitted with", "The input.", (*call).input),
	{method: http.MethodGet, path: "/v1/executions/{id}/result", name: "getResult",
		summary: "Read how an execution ended, or wait for it", need: viewer, headers: []param{
			{name: "Prefer", text: "wait=<seconds>, at most 60: answer as soon as it has ended", kind: "string"}},
		answers: []answer{{status: http.StatusOK, text: "It has ended.", body: of[result]()},
			{status: http.StatusAccepted, text: "It has not ended yet.", body: of[unfinished]()}},
		handle: (*call).result},
	about("/history", "getHistory", "Read what happened to an execution, oldest first", "Its history.",
		(*call).history),
	about("/why", "explain", "Say why an execution is where it is, and what moves it", "An explanation in a sentence.",
		(*call).explained),
	{method: http.MethodGet, path: "/v1/executions/{id}/wait", name: "getWait",
		summary: "Read what an execution waits for now, with its question", need: viewer,
		answers: []answer{{status: http.StatusOK, text: "Its wait.", body: of[admin.Approval]()},
			{status: http.StatusNoContent, text: "It waits for nothing."}}, handle: (*call).wait},
	about("/waitpoints", "listWaitpoints", "List what an execution waits for, or waited for", "Its waitpoints.",
		(*call).waitpoints),
	about("/steps", "listSteps", "List the recorded steps of an execution, and those that failed",
		"Its steps, what ended first at the beginning.", (*call).steps),
	about("/steps/{key}", "getStep", "Read the value that a step recorded", "The value.", (*call).stepValue),
	about("/messages", "listMessages", "List messages to an execution that nobody has received yet",
		"How many there are, and a page of them.", (*call).messages).asking(
		param{name: "after", text: "Those behind this number; default from the first", kind: "integer"}),
	post("/v1/executions/{id}/messages", "sendMessage", "Send a message to a mailbox of an execution", producer,
		"It was accepted, or had been before.", (*call).sendMessage).keyed(),
	about("/summary", "getSummary", "Read the summary document of the newest attempt",
		"The document; version 0 if there is none.", (*call).summary),
	about("/frames", "listFrames", "Read stored frames of one attempt, a page at a time",
		"A page. After the last one comes an empty page.", (*call).frames).asking(
		param{name: "attempt", text: "1 for the first, which is the default", kind: "integer"},
		param{name: "after", text: "next_cursor of the page before", kind: "string"}, paged[0]),
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
			{name: "offset",
				text: "Stream-Next-Offset of the read before; -1 is the beginning, which is the default; now is the end", kind: "string"},
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
	act("cancel", "cancel", "End an execution in any state", producer,
		func(c *call, id flowfabric.ExecutionID, b *why) error {
			return c.h.client.Cancel(c.ctx(), id, c.act(*b)...)
		}),
	act("replay", "replay", "Run an ended execution again", operator, (*call).replay),
	act("revoke", "revoke", "Take an execution from the worker that has it", operator, (*call).revoke),
	act("hold", "hold", "Keep an execution from being handed out", operator,
		func(c *call, id flowfabric.ExecutionID, b *why) error {
			return c.h.admin.Hold(c.ctx(), id, c.act(*b)...)
		}),
	act("unhold", "unhold", "Hand an execution out again", operator,
		func(c *call, id flowfabric.ExecutionID, b *why) error {
			return c.h.admin.Unhold(c.ctx(), id, c.act(*b)...)
		}),
	act("resume", "resume", "Let a suspended execution go on without an answer", operator, (*call).resume),
	act("run-now", "runNow", "Let a delayed execution run at once, also during a retry's pause", operator,
		func(c *call, id flowfabric.ExecutionID, b *why) error {
			return c.h.admin.RunNow(c.ctx(), id, c.act(*b)...)
		}),
	act("delay", "setDelay", "Change until when an execution is delayed", operator, (*call).setDelay),
	act("priority", "setPriority", "Change the priority of an execution", operator, (*call).setPriority),
	act("tags", "setTags", "Set and remove tags of an execution", operator, (*call).setTags),
	act("purge", "purge", "Remove an ended execution for good", root, (*call).purge),
	post("/v1/executions/{id}/waitpoints/{key}:answer", "answerWaitpoint", "Answer a waitpoint on your own word",
		operator, "It was delivered, or had been before.", (*call).answer).keyed(),
	post("/v1/signals", "signal", "Send a signal with the token of its waitpoint", producer,
		"It was delivered, or had been before.", (*call).signal).keyed(),
	post("/v1/executions:bulk", "bulk", "Do something to every execution that a filter matches", operator,
		"What was done within about 20 seconds. With a cursor there is more: repeat the request with it.",
		(*call).bulk).asking(filters...),
	about("/transcript", "getTranscript", "Read what an execution has put out, as it stands now",
		"Frames of all attempts, without what was repeated; position is where its events go on.", (*call).transcript),
	get("/v1/approvals", "listApprovals", "List open waits of suspended executions, the oldest first", "A page.",
		(*call).approvals).sharing().asking(
		param{name: "namespace", kind: "string"}, param{name: "lane", kind: "string"},
		param{name: "kind", kind: "string"}, param{name: "assignee", text: "Only what asks them", kind: "string"},
		param{name: "limit", text: "1..100, default 50", kind: "integer"}, paged[1]),
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
	get("/v1/flows", "listFlows", "List flows, the newest first", "A page.", (*call).flows).sharing().asking(
		param{name: "namespace", kind: "string"}, param{name: "kind", kind: "string"},
		param{name: "state", text: "One or more states", kind: "string", list: true},
		param{name: "oldest", text: "From the other end", kind: "boolean"}, paged[0], paged[1]),
	get("/v1/flows/{id}", "getFlow", "Read a flow and its graph: the nodes, and what each depends on", "The flow.",
		(*call).flow),
	{method: http.MethodGet, path: "/v1/flows/{id}/graph", name: "getFlowGraph", summary: "Draw a flow (Mermaid)",
		need: viewer, answers: []answer{{status: http.StatusOK, text: "A flowchart.", media: "text/vnd.mermaid"}},
		handle: (*call).graph},
	post("/v1/flows/{id}/nodes", "addToFlow", "Add nodes to a flow that was submitted open", producer,
		"The flow has them. Those that it had before, with the same kind and input, are left alone.",
		(*call).addToFlow),
	onFlow(":cancel", "cancelFlow", "Cancel a flow", producer, "It is cancelled, or was before.", (*call).cancelFlow),
	onFlow(":replay", "replayFlow", "Run what did not succeed of a flow again", operator, "What will run.",
		(*call).replayFlow),
	onFlow(":seal", "sealFlow", "End the growth of a flow", operator, "",
		func(c *call, f *client.Flow, b *why) (nothing, error) {
			return nothing{}, f.Seal(c.ctx(), c.act(*b)...)
		}),
	onFlow(":tags", "setFlowTags", "Set and remove tags of a flow", operator, "", (*call).setFlowTags),
	change("/v1/lanes/{key}:set", "setLane", "Pause, drain, close or open a lane", operator, (*call).setLane),
	{method: http.MethodPost, path: "/v1/workers", name: "openWorker", summary: "Open a session of a worker",
		need: takes, body: of[workerBody](), answers: []answer{{status: http.StatusCreated, text: "It is open.",
			body: of[workerOpened]()}}, handle: (*call).openWorker},
	{method: http.MethodPost, path: "/v1/workers/{session}:claim", name: "claim",
		summary: "Take work, or wait for some", need: takes, body: of[claimBody](),
		answers: ok[claimAnswer](
			"What was taken, each with a lease of its own. Run it, renew its lease meanwhile, and settle it."),
		handle: (*call).claimWork},
	post("/v1/workers/{session}:renew", "renew", "Renew the leases of what is still worked on", takes,
		"Which are held. One that is not is somebody else's by now, or nobody's.", (*call).renewWork),
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
	change("/v1/workers/{session}:close", "closeWorker", "End a session, and give back what it still has", takes,
		(*call).closeWorker),
	post("/v1/workers/{session}:mark-dead", "markWorkerDead", "Declare a worker dead and requeue its work", operator,
		"It is given up.", (*call).markDead),
	get("/v1/schedules", "listSchedules", "List schedules", "Schedules that you may see, by name.",
		(*call).schedules).asking(pages...),
	get("/v1/schedules/{key}", "getSchedule", "Read a schedule", "The schedule.", (*call).getSchedule).asking(
		param{name: "next", text: "How many of the runs to come are told, 0..1000, default 5", kind: "integer"}),
	post("/v1/schedules/{key}", "putSchedule", "Create or change a schedule", operator, "It is as the body says.",
		(*call).putSchedule).putting(),
	post("/v1/schedule-owners/{key}", "syncSchedules",
		"Declare all schedules of an owner: create, change and remove what differs", operator,
		"What was done, by name.", (*call).syncSchedules).putting(),
	change("/v1/schedules/{key}:pause", "pauseSchedule", "Pause a schedule", operator, (*call).pauseSchedule),
	change("/v1/schedules/{key}:resume", "resumeSchedule", "Resume a schedule", operator, (*call).resumeSchedule),
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
		answers: ok[apiv1.Used]("What was used then, of the dimensions that were corrected."),
		handle:  (*call).adjustBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:reset", name: "resetBudget",
		summary: "Begin a new period of a budget", need: operator, body: of[resetBody](),
		answers: ok[apiv1.Period]("The period that began."), handle: (*call).resetBudget},
	{method: http.MethodPost, path: "/v1/budgets/{key}:report", name: "reportUsage",
		summary: "Count what was used of a budget by somebody who holds no lease", need: operator,
		body:    of[usageBody](),
		answers: ok[admission.Reported]("What the budget says to it. Above a hard limit nothing is counted."),
		handle:  (*call).reportUsage},
	{method: http.MethodPost, path: "/v1/budgets/{key}:refund", name: "refundBudget",
		summary: "Give back what an execution used of a budget", need: operator, body: of[refundBody](),
		answers: ok[apiv1.Returned]("Whether there was something to give back."), handle: (*call).refundBudget},
	{method: http.MethodGet, path: "/v1/quotas", name: "listQuotas", summary: "List quotas", need: viewer, query: pages,
		answers: ok[quotaList]("Quotas, by name."), handle: (*call).quotas},
	{method: http.MethodGet, path: "/v1/quotas/{key}", name: "getQuota", summary: "Read a quota", need: viewer,
		answers: ok[admission.QuotaRecord]("With what happened to it, and who holds its slots."),
		handle:  (*call).quota},
	{method: http.MethodGet, path: "/v1/limits/{key}", name: "getLimit",
		summary: "Read what a limit of a key counts", need: viewer,
		query: []param{{name: "concurrency", text: "Of the limit, as it was submitted", kind: "integer"},
			{name: "rate", text: "Likewise", kind: "integer"}, {name: "per_ms", text: "Likewise", kind: "integer"}},
		answers: ok[admission.QuotaRecord](
			"Who holds its slots, and how many wait. A key that nobody uses has nothing."),
		handle: (*call).limit},
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
	get("/v1/doctor", "examine", "Examine the deployment, as flowfabric doctor does",
		"What was found, at most 5 seconds ago. A store that does not answer is a finding.", (*call).examine),
	get("/v1/partitions", "listPartitions", "Tell how the partitions are", "All of them.", (*call).partitions),
	change("/v1/partitions/{key}:freeze", "freezePartition", "Make a partition refuse every call", root,
		(*call).freezePartition),
	change("/v1/partitions/{key}:thaw", "thawPartition", "End a freeze", root, (*call).thawPartition),
	get("/v1/token-keys", "listTokenKeys", "List the keys of waitpoint tokens, by partition",
		"Fingerprints, never secrets.", (*call).tokenKeys),
	post("/v1/token-keys:rotate", "rotateTokenKeys",
		"Sign waitpoint tokens with another key of this process's configuration", root, "What the partitions said.",
		(*call).rotateTokenKeys),
	{method: http.MethodGet, path: "/v1/audit", name: "listChanges", summary: "List who changed what, the newest first",
		need: viewer, query: []param{{name: "namespace",
			text: "Default: the first of the token's; for others all, also what is in none", kind: "string"},
			{name: "by", kind: "string"},
			{name: "on",
				text: "execution, executions (in bulk), flow, lane, schedule, budget, quota, scope, worker, partition or token key", kind: "string"},
			{name: "name", text: "Its id or name", kind: "string"}, {name: "since", text: "From this time on",
				kind: "string"}, {name: "until", text: "Before this time", kind: "string"}, paged[0], paged[1]},
		answers: ok[changePage]("A page. It may be short, or empty, and have a next one."), handle: (*call).changes},
	get("/v1/lanes", "listLanes", "List lanes", "The lanes of a namespace.", (*call).lanes).sharing().asking(
		slices.Concat(namespaced, pages)...),
	get("/v1/queues", "listQueues", "List what waits, by lane and kind", "The queues of a namespace.",
		(*call).queues).sharing().asking(slices.Concat(namespaced, pages)...),
	get("/v1/workers", "listWorkers", "List workers", "Workers that serve a namespace that you may see.",
		(*call).workers).sharing().asking(pages...),
	{method: http.MethodGet, path: "/v1/me", name: "whoAmI", summary: "Tell whose token this is, and what it may do",
		need: everyone, answers: ok[self]("You."), handle: (*call).self},
	get("/v1/overview", "getOverview",
		"Tell how much there is of everything, how fast it goes, and how it was in the last hour",
		"As this process saw it last, at most some seconds ago.", (*call).overview),
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
