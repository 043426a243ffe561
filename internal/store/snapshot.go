package store

// snapshot is what a rewrite of the log still has to write: all keys as they were when it began. A nil one takes
// nothing.
type snapshot struct {
	id   uint32
	kept []keptKey
}

type keptKey struct {
	key     string
	value   value
	expires int64
}

func (s *snapshot) number() uint32 {
	if s == nil {
		return 0
	}
	return s.id
}

// keep takes a key that is about to change or to go, unless the snapshot has it already.
func (s *snapshot) keep(key string, e *entry) {
	if s == nil || e.taken == s.id {
		return
	}
	e.taken = s.id
	s.kept = append(s.kept, keptKey{key, e.value.clone(), e.expires})
}
