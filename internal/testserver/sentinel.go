package testserver

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

const (
	// PrimaryName is what the Sentinels of a test call the primary.
	PrimaryName = "store"

	sentinelFile = "sentinel.conf"
	replicas     = 2
	watchers     = 3
	// downAfter is for how many milliseconds a primary may be silent. failoverAfter is how long a Sentinel waits
	// before it tries a failover again.
	downAfter, failoverAfter = 1000, 4000
)

// Set is a primary with two replicas and three Sentinels, on ports of 127.0.0.1 that only this test knows. Its
// methods belong to the test's goroutine; all of them fail the test rather than return an error.
type Set struct {
	t            testing.TB
	servers      []*Server
	sentinels    []*Server
	pass, secret string
}

// Passwords makes the servers of data ask for the one, and the Sentinels for the other.
type Passwords struct{ Data, Sentinel string }

// Sentinel starts a set and returns when all Sentinels know each other and the replicas, and the replicas are in
// step. Sentinels are the same program as the servers.
func Sentinel(t testing.TB, kind Kind, pass Passwords) *Set {
	t.Helper()
	w := &Set{t: t, pass: pass.Data, secret: pass.Sentinel}
	secret := func(s *Server) { s.pass = pass.Data }
	for range 1 + replicas {
		w.servers = append(w.servers,
			Start(t, kind, TCP(), secret, Args("--repl-diskless-sync-delay", "0", "--repl-ping-replica-period", "1")))
	}
	host, port, _ := net.SplitHostPort(w.servers[0].address)
	for _, s := range w.servers[1:] {
		s.do("REPLICAOF", host, port)
	}
	conf := fmt.Sprintf(
		"sentinel monitor %[1]s %[2]s %[3]s 2\nsentinel down-after-milliseconds %[1]s %[4]d\nsentinel failover-timeout %[1]s %[5]d\n",
		PrimaryName, host, port, downAfter, failoverAfter)
	if pass.Data != "" {
		conf += fmt.Sprintf("sentinel auth-pass %s %s\n", PrimaryName, pass.Data)
	}
	for range watchers {
		w.sentinels = append(w.sentinels,
			Start(t, kind, TCP(), func(s *Server) { s.pass, s.watch = pass.Sentinel, conf }))
	}
	w.Settled()
	return w
}

// configureSentinel writes the file in which a Sentinel also keeps what it learns.
func (s *Server) configureSentinel() {
	s.t.Helper()
	host, port, _ := net.SplitHostPort(s.address)
	conf := fmt.Sprintf("bind %s\nport %s\ndir %s\n", host, port, s.dir)
	if s.pass != "" {
		conf += fmt.Sprintf("requirepass %s\n", s.pass)
	}
	must.No(s.t, os.WriteFile(filepath.Join(s.dir, sentinelFile), []byte(conf+s.watch), 0o600))
}

// URL names all Sentinels, in the form engine.Config.URL takes.
func (w *Set) URL() string {
	addresses := make([]string, len(w.sentinels))
	for i, s := range w.sentinels {
		addresses[i] = s.address
	}
	url := strings.Join(addresses, ",") + "/" + PrimaryName
	if w.pass != "" {
		url = ":" + w.pass + "@" + url
	}
	if w.secret != "" {
		url += "?sentinel_password=" + w.secret
	}
	return "redis+sentinel://" + url
}

// Sentinels lists the Sentinels, killed ones too.
func (w *Set) Sentinels() []*Server { return w.sentinels }

// Primary is the live server that most live Sentinels call the primary and that is one; nil while there is none.
func (w *Set) Primary() *Server {
	votes := map[string]int{}
	for _, s := range live(w.sentinels) {
		reply, _ := s.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName)
		if at, ok := reply.([]any); ok && len(at) == 2 {
			votes[net.JoinHostPort(at[0].(string), at[1].(string))]++
		}
	}
	for _, s := range live(w.servers) {
		if votes[s.address] > len(live(w.sentinels))/2 && s.primary() {
			return s
		}
	}
	return nil
}

// replaced tells whether most Sentinels call another server the primary. The old one need not answer.
func (w *Set) replaced(old *Server) bool {
	others := 0
	for _, s := range live(w.sentinels) {
		reply, _ := s.ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName)
		if at, ok := reply.([]any); ok && len(at) == 2 && net.JoinHostPort(at[0].(string),
			at[1].(string)) != old.address {
			others++
		}
	}
	return others > len(live(w.sentinels))/2
}

// Replicas are the live servers besides the primary.
func (w *Set) Replicas() []*Server {
	primary := w.Primary()
	return slices.DeleteFunc(live(w.servers), func(s *Server) bool { return s == primary })
}

// Crash kills the primary and returns it once another took over. What it had not yet replicated is lost.
// [Server.Restart] brings it back, and the Sentinels then make it a replica.
func (w *Set) Crash() (dead *Server) {
	w.t.Helper()
	dead = w.Primary()
	dead.Kill()
	w.await("the Sentinels name a new primary", func() string {
		if now := w.Primary(); now == nil {
			return "there is none"
		}
		return ""
	})
	return dead
}

// Failover lets the Sentinels replace a primary that lives. Its last writes may be lost. It returns the new one.
func (w *Set) Failover() *Server {
	w.t.Helper()
	old := w.Primary()
	var now *Server
	var told time.Time
	w.await("the Sentinels replace the primary", func() string {
		if now = w.Primary(); now != nil && now != old {
			return ""
		}
		// timed: then they are told again
		if time.Since(told) > failoverAfter*time.Millisecond { // they refuse while another failover is fresh
			_, _ = w.sentinels[0].ask("SENTINEL", "FAILOVER", PrimaryName)
			told = time.Now()
		}
		return "the old one remains"
	})
	return now
}

// Settled waits until all live Sentinels agree and know each other, and the live replicas are in step with the primary.
func (w *Set) Settled() {
	w.t.Helper()
	w.await("the set settles", w.unsettled)
}

// unsettled says what is missing.
func (w *Set) unsettled() string {
	primary := w.Primary()
	if primary == nil {
		return "no primary"
	}
	for _, s := range live(w.sentinels) {
		reply, _ := s.ask("SENTINEL", "CKQUORUM", PrimaryName)
		if text, _ := reply.(string); !strings.HasPrefix(text, fmt.Sprintf("OK %d usable", len(live(w.sentinels)))) {
			return fmt.Sprintf("%s: %v", s.address, reply)
		}
		reply, _ = s.ask("SENTINEL", "REPLICAS", PrimaryName)
		if list, _ := reply.([]any); len(list) < replicas {
			return fmt.Sprintf("%s knows %d replicas", s.address, len(list))
		}
	}
	_, port, _ := net.SplitHostPort(primary.address)
	for _, s := range live(w.servers) {
		if s == primary {
			continue
		}
		reply, _ := s.ask("INFO", "replication")
		if text, _ := reply.(string); !strings.Contains(text, "master_link_status:up") || !strings.Contains(text,
			"master_port:"+port) {
			return s.address + " is not in step with the primary"
		}
	}
	return ""
}

// InStep waits until the live replicas have everything that the primary had when this was called.
func (w *Set) InStep() {
	w.t.Helper()
	goal := offset(w.Primary(), "master_repl_offset")
	w.await("the replicas are in step", func() string {
		for _, s := range w.Replicas() {
			if at := offset(s, "slave_repl_offset"); at < goal {
				return fmt.Sprintf("%s is at %d of %d", s.address, at, goal)
			}
		}
		return ""
	})
}

func offset(s *Server, field string) int64 {
	reply, _ := s.ask("INFO", "replication")
	text, _ := reply.(string)
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), field+":"); ok {
			n, _ := strconv.ParseInt(v, 10, 64)
			return n
		}
	}
	return -1
}

// Do runs a command on this server, which must succeed.
func (s *Server) Do(args ...string) any { s.t.Helper(); return s.do(args...) }

// primary tells whether this server takes itself for one.
func (s *Server) primary() bool {
	reply, _ := s.ask("ROLE")
	role, ok := reply.([]any)
	return ok && len(role) > 0 && role[0] == "master"
}

func live(servers []*Server) []*Server {
	return slices.DeleteFunc(slices.Clone(servers), func(s *Server) bool { return s.process == nil })
}

// await waits until why says nothing any more.
func (w *Set) await(what string, why func() string) {
	w.t.Helper()
	testwait.Progress(w.t, what, func() (bool, any) {
		text := why()
		return text == "", text
	})
}
