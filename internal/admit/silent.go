package admit

import (
	"sync"
	"time"
)

// silent are the partitions that did not answer a question about suspects a moment ago.
type silent struct {
	mu    sync.Mutex
	until map[uint16]time.Time
}

func (s *silent) note(partition uint16) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until[partition] = time.Now().Add(silence)
}

func (s *silent) is(partition uint16) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.until[partition])
}
