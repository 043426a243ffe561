// Package anthropic is an [agent.Model] that speaks the Messages API of Anthropic.
//
//	go get github.com/flowfabric/flowfabric-go/agent/anthropic    # until the module is published: see the README
//	export ANTHROPIC_API_KEY=…                                  # or Config.APIKey
//	model, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5"})
//	response, err := model.Generate(ctx, agent.Request{Messages: messages}, delta)
//
// # What is sent
//
// A request is streamed. Results of tools are tool_result blocks of the user's message that follows the calls, and
// what the user said comes after them in the same message. Calls without a result get a failed one, and blank texts
// are left out, because the service refuses anything else. A conversation that begins with an answer of the model
// gets the text "Begin." before it. Who said a message ([agent.Message.From]) is not sent.
//
// Images (PNG, JPEG, GIF, WebP) are image blocks, PDFs and files of text are document blocks, also in results of
// tools. In the place of other files, of images in answers, and of what a failed result has beside text, is a text
// that names them.
//
// Thinking, redacted thinking and blocks of the service's own tools are in [agent.Message.Private], with their
// signatures and in their order, and go back with the conversation. Messages of other adapters lose their private
// part. Config.Options switch such features on, for example option.WithJSONSet("thinking", map[string]any{"type":
// "adaptive"}).
//
// # What comes back
//
// Usage.Input is what the service calls input_tokens, plus CacheRead (cache_read_input_tokens) and CacheWrite
// (cache_creation_input_tokens). Output is output_tokens, which contains Reasoning. Arguments of tool calls are
// always valid JSON: nothing becomes {}, and text that is not JSON, for example because the answer was cut, becomes a
// JSON string. Thinking that is readable is a part of the message, too, for people; what goes back is the private part.
//
//	end_turn, stop_sequence                      agent.StopEnd
//	tool_use                                     agent.StopTools
//	max_tokens, model_context_window_exceeded    agent.StopLength
//	refusal                                      agent.StopRefusal
//	pause_turn                                   the call goes on with a request of its own, up to 10 times, then agent.StopLength; usage is the sum
//
// # When it fails
//
//	429, rate_limit_error              model_rate_limited, retried after the pause that the service asks for
//	408, 409, 425, 5xx, overloaded     model_overloaded, retried; also in mid-answer, and without a connection
//	other 4xx, a redirect              model_refused, permanent
//	the answer breaks off              model_overloaded, retried
//	the answer is malformed            model_protocol, retried
//	the request cannot be valid        model_refused, permanent
//	the context ends                   its cause
//
// An answer is whole with its message_stop only. The SDK's own retries are off: the policy of the execution retries,
// and holds no slot meanwhile. An error of the service is an [*Error], and its text never has the key.
package anthropic
