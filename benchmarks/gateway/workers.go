package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
)

var work = handler.Define[int, int]("work")

// call makes a JSON call and decodes its answer.
func (b *bench) call(path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	q, err := http.NewRequestWithContext(b.ctx, http.MethodPost, b.base+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	text, err = io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= 300 {
		err = fmt.Errorf("%s: %d %s", path, r.StatusCode, text)
	}
	if err == nil && into != nil {
		err = json.Unmarshal(text, into)
	}
	return err
}

// remote is a worker over HTTP.
type remote struct {
	b    *bench
	path string
}

type claims struct {
	Executions []struct {
		Lease string `json:"lease"`
	} `json:"executions"`
}

func (b *bench) remote(kind string) (*remote, error) {
	var made struct {
		Session string `json:"session"`
	}
	err := b.call("/v1/workers", map[string]any{"kinds": []string{kind}}, &made)
	return &remote{b, "/v1/workers/" + made.Session}, err
}

func (r *remote) claim(most int, wait time.Duration) (c claims, err error) {
	err = r.b.call(r.path+":claim", map[string]any{"max": most, "wait_ms": wait.Milliseconds()}, &c)
	return c, err
}

func (r *remote) close() error {
	return r.b.call(r.path+":close", map[string]any{"leases": []string{}}, nil)
}

// fill submits what a drain takes.
func (b *bench) fill() error {
	inputs := make([]int, 500)
	for range (b.o.Work + len(inputs) - 1) / len(inputs) {
		if _, err := client.SubmitMany(b.ctx, b.client, work, inputs); err != nil {
			return err
		}
	}
	return nil
}

// drains compares workers over HTTP with a worker in Go, 64 executions at once each.
func (b *bench) drains() error {
	for round := range 3 {
		direct, err := b.drainGo()
		if err != nil {
			return err
		}
		one, err := b.drainHTTP(64, 1)
		if err != nil {
			return err
		}
		sixteen, err := b.drainHTTP(4, 16)
		if err != nil {
			return err
		}
		fmt.Fprintf(b.out,
			"drain of executions that do nothing, round %d: worker in Go %.0f/s; over HTTP 64 workers that claim one %.0f/s, 4 workers that claim 16 %.0f/s\n",
			round+1, direct, one, sixteen)
	}
	return nil
}

func (b *bench) drainGo() (float64, error) {
	if err := b.fill(); err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	var done atomic.Int64
	all := make(chan struct{})
	w, err := runtime.New(runtime.Config{URL: b.store.URL(), Concurrency: 64, Logger: slog.New(slog.DiscardHandler)},
		handler.Bind(work, func(context.Context, *handler.Task, int) (int, error) {
			if done.Add(1) == int64(b.o.Work) {
				close(all)
			}
			return 0, nil
		}))
	if err != nil {
		return 0, err
	}
	var running conc.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	began := time.Now()
	running.Go(func() { cancel(w.Run(ctx)) })
	select {
	case <-all:
		return float64(b.o.Work) / time.Since(began).Seconds(), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
}

func (b *bench) drainHTTP(workers, most int) (float64, error) {
	if err := b.fill(); err != nil {
		return 0, err
	}
	var done atomic.Int64
	var failed atomic.Pointer[error]
	var group conc.WaitGroup
	began := time.Now()
	for range workers {
		group.Go(func() {
			r, err := b.remote("work")
			for err == nil && done.Load() < int64(b.o.Work) && failed.Load() == nil {
				var c claims
				if c, err = r.claim(most, 100*time.Millisecond); err != nil {
					break
				}
				var each conc.WaitGroup
				for _, x := range c.Executions {
					each.Go(func() {
						if err := b.call(r.path+":complete", map[string]any{"lease": x.Lease, "result": 1},
							nil); err != nil {
							failed.Store(&err)
						}
						done.Add(1)
					})
				}
				each.Wait()
			}
			if err == nil {
				err = r.close()
			}
			if err != nil {
				failed.Store(&err)
			}
		})
	}
	group.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// lone is how long it takes from a submission to the answer of a claim that waits.
func (b *bench) lone() error {
	r, err := b.remote("lone")
	if err != nil {
		return err
	}
	var took []time.Duration
	for range 200 {
		answered := make(chan error, 1)
		var at time.Time
		go func() {
			c, err := r.claim(1, 10*time.Second)
			at = time.Now()
			if err == nil && len(c.Executions) != 1 {
				err = errors.New("a lone execution was not claimed")
			}
			if err == nil {
				err = b.call(r.path+":complete", map[string]any{"lease": c.Executions[0].Lease}, nil)
			}
			answered <- err
		}()
		time.Sleep(5 * time.Millisecond) // the claim waits
		began := time.Now()
		if _, err := client.Submit(b.ctx, b.client, handler.Define[int, int]("lone"), 1); err != nil {
			return err
		}
		if err := <-answered; err != nil {
			return err
		}
		took = append(took, at.Sub(began))
	}
	slices.Sort(took)
	fmt.Fprintf(b.out,
		"a lone execution, from Submit to the answer of a claim that waits over HTTP: median %s, 95 %% %s\n",
		took[100].Round(10*time.Microsecond), took[190].Round(10*time.Microsecond))
	return r.close()
}

// burned is the processor time of a process.
func burned(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// idle is what workers cost that wait for work.
func (b *bench) idle() error {
	before, err := b.resident()
	if err != nil {
		return err
	}
	var group conc.WaitGroup
	var failed atomic.Pointer[error]
	stop := make(chan struct{})
	for range b.o.Idle {
		r, err := b.remote("never")
		if err != nil {
			return err
		}
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := r.claim(1, 20*time.Second); err != nil {
					failed.Store(&err)
					return
				}
			}
		})
	}
	time.Sleep(3 * time.Second) // all of them wait
	after, err := b.resident()
	if err != nil {
		return err
	}
	const window = 20 * time.Second
	var used [2]time.Duration
	for i, pid := range []int{b.pid, b.store.PID()} {
		if used[i], err = burned(pid); err != nil {
			return err
		}
	}
	time.Sleep(window)
	for i, pid := range []int{b.pid, b.store.PID()} {
		now, err := burned(pid)
		if err != nil {
			return err
		}
		used[i] = now - used[i]
	}
	close(stop)
	fmt.Fprintf(b.out,
		"idle, %d workers that wait over HTTP: %.1f KiB each in flowfabric serve, which uses %.2f %% of a core, and the store %.2f %%\n",
		b.o.Idle, float64(after-before)/float64(b.o.Idle), 100*used[0].Seconds()/window.Seconds(),
		100*used[1].Seconds()/window.Seconds())
	group.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}
