package store

// snapshot is what a rewrite of the log still has to write: all keys as they were when it began. A nil one takes
// nothing.
type snapshot struct {
	id   uint32
	kept []keptKey
	next int // the bucket that is walked next
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

// keysAtOnce bounds how many keys a snapshot takes while calls wait. A bucket is taken as a whole.
const keysAtOnce = 500

// walk takes some keys, and what calls made the snapshot keep since the last time. last means that it has everything.
// It is called without the lock.
func (s *Store) walk(spare []keptKey) (kept []keptKey, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	shot := s.snapshot
	for ; shot.next < buckets && len(shot.kept) < keysAtOnce; shot.next++ {
		for key, e := range s.keys.buckets[shot.next] {
			shot.keep(key, e)
		}
	}
	kept, shot.kept = shot.kept, spare[:0]
	if shot.next == buckets {
		s.snapshot = nil
		return kept, true
	}
	return kept, false
}
