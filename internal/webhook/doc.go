// Package webhook tells other systems, by signed requests, what happens in a store. It is run by 'flowfabric serve'.
//
//	feed of the store ─▶ relay ─▶ one execution for each event and endpoint ─▶ POST, with retries
//	                      │  ▲
//	                      ▼  │ its input is the place in the feed
//	                   Continue
//
// Everything durable is an execution in the namespace ff.webhooks. The relay (kind ff.webhook.relay) is one execution
// without end: whoever holds its lease reads the feed, and it continues with the place that it has reached. A delivery
// (kind ff.webhook) is one message to one endpoint, under a key that follows from the event and the endpoint. So:
//
//   - A process that dies between an event and its delivery has not moved the place. The next holder of the relay reads
//     the event again, and submits what is there already under the same key.
//   - A process that dies while it sends is reclaimed and sends again, with the same webhook-id.
//   - A receiver that is away is tried again for about three days. Then the delivery has failed: it is a dead letter,
//     which people find, explain and replay as any other.
//   - The feed is kept for a day. A relay that was away for longer logs the gap and goes on.
//
// The store keeps the message and the name of the endpoint. Address and secrets stay in the configuration of the
// process that sends, and a delivery asks for a worker that has its endpoint. The relay signs what it hands to
// deliveries, so nobody who may submit executions can make us sign other messages.
//
// Requests go to public addresses only, unless the endpoint allows others. The address is checked when it is dialled,
// after its name was resolved, so no name can lead elsewhere. No redirect is followed and no proxy is used.
package webhook
