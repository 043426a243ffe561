package store

// effects are the commands of a call that changed something, as they are written to the log.
type effects struct {
	text   []byte
	count  int
	buried int // of count: keys whose time has come
}

func (e *effects) add(args []string) {
	e.text = AppendCommand(e.text, args...)
	e.count++
}

// record ends the effects of a call.
func (s *Store) record() {
	if s.effects.count > 0 && s.log != nil && !s.log.reading {
		s.position = s.log.append(s.effects)
	}
	s.effects = effects{text: s.effects.text[:0]}
}
