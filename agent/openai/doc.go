// Package openai is an [agent.Model] that speaks the Chat Completions API of OpenAI, which most other services and
// local servers speak, too, or its Responses API: see [NewResponses].
//
//	go get github.com/flowfabric/flowfabric-go/agent/openai    # until the module is published: see the README
//	export OPENAI_API_KEY=…                                     # or Config.APIKey
//	export OPENAI_BASE_URL=http://localhost:11434/v1            # or Config.BaseURL; only for another service than OpenAI
//	model, err := openai.New(openai.Config{Model: "gpt-5-mini"})
//	response, err := model.Generate(ctx, agent.Request{Messages: messages}, delta)
//
// # What is sent
//
// A request is streamed. It has the system text as the first message, then the conversation. Calls without a result
// get a failed one, and results follow their calls at once, because services refuse anything else. Who said a message
// ([agent.Message.From]) is not sent.
//
// Images (PNG, JPEG, GIF, WebP) are data URLs, PDFs are file parts, and files of text are texts with their name. Those
// that tools answer are in a message of the user behind the results, because this API takes only texts of tools. In
// the place of other files, and of images in answers, is a text that names them. A message that is only text is sent
// as a string. Reasoning is not sent, unless Config.ReturnReasoning says so.
//
// In the Responses API, the system text are the instructions, and images and PDFs that tools answer are in their
// results. The service is asked to store nothing.
//
// # What comes back
//
// Usage is what the service reports last. It is zero if the service reports none, so that a budget of tokens counts
// nothing then. Output contains reasoning, also of services that count it apart. Arguments of tool calls are always
// valid JSON: "" becomes {}, and text that is not JSON becomes a JSON string. A refusal is text, and the reason to
// stop is [agent.StopRefusal]. What a service tells of the model's reasoning is the message's first part.
//
// # When it fails
//
//	the service answers 429             model_rate_limited, retried after the pause it asks for
//	408, 409, 425, 5xx, no connection   model_overloaded, retried
//	other 4xx                           model_refused, permanent
//	the answer breaks off               model_overloaded, retried
//	the answer is malformed             model_protocol, retried
//	the request cannot be valid         model_refused, permanent
//	the context ends                    its cause
//
// An answer is whole if the service gave a reason to stop and then ended the stream, with or without its [DONE], or
// in the Responses API once the response is completed or incomplete. The
// SDK's own retries are off: the policy of the execution retries, and holds no slot meanwhile. An error of the
// service is an [*Error], and its text never has the key.
package openai
