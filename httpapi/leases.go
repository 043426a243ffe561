package httpapi

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/sourcegraph/conc/pool"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/denied"
	"github.com/flowfabric/flowfabric-go/internal/fault"
	"github.com/flowfabric/flowfabric-go/internal/ids"
)

type leasesBody struct {
	Leases []string `json:"leases" jsonschema:"of everything that it still works on, at most 1000"`
}

type leasesAnswer struct {
	Leases []leaseAnswer `json:"leases" jsonschema:"in the order of the request"`
}

type leaseAnswer struct {
	Lease    string `json:"lease"`
	Held     bool   `json:"held"`
	Code     string `json:"code,omitempty" jsonschema:"why it is not: stop working on it"`
	Stopping string `json:"stopping,omitempty" jsonschema:"somebody asked the execution to end what it says, and to keep what it has: the request of the newest stop, which is told again with every renewal. See the turn of a step"`
}

// leaseText is a fence as workers carry it, and what is to be known about its claim when it ends, which proves nothing.
func leaseText(f flowfabric.Fence, about string) string {
	text := fmt.Appendf(nil, "%s,%s,%d,%d,%d", f.Execution, f.Session, f.Claim, f.Epoch, f.Attempt)
	if about != "" {
		text = append(append(text, ','), about...)
	}
	return base64.RawURLEncoding.EncodeToString(text)
}

// mostAbout bounds what a lease says about its claim.
const mostAbout = 160

func parseLease(text string) (f flowfabric.Fence, ok bool) {
	f, _, ok = readLease(text)
	return f, ok
}

func readLease(text string) (f flowfabric.Fence, about string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	parts := strings.SplitN(string(raw), ",", 6)
	if len(parts) == 6 {
		about = parts[5]
	}
	if err != nil || len(parts) < 5 || len(parts[1]) > 64 || len(about) > mostAbout {
		return f, "", false
	}
	var e [4]error
	f.Execution, e[0] = flowfabric.ParseExecutionID(parts[0])
	f.Session = parts[1]
	f.Claim, e[1] = strconv.ParseUint(parts[2], 10, 53)
	f.Epoch, e[2] = strconv.ParseUint(parts[3], 10, 53)
	attempt, err := strconv.ParseUint(parts[4], 10, 32)
	f.Attempt, e[3] = uint32(attempt), err
	// others decode to the same bytes
	return f, about, errors.Join(e[:]...) == nil && leaseText(f, about) == text
}

func noLease(field string) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "fence_required", Field: field,
		Detail: "the lease is missing: it came with the execution"}
}

// fence reads a lease of a body: one that this session was given.
func (s *workerSession) fence(field, lease string) (flowfabric.Fence, error) {
	f, ok := parseLease(lease)
	switch {
	case lease == "":
		return f, noLease(field)
	case !ok:
		return f, invalid(field, "it is not a lease: pass the lease of the claim unchanged")
	case ids.Worker(f.Session) != s.id:
		return f, &problem{Status: http.StatusConflict, Code: flowfabric.CodeOf(denied.StaleLease), Field: field,
			Detail: "the lease is another session's"}
	}
	return f, nil
}

// fences reads the leases of a body: those that this session was given.
func (c *call) fences(leases []string, inFlight int) (*workerSession, []flowfabric.Fence, error) {
	if len(leases) > maxLeases {
		return nil, nil, invalid("/leases", "there are %d, want at most %d", len(leases), maxLeases)
	}
	s, err := c.session(inFlight)
	if err != nil {
		return nil, nil, err
	}
	fences := make([]flowfabric.Fence, len(leases))
	for i, lease := range leases {
		if fences[i], err = s.fence(fmt.Sprintf("/leases/%d", i), lease); err != nil {
			return nil, nil, err
		}
	}
	return s, fences, nil
}

func (c *call) renewWork(b *leasesBody) (none leasesAnswer, err error) {
	s, fences, err := c.fences(b.Leases, len(b.Leases))
	if err != nil {
		return none, err
	}
	out := leasesAnswer{Leases: make([]leaseAnswer, len(fences))}
	renewing := pool.New().WithErrors().WithMaxGoroutines(16)
	for i, f := range fences {
		renewing.Go(func() (err error) {
			out.Leases[i], err = c.renew(s, f, b.Leases[i])
			return err
		})
	}
	return out, renewing.Wait()
}

// renew extends one lease. An error says nothing about it: the worker asks again.
func (c *call) renew(s *workerSession, f flowfabric.Fence, lease string) (leaseAnswer, error) {
	stop, err := c.h.gateway.Renew(c.ctx(), f, s.lease)
	out := leaseAnswer{Lease: lease, Held: err == nil, Code: flowfabric.CodeOf(err), Stopping: stop}
	if denied.ClassOf(err) == fault.Stop || errors.Is(err, flowfabric.ErrOverBudget) {
		err = nil
	}
	return out, err
}
