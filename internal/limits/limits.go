// Package limits is every bound and default of the library in one place; docs/reference/limits.md tells users of
// those they meet, and a test compares them.
package limits

import "time"

// TraceTags begins the keys of the tags that carry a trace from producer to handler, such as otel.traceparent. They
// count towards [MaxTags]; handlers do not see them.
const TraceTags = "otel."

// DepthTag is the tag of an execution that an agent made: how many agents are above it, itself not counted. Children
// that a handler makes inherit it; handlers do not see it.
const DepthTag = "flowfabric.depth"

// FrameOfChild is the type of the durable frame by which a handler announces a child that tails show: Correlation is
// the child's id and Source its name. Nobody but package handler appends such frames, and no tail yields them.
const FrameOfChild = "flowfabric.child"

// What an agent says to its model in the place of the user has one of these in Message.From: the beginning of it for a
// limit that is near, or the whole for an answer that did not have its form.
const (
	FromLimit = "limit of "
	FromForm  = "form"
)

// The limits. The server functions enforce the byte and count limits as well.
const (
	MaxPayload         = 1 << 20  // bytes of input or result
	MaxSchemas         = 256      // kinds of a namespace that have schemas
	MaxSchema          = 64 << 10 // bytes of the schema of a kind's inputs, or of its results
	MaxFrame           = 64 << 10
	MaxIndexedTags     = 8
	MaxTags            = 64
	MaxTagKey          = 64
	MaxTagValue        = 256
	MaxCapabilities    = 256
	MaxCapabilityBytes = 4096 // joined with commas
	MaxSteps           = 1000
	MaxStepBytes       = 256 << 10
	MaxStepTotal       = 8 << 20
	MaxHistory         = 1000    // entries; the oldest goes for a new one
	MaxBatch           = 100     // items of one call
	MaxCallBytes       = 1 << 20 // bytes of one call
	MaxCallTags        = 2000    // tags of all items of one call
	MaxClaimBytes      = 512 << 10
	MaxClasses         = 1024 // per partition
	MaxOwnClasses      = 512  // of them made by one namespace
	SureClasses        = 128  // of them that a namespace may make whatever others have made, while there is room

	MaxConcurrency = 10_000 // of a worker
	MaxNamespaces  = 256    // of a worker
	MaxLaneWeight  = 1000   // of a lane, in the claims of a worker
	MaxLaneWeights = 256    // lanes of a worker that have one
	MaxName        = 64     // namespace, lane, kind, worker, instance
	MaxInstance    = 48     // a session id adds a suffix and stays within 64
	MaxReason      = 1024   // failure or cancel reason
	MaxDeadReason  = 256    // reason of a session declared dead, or of a freeze
	MaxCategory    = 64
	MaxPriority    = 9000
	MaxCategories  = 16

	MaxSignal            = 64 << 10 // payload bytes of a signal
	MaxSignalName        = 128
	MaxSignalCategory    = 64
	MaxSignalSource      = 256
	MaxIdempotencyKey    = 256 // of a submission or a signal
	MaxWaitpointKey      = 256
	MaxOpenWaitpoints    = 64 // per execution
	MaxBoundWaitpoints   = 16 // per suspension
	MaxConditionDepth    = 4
	MaxConditionNodes    = 32
	MaxConditionCount    = 1000
	MaxSuspensionSignals = 10000
	MaxBufferedSignals   = 1000 // on pending waitpoints, per execution
	MaxStepName          = 128
	MaxMailbox           = 96       // name
	MaxMessage           = 64 << 10 // payload bytes
	MaxMessages          = 1000     // that nobody has received, per execution
	MaxMessageBytes      = 1 << 20  // of those
	MaxReceived          = 100      // messages by one call
	KnownMessages        = 1000     // by which repeats are recognised

	MaxChatOwner = 64        // bytes
	MaxChatID    = 128       // bytes of what an application calls a conversation
	MaxChatLink  = 900 << 10 // bytes of what the next link of a conversation begins with, as JSON

	DefaultApprovals = 50 // of a page
	MaxApprovals     = 100

	MaxQuestion      = 8 << 10  // bytes of a question as JSON
	MaxQuestions     = 64 << 10 // of those that are open at once
	MaxStoredAsk     = 96 << 10 // bytes of what is stored of them, encrypted or not
	MaxEdit          = 16 << 10 // bytes of arguments that an answer changes
	MaxAsked         = 64       // questions of one AskAll
	MaxQuestionTitle = 200
	MaxQuestionText  = 4 << 10
	MaxChoices       = 8 // of a question
	MaxChoiceLabel   = 128
	MaxAssignee      = 128

	MaxBatchSize = 1000
	MaxBatchWait = time.Minute
	MinKeyWindow = time.Second
	MaxKeyWindow = 365 * 24 * time.Hour

	MinWaitpointLife = time.Second
	MaxWaitpointLife = 7 * 24 * time.Hour
	MaxResumeDelay   = 30 * 24 * time.Hour
	MaxDedupTTL      = 7 * 24 * time.Hour
	DefaultDedupTTL  = 24 * time.Hour
	DefaultKeyGrace  = 24 * time.Hour

	MinLeaseTTL = time.Second
	MaxLeaseTTL = time.Hour
	MaxDelay    = 10 * 365 * 24 * time.Hour
	MaxBackoff  = 7 * 24 * time.Hour

	MaxReadFrames     = 10000
	MaxReadBytes      = 4 << 20
	MaxTailBlock      = 30 * time.Second
	MaxFrameType      = 128
	MaxCorrelation    = 256
	MaxFrameSource    = 64        // bytes
	MaxAppendFrames   = 100       // frames of one append call
	MaxAppendBytes    = 512 << 10 // payload bytes of one append call
	DefaultFrameLimit = 10000     // frames kept per attempt (approximate)
	MaxLogLines       = 1000      // log lines kept per attempt
	MaxLogBytes       = 256 << 10 // bytes of log lines kept per attempt
	MaxLogLine        = 8 << 10   // bytes of message and attributes of a line; longer ones are cut
	MaxAppendLines    = 100       // log lines of one call

	MaxSchedule  = 64 << 10 // bytes of a schedule's definition
	MaxSchedules = 10000    // per partition
	MaxListed    = 100      // schedules of one page

	MaxSubject     = 128      // bytes of the subject of a published event
	MaxEventID     = 256      // bytes
	MaxEventData   = 64 << 10 // bytes of JSON
	MaxEventFields = 1024     // that have a value, outside of arrays
	MaxEventDepth  = 16       // objects inside each other, of which fields are looked at
	MaxFilter      = 8        // fields that a filter asks for
	MaxTriggers    = 100      // of a subject
	MaxExpected    = 1000     // waits of one filter, and that an event may concern
	MaxTrigger     = 16 << 10 // bytes of a trigger's definition
	MaxJitter      = 24 * time.Hour

	MaxListPage     = 1000 // entries of a page of a list
	DefaultListPage = 100
	MinTombstone    = 24 * time.Hour // for how long the id of a purged execution stays taken; also the default
	MaxTombstone    = MaxDelay

	MaxSummary      = 256 << 10 // bytes of a summary document
	MaxSummaryDepth = 16        // levels of objects in a summary delta
	MinLiveTTL      = time.Second
	MaxLiveTTL      = time.Minute
	MaxLiveFrames   = 16384 // best-effort frames kept per attempt (approximate)
)

// Partition counts of a new deployment; the process that boots it first fixes them.
const (
	DefaultExecutionPartitions = 64
	EmbeddedPartitions         = 8   // the default on the embedded server, which runs one call at a time anyway
	MaxGates                   = 16  // of an execution, by name
	MaxLimits                  = 8   // and limits of keys
	MaxLimitKey                = 128 // bytes as stored
	MaxLimit                   = 1_000_000
	MaxLimitPer                = 30 * 24 * time.Hour
	MaxDimensions              = 64 // of a gate, and of a report
	MaxSpendKey                = 64 // bytes; with the execution before it at most 128
	MaxGateDepth               = 8  // gates above each other
	MaxShareDimensions         = 8  // of the share of a child
	MaxAmount                  = 1<<53 - 1
	MaxServiceDimensions       = 8 // of a service
	MaxPerMinute               = 1_000_000_000
	MaxWeights                 = 256  // namespaces that a service has weights of
	MaxWeight                  = 1000 // of a namespace at a service
	DefaultGatePartitions      = 32
)

// Defaults.
const (
	DefaultLeaseTTL     = 30 * time.Second
	DefaultConcurrency  = 64
	DefaultDrainTimeout = 20 * time.Second
	DefaultLane         = "default"
	DefaultNamespace    = "default"
	DefaultSignal       = "signal" // the name of a signal that was given none
)

// Protocol is the number of the storage layout and of the calls. A store and a library of another number are refused,
// with ErrProtocol.
const Protocol = 3

// Limits of a flow.
const (
	MaxFlowMembers = 10_000
	MaxFlowEdges   = 50_000
	MaxHTTPNodes   = 1_000 // of a request over HTTP
	MaxFanIn       = 1_000 // whom a member depends on, or waits for as its children
	MaxTailed      = 32    // children that a tail follows at once, those of its children too
	MaxTailedDepth = 4     // how far below the execution a child is that its tail shows
)

// Limits of an agent. Every turn is a step, and so is every tool call.
const (
	MaxAgentName     = 32 // bytes
	MaxAgentTurns    = 500
	MaxTools         = 128
	MaxToolName      = 64 // bytes
	MaxToolCalls     = 64 // of one answer
	MaxParallelTools = 64
	MaxAgentChildren = 500                   // of one run, whose steps have room for no more
	MaxAgentDepth    = 16                    // how deep agents nest
	MaxToolResult    = MaxStepBytes - 16<<10 // as JSON; what is left of the step's value is for what a cipher adds
)

// DefaultMaxReclaims is how often an execution is requeued after its worker was lost, unless its policy says
// otherwise. Few deploys or crashes hit the same execution that often; a handler that ends its process does. The
// first reclaim comes at once; later ones pause 1, 2, 4 … 60 s.
const DefaultMaxReclaims = 10

// Near says that four fifths of a limit are used: people are warned from then on.
func Near(used, most int) bool { return used >= most-most/5 }
