// Package wire is what the adapters of model services have in common. It owns no connection and calls no service.
//
//   - From the service: [String] decodes a piece of text and keeps half a character, [Text] joins pieces to whole
//     characters, and [Arguments] makes valid JSON of what a model wrote.
//   - To the service: [Turns] brings a conversation into the order that services demand, and [Object] makes an object
//     of arguments. [KindOf] says how a part can be given, and [Left] tells of one that cannot.
//   - Failures: [Secrets] keeps keys out of errors, and [Excerpt] keeps errors short.
//
// Each value belongs to one call of a model; nothing here is safe for concurrent use, or needs to be.
package wire
