package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/doctor"
)

const (
	examinationFresh = 5 * time.Second  // how long an examination answers further requests
	examinationTime  = 20 * time.Second // how long one may take; what was not read by then is a finding
)

// examinations makes one examination for all requests that come while it runs, or soon after.
type examinations struct {
	mu      sync.Mutex
	last    doctor.Checkup
	at      time.Time     // of last; zero: there is none
	running chan struct{} // is closed when the examination that runs has ended; nil: none runs
}

// get returns a fresh checkup. The first request that needs one makes it, also when its caller leaves: others may
// wait for it.
func (x *examinations) get(ctx context.Context,
	diagnose func(context.Context) doctor.Diagnosis) (doctor.Checkup, error) {
	for {
		x.mu.Lock()
		if !x.at.IsZero() && time.Since(x.at) < examinationFresh {
			defer x.mu.Unlock()
			return x.last, nil
		}
		running := x.running
		if running == nil {
			x.running = make(chan struct{})
			x.mu.Unlock()
			return x.make(ctx, diagnose), nil
		}
		x.mu.Unlock()
		select {
		case <-running: // it is fresh now, or failed: then this request makes the next one
		case <-ctx.Done():
			return doctor.Checkup{}, context.Cause(ctx)
		}
	}
}

// make examines the deployment.
func (x *examinations) make(ctx context.Context, diagnose func(context.Context) doctor.Diagnosis) (out doctor.Checkup) {
	made := false
	defer func() { // also after a panic, or everybody would wait for ever
		x.mu.Lock()
		defer x.mu.Unlock()
		if made {
			x.last, x.at = out, time.Now()
		}
		close(x.running)
		x.running = nil
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), examinationTime)
	defer cancel()
	out = doctor.Examine(diagnose(ctx))
	made = true
	return out
}

func (c *call) examine() (doctor.Checkup, error) {
	return c.h.doctor.get(c.ctx(), func(ctx context.Context) doctor.Diagnosis {
		return doctor.DiagnoseOpen(ctx, c.h.conn.Engine)
	})
}

type health struct {
	Status string `json:"status"`
}

func (c *call) healthz() error { return c.answerJSON(http.StatusOK, health{"ok"}) }

func (c *call) readyz() error {
	ctx, cancel := context.WithTimeout(c.ctx(), 2*time.Second)
	defer cancel()
	if err := c.h.client.Ping(ctx); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = flowfabric.ErrTransport
		}
		return err
	}
	return c.answerJSON(http.StatusOK, health{"ok"})
}
