// Package hookin takes webhooks of other systems: POST /v1/hooks/{name}, run by 'flowfabric serve'.
//
//	request ─▶ signature over the raw body ─▶ type and id of the event ─▶ first rule that fits ─▶ what it says
//	              │ 401                           │ 400                       │ none: 200, ignored
//	              ▼                               ▼                           ▼
//	            refused                        refused                     nothing
//
// A body that the rule does not fit is answered 422, and a store that is away 503.
//
// Nothing is done before the signature is right. The id of the event is the key of what is done, so an event that is
// delivered again does nothing twice: a submission for at least a week, a signal for a week, a message as long as it
// is one of the last 1,000 of its execution. A request whose effect is not known is answered 503, and its repeat is
// harmless.
//
// A hook acts in its own namespace only: an execution that a body names must be there. The body decides values, such as
// ids and tags; what is done is in the configuration.
package hookin
