//go:build unix

package crash_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/must"
	"github.com/flowfabric/flowfabric-go/internal/testserver"
	"github.com/flowfabric/flowfabric-go/internal/testwait"
)

// The server is killed under load and comes back with everything it has answered (fsync always). No acknowledged
// submit is lost, what was submitted without an answer is there or not, everything that is there ends once, and
// workers and producer find their way back by themselves, also when the library is gone.
func TestServerKilledWithEveryWriteOnDisk(t *testing.T) {
	jobs := number(t, "FLOWFABRIC_CRASH_SERVER_EXECUTIONS", 3_000, 50_000)
	kills := number(t, "FLOWFABRIC_CRASH_SERVER_KILLS", 4, 50)
	for _, kind := range []testserver.Kind{testserver.ServerRedis, testserver.ServerFolder} {
		t.Run(string(kind), func(t *testing.T) {
			keepsEverything(t, testserver.Start(t, kind, testserver.AOF()), jobs, kills)
		})
	}
}

func keepsEverything(t *testing.T, server *testserver.Server, jobs, kills int) {
	f := besiege(t, server, jobs, kills, nil)

	fates, existing := f.fates(jobs), f.cores(jobs)
	lost, unknown, present := 0, 0, 0
	for i, acked := range fates.acked {
		if acked && !existing[i] {
			lost++
		}
		if fates.unknown[i] {
			unknown++
			if existing[i] {
				present++
			}
		}
	}
	if lost > 0 {
		t.Errorf("%d of %d acknowledged submits are lost", lost, fates.acks)
	}
	t.Logf("%d submits acknowledged, %d lost; %d without an answer, of which %d exist", fates.acks, lost, unknown,
		present)
	f.ended(existing, false)
	readLedger(t, f.journals()).check(t)
	f.sound(f.count(":done"), false)
}

// The server loses the end of its log, as a power cut does to fsync everysec. What it answered in that time may be
// gone, which is counted; what is left is sound, ends, and nobody has to be restarted.
func TestServerLosesItsLastSecond(t *testing.T) {
	jobs := number(t, "FLOWFABRIC_CRASH_SERVER_EXECUTIONS", 3_000, 50_000)
	kills := number(t, "FLOWFABRIC_CRASH_SERVER_KILLS", 4, 50)
	redis := []testserver.Option{testserver.Args("--appendonly", "yes", "--appendfsync", "everysec",
		"--auto-aof-rewrite-percentage", "0")}
	t.Run("redis-server", func(t *testing.T) {
		losesItsEnd(t, testserver.Start(t, testserver.ServerRedis, redis...), jobs, kills, wholeTransactions)
	})
	t.Run("flowfabric", func(t *testing.T) {
		losesItsEnd(t, testserver.Start(t, testserver.ServerFolder), jobs, kills, func(log []byte) int64 {
			return int64(len(log)) // it cuts off a torn end by itself
		})
	})
}

// losesItsEnd cuts off some of the log at each kill. whole is how much of what it would leave the server can read.
func losesItsEnd(
	t *testing.T, server *testserver.Server, jobs, kills int, whole func(log []byte) int64,
) {
	var cut int64
	f := besiege(t, server, jobs, kills, func(f *fleet, before int64) {
		path := logOf(t, server)
		log, err := os.ReadFile(path)
		must.No(t, err)
		size := int64(len(log))
		before = min(before, size) // the log may have been rewritten meanwhile
		keep := before + whole(log[before:before+f.random.Int64N(max(1, size-before))])
		must.No(t, os.Truncate(path, keep))
		cut += size - keep
	})

	fates, existing := f.fates(jobs), f.cores(jobs)
	lost := 0
	for i, acked := range fates.acked {
		if acked && !existing[i] {
			lost++
		}
	}
	t.Logf("%d bytes of the log cut off in %d crashes: %d of %d acknowledged submits are lost", cut, kills, lost,
		fates.acks)
	if cut == 0 {
		t.Error("nothing was cut off: nothing was proved")
	}
	if r := f.ended(existing, true); r.frameless > fates.acks/100 {
		t.Errorf("%d executions failed because the server lost their frames, want at most 1 %%", r.frameless)
	} else {
		t.Logf("%d executions failed because the server lost frames of each of their attempts", r.frameless)
	}
	f.sound(f.count(":done"), true)
}

// wholeTransactions is the length of the transactions that a piece of a log, which begins between two, holds whole.
// The log is never cut inside one: Redis 7.0 keeps the half (MULTI without EXEC) when it starts, appends behind it, and
// no longer reads what it appended when it starts again, so acknowledged writes of the second life would be lost, too.
// redis-check-aof --fix repairs that before the first start.
func wholeTransactions(log []byte) (whole int64) {
	inside := false
	for at := 0; at < len(log); {
		size, name := command(log[at:])
		if size == 0 {
			break
		}
		at += size
		switch name {
		case "MULTI":
			inside = true
		case "EXEC":
			inside = false
		}
		if !inside {
			whole = int64(at)
		}
	}
	return whole
}

// command is the length of the command that a log begins with, and its name; 0 when it is not whole.
func command(log []byte) (size int, name string) {
	line := func() (int, bool) {
		end := bytes.Index(log[size:], []byte("\r\n"))
		if end < 1 {
			return 0, false
		}
		n, err := strconv.Atoi(string(log[size+1 : size+end]))
		size += end + 2
		return n, err == nil
	}
	count, ok := line()
	for i := 0; ok && i < count; i++ {
		var n int
		if n, ok = line(); !ok || size+n+2 > len(log) {
			return 0, ""
		}
		if i == 0 {
			name = string(log[size : size+n])
		}
		size += n + 2
	}
	if !ok {
		return 0, ""
	}
	return size, name
}

// besiege kills the server again and again while a fleet works, drops the library once in between, and waits until
// everything that exists has ended and the fleet has stopped. between runs while the server is down and is told how
// long its log was a little earlier.
func besiege(t *testing.T, server *testserver.Server, jobs, kills int, between func(f *fleet, logged int64)) *fleet {
	t.Helper()
	ctx, cancel := testwait.Context(t, t.Context())
	t.Cleanup(cancel)
	began := time.Now()
	f := muster(t, ctx, server.URL(), 16, 300*time.Millisecond)
	for n := range kills {
		f.allow(jobs * (2*n + 1) / (2*kills + 1))
		f.progress()
		logged := sizeOf(t, logOf(t, server))
		f.allow(jobs * (2*n + 2) / (2*kills + 1)) // so that the server dies while these come in
		f.progress()
		server.Kill()
		if between != nil {
			between(f, logged)
		}
		server.Restart()
		if n == kills/2 {
			for f.raw.Do(ctx, f.raw.B().FunctionFlush().Build()).Error() != nil && ctx.Err() == nil {
				continue // the connection died with the server
			}
		}
	}
	f.allow(jobs)
	f.submitted()
	f.settled(jobs)
	t.Logf("%d jobs, %d crashes of the server, everything ended after %v", jobs, kills,
		time.Since(began).Round(time.Millisecond))
	f.stand()
	return f
}

// progress waits until the producer has said something and something has ended since.
func (f *fleet) progress() {
	f.t.Helper()
	before := f.count(":done")
	f.producer.expect(f.t, "at ")
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for f.count(":done") < before+20 {
		select {
		case <-f.ctx.Done():
			f.t.Fatalf("nothing ends: %s", f.stuck(f.upto))
		case <-again.C:
		}
	}
}

// logOf finds the file that a server appends to.
func logOf(t *testing.T, server *testserver.Server) string {
	t.Helper()
	dir := filepath.Dir(strings.TrimPrefix(server.URL(), "unix://"))
	found, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if strings.HasPrefix(server.URL(), "redis://") {
		found, err = filepath.Glob(filepath.Join(server.Folder(), "log-*.resp"))
	}
	if err != nil || len(found) == 0 {
		t.Fatalf("log files: %v (%v)", found, err)
	}
	return slices.MaxFunc(found, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	must.No(t, err)
	return info.Size()
}
