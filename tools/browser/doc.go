// Package browser drives the page of package approval in a headless Chromium: what a person sees, reaches
// with the keyboard and clicks, from the link to the handler that goes on. A page that follows an execution over the
// HTTP API is loaded again in the middle of the stream, while the worker is killed, and so is the page of
// examples/chat. The page of examples/chat-react is installed from its lock, built, and driven with both of its
// transports. The dashboard is walked through in all roles, widths and colours. `make test` runs it last, `make
// browser` alone. It is a module of its own, so that the library does not depend on what drives the browser.
//
// Each run leaves screenshots in the folder screenshots, for people to look at.
package browser
