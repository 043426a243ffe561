package engine

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

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

	mu    sync.Mutex
	calls uint64          // begun
	ctx   context.Context // of the call under way; nil if none is
	timed bool            // look is going to be called
	timer *time.Timer     // calls look
	leave func() bool     // ends the watch over ctx; nil while nobody watches it
	ended bool            // the connection was closed because ctx had ended
}

// loneAfter is how many calls have to be alone before the second connection is made: a command that makes a few
// calls and ends needs none.
const loneAfter = 16

// brief is how long a call may be under way before somebody watches whether its context ends. Nearly all have been
// answered by then, and to watch a call costs more than all else that is done for it here. A deadline needs no watch:
// the driver keeps it.
const brief = 20 * time.Millisecond

// prepare says how the connection is made. It is not asked whether the other end is there by pings, which would be
// calls beside the caller's; the operating system does that.
func (l *lone) prepare(option rueidis.ClientOption) {
	option.Dialer.KeepAlive = -1
	option.Dialer.KeepAliveConfig = net.KeepAliveConfig{Enable: true, Idle: silence, Interval: silence}
	option.RingScaleEachConn = 1 // it is for calls that wait for each other
	dial := option.DialCtxFn
	l.open = func() (*loneClient, error) {
		c := &loneClient{}
		c.timer = time.AfterFunc(time.Hour, c.look)
		c.timer.Stop()
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
	bounded := ctx
	if _, limited := ctx.Deadline(); !limited {
		bounded = context.Background()
	}
	c.began(ctx)
	answer := c.Do(bounded, command)
	if c.over() || answer.NonRedisError() != nil {
		l.drop(c)
		if err := ctx.Err(); err != nil && answer.NonRedisError() != nil {
			return rueidis.NewErrorResult(err)
		}
	}
	return answer
}

// began has somebody look at a call that takes long.
func (c *loneClient) began(ctx context.Context) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	c.ctx = ctx
	if !c.timed {
		c.timed = true
		c.timer.Reset(brief)
	}
}

// look watches the call under way, if there is one. Another one than that which set the timer is watched early.
func (c *loneClient) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	if c.ctx == nil {
		return
	}
	call := c.calls
	c.leave = context.AfterFunc(c.ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.ctx != nil && c.calls == call {
			c.ended = true
			_ = c.conn.Close()
		}
	})
}

// over notes that a call has been answered, or has failed, and tells whether the end of its context has closed the
// connection.
func (c *loneClient) over() (closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ctx = nil
	if c.leave != nil {
		c.leave()
		c.leave = nil
	}
	return c.ended
}

// drop ends a connection; another is made when enough calls have been alone again.
func (l *lone) drop(c *loneClient) {
	if c != nil && l.client.CompareAndSwap(c, nil) {
		l.seen.Store(0)
		_ = c.conn.Close()
		c.Close()
	}
}
