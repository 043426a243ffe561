// Package gateway takes work for workers that are elsewhere and ask for it call by call: those that speak HTTP. It
// keeps nothing that a worker needs: each execution is claimed under a session of its own, so that its lease is that
// session's, the fence says all there is to know, and any process can renew and settle what another one handed out.
// What is not renewed goes to somebody else, whether this process lives or not.
//
// What the gateway does keep makes waiting cheap. Workers that serve the same wait together, as one waiter: a
// partition rings the gateway, which lets the worker look that has waited longest.
package gateway
