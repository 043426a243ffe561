package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/prose"
)

// Bounds beyond which clocks, memory and route tables are worth a word, or a failure.
const (
	skewWarn   = time.Second
	skewFail   = 30 * time.Second
	memoryWarn = 0.8
	memoryFail = 0.95
	routesWarn = 0.8
	routesFail = 0.95
)

// Examine judges what a deployment says of itself. It checks no index: see [Drift].
func Examine(d Diagnosis) Checkup {
	c := Checkup{Healthy: true, Checks: []Check{}}
	for _, n := range d.Nodes {
		if n.Primary() {
			c.Keys += n.Keys
		}
	}
	c.version(d)
	if d.Cluster {
		c.slots(d.Slots)
	}
	if !d.Embedded {
		c.commands(d.Rights)
		for _, n := range d.Nodes {
			c.node(d, n)
		}
		c.clocks(d.Nodes)
		c.libraries(d.Nodes)
	}
	c.store(d.Store)
	c.types(d.Store)
	c.ticks(d.Store)
	c.routes(d.Store)
	c.served(d.Store)
	c.gates(d.Store)
	c.steps(d.Store)
	if !d.Embedded {
		c.rights(d.Rights)
	}
	c.NotChecked(Skip, "", "whether indexes agree with records is not known",
		"'flowfabric doctor --indexes' checks all of them")
	return c
}

func (c *Checkup) version(d Diagnosis) {
	const name = "version"
	switch {
	case d.Embedded:
		c.embedded(name, d.Nodes)
	case d.Supported != nil:
		c.Add(name, Fail, "", prose.Message(d.Supported), "upgrade to Valkey 7.2 or Redis 7.0 or newer")
	default:
		kind := "standalone"
		if d.Cluster {
			kind = "cluster of " + prose.Count(len(d.Nodes), "node")
		}
		server := ""
		for _, n := range d.Nodes {
			if n.Err == nil {
				server = n.Server
			}
		}
		c.Add(name, OK, "", server+", "+kind, "")
	}
}

// embedded judges the store of FlowFabric itself, by where its data is.
func (c *Checkup) embedded(name string, nodes []NodeReport) {
	var n NodeReport
	if len(nodes) > 0 {
		n = nodes[0]
	}
	switch {
	case len(nodes) == 0 || n.Err != nil || n.InfoErr != nil:
		c.Add(name, Skip, "", "the store of FlowFabric, which does not tell where its data is", "")
	case n.WriteFailed != "":
		c.Add(name, Fail, "", "the store of FlowFabric: its folder takes no writes",
			"look at the log of its process: a full disk takes writes again when there is room")
	case n.AOF:
		c.Add(name, OK, "", "the store of FlowFabric, with its data in a folder", "")
	default:
		c.Add(name, Warn, "", "the store of FlowFabric, in memory: nothing is persisted",
			"give it a folder by --data of 'flowfabric dev' or 'flowfabric serve', or use Valkey or Redis")
	}
}

// giveBack is the advice where a server lacks commands.
const giveBack = "take rename-command for it out of the server's configuration, or use a server that offers it"

// commands looks for those that the server lacks.
func (c *Checkup) commands(r RightsReport) {
	if len(r.Unknown) > 0 {
		c.Add("commands", Fail, "",
			"the server does not know "+strings.Join(r.Unknown, ", ")+": renamed or switched off", giveBack)
	}
}

func (c *Checkup) rights(r RightsReport) {
	const name = "rights"
	switch {
	case len(r.Denied) > 0:
		c.Add(name, Fail, "", fmt.Sprintf("user %q may not run %s on ff:* keys and channels", r.User,
			strings.Join(r.Denied, ", ")), "grant them (ACL SETUSER)")
	case r.Checked && len(r.Unknown) > 0:
		c.Add(name, OK, "", fmt.Sprintf("user %q may run every command that the server has", r.User), "")
	case r.Checked:
		c.Add(name, OK, "", fmt.Sprintf("user %q may do all that is needed", r.User), "")
	case errors.Is(r.Err, flowfabric.ErrAuth):
		c.Add(name, Skip, "", prose.Join(": ", "the user may not ask what it may do", r.User), "")
	default:
		c.Add(name, Skip, "", prose.Message(r.Err), "")
	}
}
