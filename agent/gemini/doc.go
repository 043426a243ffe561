// Package gemini is an [agent.Model] that speaks the Gemini API of Google, of the developer service or of Vertex AI.
//
//	go get github.com/flowfabric/flowfabric-go/agent/gemini    # until the module is published: see the README
//	export GEMINI_API_KEY=…                                     # or Config.Client.APIKey
//	model, err := gemini.New(gemini.Config{Model: "gemini-3-flash"})
//	response, err := model.Generate(ctx, agent.Request{Messages: messages}, delta)
//
// # What is sent
//
// A request is streamed. Calls without a result get a failed one, and results follow their calls at once. Who said a
// message ([agent.Message.From]) is not sent.
//
// Images (PNG, JPEG, WebP), PDFs, sounds and films are inline data, and files of text are texts with their name. Those
// images and PDFs that tools answer are in their results, or behind them for models before Gemini 3, which take only
// texts there. In the place of other files, and of images in answers, is a text that names them.
//
// What the service signed goes back as it came, in Message.Private: Gemini 3 refuses calls of tools without their
// signature. A conversation that another model began gets the mark that the service has for that.
//
// # What comes back
//
// Usage is what the service reports last. Output contains thoughts. A thought is told if the configuration asks for
// it, see Config.Configure, and is a part of the message. Calls without an id get one. An answer, or a question, that
// the service's filters block has the reason to stop [agent.StopRefusal].
//
// # When it fails
//
//	the service answers 429             model_rate_limited, retried after the pause it asks for
//	408, 409, 425, 5xx, no connection   model_overloaded, retried
//	other 4xx, redirects                model_refused, permanent
//	the answer breaks off               model_overloaded, retried
//	the answer or a call is malformed   model_protocol, retried
//	the request cannot be valid         model_refused, permanent
//	the context ends                    its cause
//
// An answer is whole if the service gave a reason to stop and then ended the stream. The SDK's own retries are off: the
// policy of the execution retries, and holds no slot meanwhile. An error of the service is an [*Error], and its text
// never has the key.
package gemini
