//go:build unix

package testserver

import "syscall"

// Pause stops the server's process without ending it: it answers nobody, and its connections stay open.
func (s *Server) Pause() { _ = s.process.Signal(syscall.SIGSTOP) }

// Resume lets a paused server go on where it was.
func (s *Server) Resume() { _ = s.process.Signal(syscall.SIGCONT) }

// CrashBehind is [Nodes.Crash] with a replica that is behind: nothing of what the primary acknowledges during meanwhile
// survives it.
func (c *Nodes) CrashBehind(slot int, meanwhile func()) (dead *Server) {
	c.t.Helper()
	primary := c.NodeOf(slot)
	replica := c.ReplicaOf(primary)
	replica.Pause()
	primary.do("CLIENT", "KILL", "TYPE", "replica") // what it was sent before, it will still read
	meanwhile()
	primary.Kill()
	replica.Resume()
	c.await("a replica takes over from a dead primary", func() bool { return c.NodeOf(slot) != nil })
	c.Settled()
	return primary
}

// Hang pauses a primary until the Sentinels have replaced it. It still takes itself for the primary when it is
// resumed, until they tell it.
func (w *Set) Hang(primary *Server) {
	w.t.Helper()
	primary.Pause()
	w.await("the Sentinels replace a primary that hangs", func() string {
		if w.replaced(primary) {
			return ""
		}
		return "the old one remains"
	})
}
