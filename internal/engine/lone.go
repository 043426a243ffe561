package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/redis/rueidis"

	flowfabric "github.com/flowfabric/flowfabric-go"
)

// lone is a second connection for calls that nobody makes another call beside. The driver passes the calls of a
// connection through two goroutines of its own, which makes many callers cheap; a caller alone pays for both. While
// one goroutine at a time uses a connection, and no context can end that has no deadline, the driver writes and reads
// in that goroutine. One server only: a cluster and Sentinels have the driver choose the node of each call.
type lone struct {
	open   func() (*loneClient, error) // nil if this engine has none
	calls  atomic.Int64                // under way on either connection
	seen   atomic.Int64                // calls that were alone and had no such connection
	client atomic.Pointer[loneClient]
}

type loneClient struct {
	rueidis.Client
	conn net.Conn
}

// loneAfter is how many calls have to be alone before the second connection is made: a command that makes a few
// calls and ends needs none.
const loneAfter = 16

// prepare says how the connection is made. It is not asked whether the other end is there by pings, which would be
// calls beside the caller's; the operating system does that.
func (l *lone) prepare(option rueidis.ClientOption) {
	option.Dialer.KeepAlive = -1
	option.Dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence}
	dial := option.DialCtxFn
	l.open = func() (*loneClient, error) {
		c := &loneClient{}
		option := option
		option.DialCtxFn = func(ctx context.Context, address string, d *net.Dialer,
			t *tls.Config) (conn net.Conn, err error) {
			if c.conn != nil {
				return nil, &noConnection{fmt.Errorf("%w: the connection has ended", flowfabric.ErrTransport)}
			}
			c.conn, err = dial(ctx, address, d, t)
			return c.conn, err
		}
		var err error
		c.Client, err = rueidis.NewClient(option)
		if err != nil {
			return nil, err
		}
		return c, nil
	}
}

// begin counts a call and returns the connection that it has to itself, nil if there is none or others call, too.
func (l *lone) begin(d *dials) *loneClient {
	if l.calls.Add(1) != 1 || l.open == nil {
		return nil
	}
	c := l.client.Load()
	if c == nil && l.seen.Add(1) == loneAfter {
		d.start(func() {
			if opened, err := l.open(); err == nil {
				l.client.Store(opened)
			} else {
				l.seen.Store(0)
			}
		})
	}
	return c
}

func (l *lone) end() { l.calls.Add(-1) }

// do makes a call on the connection that its caller has to itself. When ctx ends the connection is closed, as no
// other way leads out of a read; that and any failure make it be dropped.
func (l *lone) do(ctx context.Context, c *loneClient, command rueidis.Completed) rueidis.RedisResult {
	bounded, stop := ctx, func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { _ = c.conn.Close() })
		if _, limited := ctx.Deadline(); !limited {
			bounded = context.Background()
		}
	}
	answer := c.Do(bounded, command)
	if going := stop(); !going || answer.NonRedisError() != nil {
		l.drop(c)
		if !going && answer.NonRedisError() != nil {
			return rueidis.NewErrorResult(ctx.Err())
		}
	}
	return answer
}

// drop ends a connection; another is made when enough calls have been alone again.
func (l *lone) drop(c *loneClient) {
	if c != nil && l.client.CompareAndSwap(c, nil) {
		l.seen.Store(0)
		_ = c.conn.Close()
		c.Close()
	}
}
