package chat

import (
	"encoding/json"

	"github.com/flowfabric/flowfabric-go/agent"
)

// aguiVersion is the implemented version of AG-UI.
const aguiVersion = "1.0"

// Types of events of AG-UI.
const (
	aguiRunStarted     = "RUN_STARTED"
	aguiRunFinished    = "RUN_FINISHED"
	aguiRunError       = "RUN_ERROR"
	aguiMessages       = "MESSAGES_SNAPSHOT"
	aguiState          = "STATE_SNAPSHOT"
	aguiStateDelta     = "STATE_DELTA"
	aguiStepStart      = "STEP_STARTED"
	aguiStepEnd        = "STEP_FINISHED"
	aguiTextStart      = "TEXT_MESSAGE_START"
	aguiText           = "TEXT_MESSAGE_CONTENT"
	aguiTextEnd        = "TEXT_MESSAGE_END"
	aguiReasoning      = "REASONING_START"
	aguiReasoningEnd   = "REASONING_END"
	aguiThoughtStart   = "REASONING_MESSAGE_START"
	aguiThought        = "REASONING_MESSAGE_CONTENT"
	aguiThoughtEnd     = "REASONING_MESSAGE_END"
	aguiCallStart      = "TOOL_CALL_START"
	aguiCallArguments  = "TOOL_CALL_ARGS"
	aguiCallEnd        = "TOOL_CALL_END"
	aguiCallResult     = "TOOL_CALL_RESULT"
	aguiActivity       = "ACTIVITY_SNAPSHOT"
	aguiCustom         = "CUSTOM"
	aguiProgress       = "tool_progress" // of a CUSTOM
	aguiRoleReasoning  = "reasoning"
	aguiRoleActivity   = "activity"
	aguiOutcomeSuccess = "success"
	aguiOutcomeStopped = "cancelled"
	aguiOutcomeAsked   = "interrupt"
)

// aguiEvent is an event of AG-UI. Its type says which members it has.
type aguiEvent struct {
	Type            string              `json:"type"`
	ThreadID        string              `json:"threadId,omitempty"`
	RunID           string              `json:"runId,omitempty"`
	ProtocolVersion string              `json:"protocolVersion,omitempty"`
	ParentRunID     string              `json:"parentRunId,omitempty"`
	MessageID       string              `json:"messageId,omitempty"`
	Role            agent.Role          `json:"role,omitempty"`
	ToolCallID      string              `json:"toolCallId,omitempty"`
	ToolCallName    string              `json:"toolCallName,omitempty"`
	ParentMessageID string              `json:"parentMessageId,omitempty"`
	Delta           any                 `json:"delta,omitempty"`   // a text, or []operation
	Content         any                 `json:"content,omitempty"` // a text, []aguiPart, or an object
	StepName        string              `json:"stepName,omitempty"`
	Snapshot        json.RawMessage     `json:"snapshot,omitempty"`
	Messages        any                 `json:"messages,omitempty"` // []aguiMessage, maybe an empty one
	ActivityType    string              `json:"activityType,omitempty"`
	Name            string              `json:"name,omitempty"`
	Value           json.RawMessage     `json:"value,omitempty"`
	Outcome         *aguiOutcome        `json:"outcome,omitempty"`
	Usage           []aguiUsage         `json:"usage,omitempty"`
	Message         string              `json:"message,omitempty"`
	Code            string              `json:"code,omitempty"`
	Metadata        *aguiResultMetadata `json:"metadata,omitempty"`
}

// aguiMessage is a message of AG-UI: of the user, of the assistant (one for each answer), of a tool, of reasoning, or
// an activity.
type aguiMessage struct {
	ID           string              `json:"id"`
	Role         agent.Role          `json:"role"`
	Content      any                 `json:"content,omitempty"` // a text, []aguiPart, or of an activity an object
	ToolCalls    []aguiCall          `json:"toolCalls,omitempty"`
	ToolCallID   string              `json:"toolCallId,omitempty"`
	Error        string              `json:"error,omitempty"`
	ActivityType string              `json:"activityType,omitempty"`
	Metadata     *aguiResultMetadata `json:"metadata,omitempty"`
}

// aguiResultMetadata says of a result that it is an error, and which arguments a person has changed.
type aguiResultMetadata struct {
	Failed bool          `json:"failed,omitempty"`
	Edited *agent.Edited `json:"edited,omitempty"`
}

type aguiCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // function
	Function aguiFunction `json:"function"`
}

type aguiFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// aguiPart is a part of a message of the user or of a tool.
type aguiPart struct {
	Type     string        `json:"type"` // text, image, audio, video or document
	Text     *string       `json:"text,omitempty"`
	Source   *aguiSource   `json:"source,omitempty"`
	Metadata *aguiFileName `json:"metadata,omitempty"`
}

type aguiFileName struct {
	Name string `json:"filename"`
}

type aguiSource struct {
	Type  string `json:"type"` // data, url or file
	Value string `json:"value"`
	Media string `json:"mimeType,omitempty"`
}

type aguiOutcome struct {
	Type       string          `json:"type"` // success, interrupt or cancelled
	Interrupts []aguiInterrupt `json:"interrupts,omitempty"`
}

// aguiInterrupt is a question to people.
type aguiInterrupt struct {
	ID             string         `json:"id"`
	Reason         string         `json:"reason"`
	Message        string         `json:"message,omitempty"`
	ToolCallID     string         `json:"toolCallId,omitempty"`
	ResponseSchema map[string]any `json:"responseSchema,omitempty"`
	Metadata       map[string]any `json:"metadata,omitempty"`
}

// aguiUsage is the cost of a model's answers.
type aguiUsage struct {
	Model      string `json:"model,omitempty"`
	Input      int64  `json:"inputTokens"`
	Output     int64  `json:"outputTokens"`
	Total      int64  `json:"totalTokens"`
	Reasoning  int64  `json:"reasoningTokens,omitempty"`
	CacheRead  int64  `json:"cachedInputTokens,omitempty"`
	CacheWrite int64  `json:"cacheWriteInputTokens,omitempty"`
}
