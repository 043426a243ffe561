package admin

import (
	"cmp"
	"context"
	"fmt"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/explain"
	"github.com/flowfabric/flowfabric-go/internal/link"
)

// Admin operates one store. Make it with [New]. All methods may be called concurrently.
type Admin struct {
	client *client.Client
	conn   *link.Connection
	store  store
}

// store is what an Admin needs of the engine.
type store interface {
	operator
	inspector
	registry
	admitter
	signaller
	scheduler
	flows
	feeds
	explain.Source
	link.GateFinder
	Partitions() uint16
	TrailSources() int
	ReadTrail(ctx context.Context, source int, before engine.Position,
		limit int) (changes []engine.Change, more bool, err error)
}

// New makes an Admin that shares the connection, namespace, creator and token keys of a client. It costs nothing, and
// ends with the client: after [client.Client.Close] every method answers [client.ErrClosed].
func New(c *client.Client) *Admin {
	conn := c.Link()
	return &Admin{client: c, conn: conn, store: conn.Engine}
}

// Client is the client whose connection is shared: it reads, cancels and answers single executions, and submits.
func (a *Admin) Client() *client.Client { return a.client }

func (a *Admin) closed() bool { return a.conn.Closed() != nil }

// admit refuses a call that cannot be made: on a closed client, or about no execution.
func (a *Admin) admit(verb string, id flowfabric.ExecutionID) error {
	return link.Admit(verb, id, a.conn.Closed())
}

// act is who asks and why: by default the client's Creator asks, and nobody is named without it.
func (a *Admin) act(opts []flowfabric.ActOption) (link.Act, error) {
	act := link.ActOf(opts)
	act.By = cmp.Or(act.By, a.conn.Creator)
	return act, link.CheckBy(act.By)
}

// inPartition says in which partition an error happened.
func inPartition(partition uint16, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("partition %d: %w", partition, err)
}

var _ store = (*engine.Engine)(nil)
