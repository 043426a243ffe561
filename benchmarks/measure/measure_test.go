package measure_test

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/measure"
)

func TestLatencies(t *testing.T) {
	samples := make([]time.Duration, 200) // 200 ms … 1 ms, unsorted
	for i := range samples {
		samples[i] = time.Duration(200-i) * time.Millisecond
	}
	f := measure.Figures{}
	f.Latencies(samples)
	if f[measure.P50] != 100 || f[measure.P99] != 198 {
		t.Errorf("p50 %v, p99 %v, want 100 and 198", f[measure.P50], f[measure.P99])
	}
	one := measure.Figures{}
	one.Latencies([]time.Duration{time.Millisecond})
	if one[measure.P50] != 1 || one[measure.P99] != 1 {
		t.Errorf("of one sample: %v", one)
	}
	none := measure.Figures{}
	if none.Latencies(nil); len(none) != 0 {
		t.Errorf("of no sample: %v", none)
	}
}

func TestSummary(t *testing.T) {
	got := measure.Summary([]measure.Figures{{"a": 3, "b": 1}, {"a": 1}, {"a": 2, "b": 2}})
	if want := (measure.Spread{Median: 2, Min: 1, Max: 3}); got["a"] != want {
		t.Errorf("a is %+v, want %+v", got["a"], want)
	}
	if _, ok := got["b"]; ok {
		t.Error("b was summed up although a round lacks it")
	}
	if m := measure.Median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("median %v, want 2.5", m)
	}
}

// script is a server whose samples are given.
type script struct {
	driver.Server
	samples []driver.Sample
}

func (s *script) Sample(context.Context) (driver.Sample, error) {
	next := s.samples[0]
	s.samples = s.samples[1:]
	return next, nil
}

func TestMeter(t *testing.T) {
	s := &script{samples: []driver.Sample{
		{CPU: time.Second, Commands: map[string]driver.Command{"fcall": {Calls: 10, USec: 100},
			"hget": {Calls: 7, USec: 7}}},
		{CPU: time.Second + 20*time.Millisecond, Commands: map[string]driver.Command{
			"fcall": {Calls: 15, USec: 200}, "hget": {Calls: 7, USec: 7}, "zadd": {Calls: 4, USec: 5},
			"ping": {Calls: 1, USec: 1}}},
	}}
	m, err := measure.Start(t.Context(), s, "")
	if err != nil {
		t.Fatal(err)
	}
	f, commands, err := m.Stop(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if f[measure.ServerItem] != 10_000 || f[measure.CallsItem] != 3 || f[measure.CmdsItem] != 5 ||
		f[measure.Items] != 2 {
		t.Errorf("%+v", f)
	}
	if f[measure.Seconds] <= 0 || f[measure.Throughput] != 2/f[measure.Seconds] {
		t.Errorf("time: %+v", f)
	}
	if len(commands) != 3 || commands["fcall"] != (driver.Command{Calls: 5, USec: 100}) {
		t.Errorf("commands: %+v", commands)
	}
}

// The processor time of a process is known from outside as from inside.
func TestProcessTime(t *testing.T) {
	before, err := measure.ProcessTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < 100*time.Millisecond; {
	}
	after, err := measure.ProcessTime(os.Getpid())
	if err != nil || after <= before {
		t.Errorf("%v, then %v after a tenth of a second of work: %v", before, after, err)
	}
	if _, err := measure.ProcessTime(1 << 30); err == nil {
		t.Error("a process that does not exist has a processor time")
	}
}

func TestEndedChildrenTime(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells what processes have used that have ended")
	}
	ended := func() time.Duration {
		used, err := measure.EndedChildrenTime(os.Getpid())
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	before := ended()
	cmd := exec.Command("sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	const rounded = 20 * time.Millisecond // two ticks
	state := cmd.ProcessState
	if got, want := ended()-before, state.UserTime()+state.SystemTime(); got < want-rounded || got > want+rounded {
		t.Errorf("the child has used %v, want %v", got, want)
	}
}

func TestMemory(t *testing.T) {
	is, err := measure.Memory(os.Getpid())
	if err != nil || is < 1<<20 {
		t.Errorf("%d bytes, %v", is, err)
	}
	if _, err := measure.Memory(1 << 30); err == nil {
		t.Error("a process that is not there has memory")
	}
}
