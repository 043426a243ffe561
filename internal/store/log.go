package store

// log is the append-only file.
type log struct {
	reading bool // what is in the files is being carried out
}

// append takes the effects of a call, with the store locked, and returns the position behind them.
func (l *log) append(e effects) int64 { return 0 } // TODO(D)

// Wait returns once everything up to a position is as safe as the store promises. It is called without the lock.
func (s *Store) Wait(position int64) error { return nil } // TODO(D)
