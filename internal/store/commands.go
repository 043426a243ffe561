package store

// commands are all that a store knows. Each file of values adds its own.
var commands = map[string]*command{}

func read(name string, least, most int, run runner) {
	commands[name] = &command{run, least, most, false}
}
func write(name string, least, most int, run runner) {
	commands[name] = &command{run, least, most, true}
}
