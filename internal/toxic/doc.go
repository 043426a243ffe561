// Package toxic proves that a bad network costs time and nothing else: workers, a producer, tails and waiters each talk
// to one server through a proxy of their own, and the proxies turn toxic and restore while work goes on.
//
//	workers ──proxy──┐
//	producer ─proxy──┼──▶ server ◀── audit, without a proxy
//	readers ──proxy──┘
//
// Toxics: latency with jitter, a narrow link, resets in the middle of a reply, connections that are accepted and never
// answered, one direction or both gone (what was sent meanwhile arrives after the connection is restored, as late
// packets do), closes that take their time. When all is restored, everything that was acknowledged has ended once,
// every tail and every waiter has come to its end, no frame is missing, and no goroutine is left.
//
// The proxy is our own, in proxy_test.go: the ready-made one comes with an HTTP server, a router and a logger that
// every user of this module would have in its module graph, and cannot hold bytes back to deliver them late.
package toxic
