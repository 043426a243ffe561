// Package doctor judges whether a deployment is healthy: it turns what engine.Diagnose has read into findings, and
// what to do about them. It makes no call itself. The command "flowfabric doctor" and the HTTP API show the same
// findings.
package doctor

// Status is the result of a check.
type Status string

// The results. Skip means that the check could not be made.
const (
	OK   Status = "ok"
	Warn Status = "warn"
	Fail Status = "fail"
	Skip Status = "skip"
)

// Check is one thing that was looked at. Do says what to do about it.
type Check struct {
	Name   string `json:"check"`
	Status Status `json:"status"`
	Node   string `json:"node,omitempty"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"`
}

// Checkup is what an examination found. [Examine] makes one.
type Checkup struct {
	Healthy bool    `json:"healthy"` // nothing has failed
	Checks  []Check `json:"checks"`
}

// Add adds a check.
func (c *Checkup) Add(name string, s Status, node, found, do string) {
	c.Healthy = c.Healthy && s != Fail
	c.Checks = append(c.Checks, Check{name, s, node, found, do})
}

// Worst counts the checks that failed, and those that warn.
func (c *Checkup) Worst() (failed, warned int) {
	for _, k := range c.Checks {
		switch k.Status {
		case Fail:
			failed++
		case Warn:
			warned++
		}
	}
	return failed, warned
}
