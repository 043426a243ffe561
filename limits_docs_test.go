package flowfabric_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

// The page of limits says what the code says, line by line.
func TestLimitsDocs(t *testing.T) {
	text, err := os.ReadFile("docs/reference/limits.md")
	must.No(t, err)
	bytes := func(n int) string {
		switch {
		case n%(1<<20) == 0:
			return fmt.Sprintf("%d MiB", n>>20)
		case n%(1<<10) == 0:
			return fmt.Sprintf("%d KiB", n>>10)
		}
		return fmt.Sprintf("%d bytes", n)
	}
	const day = 24 * time.Hour
	want := map[string]string{
		"input or result of an execution": bytes(limits.MaxPayload), "tags of an execution": fmt.Sprint(limits.MaxTags),
		"key of a tag": bytes(limits.MaxTagKey), "value of a tag": bytes(limits.MaxTagValue),
		"name of a namespace, lane, kind or worker": bytes(limits.MaxName),
		"tag keys that are indexed":                 fmt.Sprint(limits.MaxIndexedTags),
		"values of an indexed tag in a partition":   "100000", // lua/lib/catalogue.lua
		"kinds of a namespace that have schemas":    fmt.Sprint(limits.MaxSchemas),
		"schema of an input or a result":            bytes(limits.MaxSchema),
		"key of a submission":                       bytes(limits.MaxIdempotencyKey),
		"window of a key": fmt.Sprintf("%.0f s to %.0f days", limits.MinKeyWindow.Seconds(),
			limits.MaxKeyWindow.Hours()/24),
		"delay of a debounced submission, and its bound": fmt.Sprintf("1 ms to %d years",
			int(limits.MaxDelay/(365*day))),
		"executions in one call of a batch handler": fmt.Sprint(limits.MaxBatchSize),
		"time for which it waits for them":          fmt.Sprintf("1 ms to %.0f s", limits.MaxBatchWait.Seconds()),
		"required capabilities of an execution":     fmt.Sprint(limits.MaxCapabilities),
		"required capabilities, joined":             bytes(limits.MaxCapabilityBytes),
		"priority":                                  fmt.Sprintf("0 to %d", limits.MaxPriority),
		"delay, deadline, timeout, retention":       fmt.Sprintf("%d years", int(limits.MaxDelay/(365*day))),
		"pause between retries":                     fmt.Sprintf("%d days", int(limits.MaxBackoff/day)),
		"lease time": fmt.Sprintf("%.0f s to %.0f h", limits.MinLeaseTTL.Seconds(),
			limits.MaxLeaseTTL.Hours()),
		"rewinds of an execution before it ends":                           "1000", // lua/lib/rewind.lua
		"steps of an execution":                                            fmt.Sprint(limits.MaxSteps),
		"value of a step":                                                  bytes(limits.MaxStepBytes),
		"values of all steps of an execution":                              bytes(limits.MaxStepTotal),
		"entries of an execution's history; the oldest goes for a new one": fmt.Sprint(limits.MaxHistory),
		"frame":             bytes(limits.MaxFrame),
		"source of a frame": bytes(limits.MaxFrameSource),
		"frames kept per attempt, unless set otherwise": fmt.Sprint(limits.DefaultFrameLimit),
		"summary document":                                  bytes(limits.MaxSummary),
		"levels of a summary document":                      fmt.Sprint(limits.MaxSummaryDepth),
		"payload of a signal":                               bytes(limits.MaxSignal),
		"open waitpoints of an execution":                   fmt.Sprint(limits.MaxOpenWaitpoints),
		"waitpoints of one wait":                            fmt.Sprint(limits.MaxBoundWaitpoints),
		"title of a question":                               bytes(limits.MaxQuestionTitle),
		"text of a question":                                bytes(limits.MaxQuestionText),
		"choices of a question":                             fmt.Sprint(limits.MaxChoices),
		"question, as JSON":                                 bytes(limits.MaxQuestion),
		"assignee of a question":                            bytes(limits.MaxAssignee),
		"questions that are open at once, as JSON":          bytes(limits.MaxQuestions),
		"questions of one `AskAll`":                         fmt.Sprint(limits.MaxAsked),
		"arguments that an answer changes":                  bytes(limits.MaxEdit),
		"signals buffered for an execution":                 fmt.Sprint(limits.MaxBufferedSignals),
		"name of a mailbox":                                 bytes(limits.MaxMailbox),
		"payload of a message":                              bytes(limits.MaxMessage),
		"messages of an execution that nobody has received": fmt.Sprint(limits.MaxMessages),
		"their bytes, as they are stored":                   bytes(limits.MaxMessageBytes),
		"nodes of a flow":                                   fmt.Sprint(limits.MaxFlowMembers),
		"dependencies of a flow":                            fmt.Sprint(limits.MaxFlowEdges),
		"dependencies of a node":                            fmt.Sprint(limits.MaxFanIn),
		"nodes of a flow, or of an addition to one, in a request over HTTP":        fmt.Sprint(limits.MaxHTTPNodes),
		"nodes of a flow that is stored and released by one call":                  fmt.Sprint(limits.MaxBatch),
		"children, and executions that it did not make, in a wait of an execution": fmt.Sprint(limits.MaxFanIn),
		"executions that wait for one that they did not make":                      fmt.Sprint(limits.MaxFanIn),
		"gates of an execution, by name":                                           fmt.Sprint(limits.MaxGates),
		"gates above each other":                                                   fmt.Sprint(limits.MaxGateDepth),
		"limits of keys of an execution":                                           fmt.Sprint(limits.MaxLimits),
		"key of a limit":                                                           bytes(limits.MaxLimitKey),
		"executions at once, or starts, of a limit of a key":                       fmt.Sprint(limits.MaxLimit),
		"period of a limit of a key": fmt.Sprintf("1 ms to %d days",
			int(limits.MaxLimitPer/day)),
		"keys with a limit":                               "no limit",
		"dimensions of a gate":                            fmt.Sprint(limits.MaxDimensions),
		"dimensions of a service":                         fmt.Sprint(limits.MaxServiceDimensions),
		"amount of a service in a minute":                 fmt.Sprintf("2 to %d", limits.MaxPerMinute),
		"weight of a namespace at a service":              fmt.Sprintf("1 to %d", limits.MaxWeight),
		"namespaces with a weight at a service":           fmt.Sprint(limits.MaxWeights),
		"executions in line for a service":                "65536", // lua/lib/service.lua
		"time that a call to a service waits in its slot": "60 s",  // admin.validateService
		"key of a spend":                                  bytes(limits.MaxSpendKey),
		"definition of a schedule":                        bytes(limits.MaxSchedule),
		"jitter of a schedule": fmt.Sprintf("%.0f hours",
			limits.MaxJitter.Hours()),
		"flow of a schedule, as it is stored":                        bytes(limits.MaxPayload),
		"executions of one call":                                     fmt.Sprint(limits.MaxBatch),
		"combinations of lane, kind and capabilities in a partition": fmt.Sprint(limits.MaxClasses),
		"of these, made by one namespace": fmt.Sprintf("%d, or %d whatever others have made",
			limits.MaxOwnClasses, limits.SureClasses),
		"namespaces": "no limit",
		"children that a tail shows at once, those of its children too": fmt.Sprint(limits.MaxTailed),
		"levels of children that a tail shows":                          fmt.Sprint(limits.MaxTailedDepth),
		"name of a step":                                                bytes(limits.MaxStepName),
		"name of a signal":                                              bytes(limits.MaxSignalName),
		"key of a waitpoint":                                            bytes(limits.MaxWaitpointKey),
		"reason of a failure or a change, as a history keeps it":        bytes(limits.MaxReason),
		"category of a failure":                                         bytes(limits.MaxCategory),
		"life of a waitpoint before something waits for it": fmt.Sprintf("%d days",
			int(limits.MaxWaitpointLife/day)),
		"pause between an answer and the next run": fmt.Sprintf("%d days",
			int(limits.MaxResumeDelay/day)),
		"parts of a condition":                 fmt.Sprint(limits.MaxConditionNodes),
		"signals of one wait":                  fmt.Sprint(limits.MaxSuspensionSignals),
		"label of a choice":                    bytes(limits.MaxChoiceLabel),
		"messages that one call receives":      fmt.Sprint(limits.MaxReceived),
		"message and attributes of a log line": bytes(limits.MaxLogLine),
		"log lines kept per attempt":           fmt.Sprintf("%d, %s", limits.MaxLogLines, bytes(limits.MaxLogBytes)),
		"log lines of one call":                fmt.Sprint(limits.MaxAppendLines),
		"type of a frame":                      bytes(limits.MaxFrameType),
		"frames of one call":                   fmt.Sprint(limits.MaxAppendFrames),
		"life of a best-effort frame":          fmt.Sprintf("%.0f s", limits.MaxLiveTTL.Seconds()),
		"schedules in a partition":             fmt.Sprint(limits.MaxSchedules),
		"executions of a worker at once":       fmt.Sprint(limits.MaxConcurrency),
		"namespaces of a worker":               fmt.Sprint(limits.MaxNamespaces),
		"weight of a lane of a worker":         fmt.Sprint(limits.MaxLaneWeight),
		"entries of a page of a list":          fmt.Sprint(limits.MaxListPage),
		"name of an agent":                     bytes(limits.MaxAgentName),
		"model calls of an agent's run":        fmt.Sprint(limits.MaxAgentTurns),
		"tools of an agent":                    fmt.Sprint(limits.MaxTools),
		"children of an agent's run":           fmt.Sprint(limits.MaxAgentChildren),
		"agents that nest":                     fmt.Sprint(limits.MaxAgentDepth),
		"owner of a conversation":              bytes(limits.MaxChatOwner),
		"name of a conversation":               bytes(limits.MaxChatID),
		"what the next link of a conversation begins with; older messages go": bytes(limits.MaxChatLink),
		// internal/trigger, lua/operate/ff_publish_event.lua
		"subject of a published event":                       bytes(limits.MaxSubject),
		"id of a published event":                            bytes(limits.MaxEventID),
		"data of a published event":                          bytes(limits.MaxEventData),
		"fields of it that have a value, outside of lists":   fmt.Sprint(limits.MaxEventFields),
		"objects inside each other whose fields filters see": fmt.Sprint(limits.MaxEventDepth),
		"fields of a filter of events":                       fmt.Sprint(limits.MaxFilter),
		"triggers of a subject":                              fmt.Sprint(limits.MaxTriggers),
		"definition of a trigger":                            bytes(limits.MaxTrigger),
		"waits for events with one filter":                   fmt.Sprint(limits.MaxExpected),
		"waits that one event may concern":                   fmt.Sprint(limits.MaxExpected),
		"time for which a published event is known":          "1 day",
		// chat/find.go, chat.New, httpapi/streams.go, lua/lib/written.lua, internal/browsertoken
		"id of a message of a front end":                                     "128 bytes",
		"body of a front end's request; 32 MiB with `Blobs`":                 "1 MiB",
		"name of a stream that is written over HTTP":                         "512 bytes",
		"append to it, or its beginning":                                     bytes(limits.MaxPayload),
		"its producers":                                                      "10000",
		"forks of it above each other":                                       "32",
		"life of a token of a page":                                          "1 h",
		"name of a tool":                                                     bytes(limits.MaxToolName),
		"tool calls of one answer":                                           fmt.Sprint(limits.MaxToolCalls),
		"tools that run at once":                                             fmt.Sprint(limits.MaxParallelTools),
		"result of a tool, as JSON; of a longer one the model gets an error": bytes(limits.MaxToolResult),
		"execution partitions, unless set otherwise at the first start": fmt.Sprint(
			limits.DefaultExecutionPartitions),
		"execution partitions of the embedded server, unless set otherwise": fmt.Sprint(limits.EmbeddedPartitions),
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, " | ")
		if len(cells) != 2 || strings.HasPrefix(line, "| What") {
			continue
		}
		what, limit := strings.TrimPrefix(cells[0], "| "), strings.TrimSuffix(strings.TrimSpace(cells[1]), " |")
		if want[what] != limit {
			t.Errorf("%s: the page says %s, the code %q", what, limit, want[what])
		}
		delete(want, what)
	}
	for what := range want {
		t.Errorf("the page says nothing of: %s", what)
	}
}

// unlisted are the bounds of machinery, and those that the documentation of the one function says that has them.
var unlisted = strings.Fields(
	`MaxAmount MaxAppendBytes MaxApprovals MaxCallBytes MaxCallTags MaxCategories MaxClaimBytes MaxConditionCount MaxConditionDepth MaxCorrelation MaxDeadReason
	MaxDedupTTL MaxInstance MaxLaneWeights MaxListed MaxLiveFrames MaxReadBytes MaxReadFrames MaxShareDimensions MaxSignalCategory MaxSignalSource MaxStoredAsk MaxTailBlock MaxTombstone`)

// Every bound of the code is on the page, or among those that are not meant to be.
func TestLimitsAreOnThePage(t *testing.T) {
	own, err := os.ReadFile("limits_docs_test.go")
	must.No(t, err)
	file, err := parser.ParseFile(token.NewFileSet(), "internal/limits/limits.go", nil, 0)
	must.No(t, err)
	known := map[string]bool{}
	for name := range file.Scope.Objects {
		if !strings.HasPrefix(name, "Max") {
			continue
		}
		known[name] = true
		if shown := regexp.MustCompile(`limits\.` + name + `\b`).Match(own); shown == slices.Contains(unlisted, name) {
			t.Errorf("%s: want it on the page or among those that are not, and not both; on the page: %t", name, shown)
		}
	}
	for _, name := range unlisted {
		if !known[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
