package suspend

// Event says which published event a handler expects, see handler.Task.Expect.
type Event struct {
	// Subject is that of the events, as client.Publish says it: 1..128 bytes of printable ASCII without braces.
	Subject string
	// Where is the filter: fields of the data, by names joined by dots, and the string, number, boolean or null that
	// each must have, at most 8. All must match; fields inside of lists match nothing. Empty: every event matches.
	Where map[string]any
}
