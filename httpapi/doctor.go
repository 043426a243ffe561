package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/doctor"
	"github.com/flowfabric/flowfabric-go/internal/engine"
)

const (
	examinationFresh = 5 * time.Second  // how long an examination answers further requests
	examinationTime  = 20 * time.Second // how long one may take; what was not read by then is a finding
)

// checkup is what an examination found, as flowfabric doctor --json prints it.
type checkup struct {
	Healthy     bool      `json:"healthy" jsonschema:"no check has failed"`
	Keys        int       `json:"keys" jsonschema:"that the primaries have"`
	AuditedKeys int       `json:"audited_keys" jsonschema:"how many of them an audit looked at: 0, because this makes none"`
	Checks      []finding `json:"checks"`
}

type finding struct {
	Check  string `json:"check" jsonschema:"the name of the check; it is there once for each node, or for the deployment"`
	Status string `json:"status" jsonschema:"ok, warn, fail, or skip: the check could not be made"`
	Node   string `json:"node,omitempty" jsonschema:"the address of the node"`
	Found  string `json:"found" jsonschema:"for people"`
	Do     string `json:"do,omitempty" jsonschema:"what to do about it"`
}

// examinations makes one examination for all requests that come while it runs, or soon after.
type examinations struct {
	mu      sync.Mutex
	last    checkup
	at      time.Time     // of last; zero: there is none
	running chan struct{} // is closed when the examination that runs has ended; nil: none runs
}

// get returns a fresh checkup. The first request that needs one makes it, also when its caller leaves: others may
// wait for it.
func (x *examinations) get(ctx context.Context, diagnose func(context.Context) engine.Diagnosis) (checkup, error) {
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
			return checkup{}, context.Cause(ctx)
		}
	}
}

// make examines the deployment.
func (x *examinations) make(ctx context.Context, diagnose func(context.Context) engine.Diagnosis) (out checkup) {
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
	found := doctor.Examine(diagnose(ctx))
	out = checkup{Healthy: found.Healthy, Keys: found.Keys, AuditedKeys: found.AuditedKeys,
		Checks: make([]finding, 0, len(found.Checks))}
	for _, k := range found.Checks {
		out.Checks = append(out.Checks, finding{k.Name, string(k.Status), k.Node, k.Found, k.Do})
	}
	made = true
	return out
}

func (c *call) examine() error {
	found, err := c.h.doctor.get(c.ctx(), c.h.conn.Engine.Diagnose)
	if err != nil {
		return err
	}
	return c.answerJSON(http.StatusOK, found)
}
