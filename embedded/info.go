package embedded

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strings"
	"time"
)

// settings are what CONFIG GET tells.
func (s *Server) settings() [][2]string {
	appends, syncs := "no", "everysec"
	if s.dir != "" {
		appends = "yes"
	}
	if s.fsyncAlways {
		syncs = "always"
	}
	return [][2]string{{"maxmemory", "0"}, {"maxmemory-policy", "noeviction"}, {"appendonly", appends},
		{"appendfsync", syncs}, {"save", ""}, {"databases", "1"}}
}

// info is INFO [section…].
func info(c *session, args []string) {
	var b strings.Builder
	for _, section := range []struct {
		name  string
		lines func() []string
	}{{"Server", c.srv.aboutServer}, {"Clients", c.srv.aboutClients}, {"Memory", aboutMemory},
		{"Persistence", c.srv.aboutPersistence}, {"Stats", c.srv.aboutStats},
		{"Commandstats", c.srv.aboutCalls},
		{"Replication", func() []string { return []string{"role:master", "connected_slaves:0"} }},
		{"Keyspace", c.srv.aboutKeys}} {
		if len(args) > 1 && !slices.ContainsFunc(args[1:], func(asked string) bool {
			return strings.EqualFold(asked, section.name) || slices.Contains([]string{"all", "default", "everything"},
				strings.ToLower(asked))
		}) {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("\r\n")
		}
		fmt.Fprintf(&b, "# %s\r\n%s\r\n", section.name, strings.Join(section.lines(), "\r\n"))
	}
	c.text(b.String())
}

func (s *Server) aboutServer() []string {
	return []string{"redis_version:" + version, "flowfabric_version:" + moduleVersion(), "redis_mode:standalone",
		"os:" + runtime.GOOS, "arch_bits:64", fmt.Sprintf("process_id:%d", os.Getpid()), "run_id:" + s.runID,
		fmt.Sprintf("uptime_in_seconds:%d", int64(time.Since(s.started).Seconds()))}
}

// moduleVersion is the version of the module that this package came with.
func moduleVersion() string {
	const path = "github.com/flowfabric/flowfabric-go"
	if b, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append([]*debug.Module{&b.Main}, b.Deps...) {
			if m.Path == path && m.Version != "" {
				return m.Version
			}
		}
	}
	return "(devel)"
}

func (s *Server) aboutClients() []string {
	return []string{fmt.Sprintf("connected_clients:%d", s.connections())}
}

// aboutMemory tells the memory of the process, of which the store is a part.
func aboutMemory() []string {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return []string{fmt.Sprintf("used_memory:%d", samples[0].Value.Uint64()),
		fmt.Sprintf("used_memory_rss:%d", samples[1].Value.Uint64()-samples[2].Value.Uint64()),
		"maxmemory:0", "maxmemory_policy:noeviction"}
}

func (s *Server) aboutPersistence() []string {
	enabled, status := 0, "ok"
	if s.dir != "" {
		enabled = 1
	}
	if s.store.Refuses() != nil {
		status = "err"
	}
	return []string{"loading:0", "rdb_bgsave_in_progress:0", fmt.Sprintf("aof_enabled:%d", enabled),
		"aof_last_write_status:" + status}
}

func (s *Server) aboutStats() []string {
	return []string{fmt.Sprintf("total_connections_received:%d", s.lastID.Load()),
		fmt.Sprintf("total_commands_processed:%d", s.commands.Load()), "evicted_keys:0"}
}

// aboutCalls counts the calls of functions that may write: an import asks for them to see whether anybody wrote.
func (s *Server) aboutCalls() []string {
	return []string{fmt.Sprintf("cmdstat_fcall:calls=%d", s.calls.Load())}
}

func (s *Server) aboutKeys() []string {
	keys, expiring := s.store.Size()
	if keys == 0 {
		return nil
	}
	return []string{fmt.Sprintf("db0:keys=%d,expires=%d,avg_ttl=0", keys, expiring)}
}
