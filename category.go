package flowfabric

// Category is the kind of a failure: why an attempt or an execution ended without success, such as "handler_panic".
// The package comment lists all that workers and the store give, and a handler may give others (handler.Category).
type Category string
