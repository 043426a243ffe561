package store

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/internal/must"
)

// BenchmarkCalls is what a call costs that changes four fields of a hash: in memory, with a folder, and with a sync.
func BenchmarkCalls(b *testing.B) {
	for _, mode := range []string{"memory", "everysec", "always"} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprint(mode, "/callers=", callers), func(b *testing.B) {
				s := New(nil)
				var syncs atomic.Int64
				watchSteps(b, func(what, path string) error {
					if what == "sync" {
						syncs.Add(1)
					}
					return nil
				})
				if mode != "memory" {
					s, _ = opened(b, b.TempDir(), mode == "always")
				}
				var key atomic.Int64
				b.SetParallelism((callers + 1) / 2) // of two processors
				call := func() {
					s.Lock()
					s.Do([]string{"HSET", strconv.FormatInt(key.Add(1)%1000, 10), "state", "running", "worker", "w-1",
						"attempt", "1", "started", "1700000000000"})
					if err := s.Wait(s.Unlock()); err != nil {
						b.Error(err)
					}
				}
				if callers == 1 {
					for b.Loop() {
						call()
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						call()
					}
				})
				if mode == "always" {
					b.ReportMetric(float64(b.N)/float64(syncs.Load()), "calls/sync")
				}
			})
		}
	}
}

// BenchmarkSync is what 64 callers that wait for the disk take beside the time that it needs for their syncs alone.
// Syncs of a record of 200 bytes and calls alternate, because a disk is not as fast at one time as at another.
func BenchmarkSync(b *testing.B) {
	const callers, each = 64, 10
	file, err := os.Create(filepath.Join(b.TempDir(), "file"))
	must.No(b, err)
	defer file.Close()
	record := make([]byte, 200)
	var syncs, alone, groups atomic.Int64
	watchSteps(b, func(what, path string) error {
		if what == "sync" {
			groups.Add(1)
		}
		return nil
	})
	s, _ := opened(b, b.TempDir(), true)
	for b.Loop() {
		began := time.Now()
		for range each {
			_, err := file.Write(record)
			must.No(b, err)
			must.No(b, file.Sync())
			syncs.Add(1)
		}
		alone.Add(int64(time.Since(began)))
		var all conc.WaitGroup
		for caller := range callers {
			all.Go(func() {
				for range each {
					s.Lock()
					s.Do([]string{"HSET", strconv.Itoa(caller), "state", "running", "worker", "w-1", "attempt", "1"})
					if err := s.Wait(s.Unlock()); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	disk := float64(alone.Load()) / float64(syncs.Load()) // of one sync
	calls := float64(b.Elapsed().Nanoseconds() - alone.Load())
	b.ReportMetric(disk/1e3, "µs/sync")
	b.ReportMetric(callers*each*float64(b.N)/float64(groups.Load()), "calls/sync")
	b.ReportMetric(calls/(disk*float64(groups.Load())), "times-the-disk")
}

// BenchmarkRecovery reads a million hashes of 20 fields, from a log and from a base.
func BenchmarkRecovery(b *testing.B) {
	folder := b.TempDir()
	s, _ := opened(b, folder, false)
	const hashes = 1_000_000
	args := []string{"HSET", ""}
	for f := range 20 {
		args = append(args, fmt.Sprint("field-", f), fmt.Sprint("value-", f))
	}
	for i := range hashes {
		s.Lock()
		args[1] = "execution:" + strconv.Itoa(i)
		s.Do(args)
		if position := s.Unlock(); i%100 == 0 {
			must.No(b, s.Wait(position))
		}
	}
	must.No(b, s.Close())
	for _, from := range []string{"log", "base"} {
		b.Run(from, func(b *testing.B) {
			for b.Loop() {
				s, _ := opened(b, folder, false)
				b.StopTimer()
				if keys, _ := s.Size(); keys != hashes {
					b.Fatal(keys)
				}
				if from == "base" {
					b.ReportMetric(float64(s.log.file.since), "log-bytes")
				}
				must.No(b, s.Close())
				b.StartTimer()
			}
		})
		s, _ := opened(b, folder, false)
		must.No(b, s.Rewrite())
		must.No(b, s.Close())
	}
}
