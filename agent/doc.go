// Package agent runs a language model that uses tools as durable work: the loop of model calls and tool calls in which nothing that was recorded
// is ever repeated, whatever crashes.
package agent
