package httpapi

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	maxShared  = 20 * time.Second // how old an answer may be that is given to somebody else
	mostShared = 256
	sharedTime = 20 * time.Second // that one may take
	maxCostly  = time.Minute      // how old an answer of a costly route may be
)

// sharing gives answers that were read from the store a moment ago to others who ask the same and say that this will
// do, with the header Cache-Control: max-age=<seconds>. So many open dashboards cost the store as much as one.
type sharing struct {
	mu      sync.Mutex
	answers map[string]*sharedAnswer
}

// sharedAnswer is what a handler has written. It is the writer that the handler is given.
type sharedAnswer struct {
	began  time.Time
	done   chan struct{} // closed when there is something to give
	header http.Header
	status int
	body   bytes.Buffer
	err    error
	good   time.Duration // however young an answer somebody wants; more than 0 for costly routes
}

func (a *sharedAnswer) Header() http.Header         { return a.header }
func (a *sharedAnswer) WriteHeader(status int)      { a.status = status }
func (a *sharedAnswer) Write(b []byte) (int, error) { return a.body.Write(b) }

var errNotRead = errors.New("the request that was to read it has failed")

// answer gives the caller an answer that is at most so old, or lets the route make one, for everybody who asks the
// same meanwhile. A failure is told those who waited for it, and nobody later.
func (s *sharing) answer(c *call, age time.Duration) error {
	key := c.sharedKey()
	s.mu.Lock()
	a := s.answers[key]
	if a == nil || age == 0 || time.Since(a.began) > max(age, a.good) {
		maps.DeleteFunc(s.answers, func(_ string, a *sharedAnswer) bool {
			return time.Since(a.began) > max(maxShared, a.good)
		})
		if len(s.answers) >= mostShared {
			s.mu.Unlock()
			return c.route.handle(c)
		}
		a = &sharedAnswer{began: time.Now(), done: make(chan struct{}), header: http.Header{}, status: http.StatusOK,
			err: errNotRead}
		s.answers[key] = a
		s.mu.Unlock()
		s.read(c, key, a)
	} else {
		s.mu.Unlock()
		select {
		case <-a.done:
		case <-c.ctx().Done():
			return c.ctx().Err()
		}
	}
	if a.err != nil {
		return a.err
	}
	maps.Copy(c.w.Header(), a.header)
	c.w.WriteHeader(a.status)
	_, _ = c.w.Write(a.body.Bytes())
	return nil
}

// read lets the route write into the answer. Who began it may leave, and others still get it.
func (s *sharing) read(c *call, key string, a *sharedAnswer) {
	defer func() { // also when it panics
		if a.err != nil {
			s.mu.Lock()
			if s.answers[key] == a {
				delete(s.answers, key)
			}
			s.mu.Unlock()
		}
		close(a.done)
	}()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx()), sharedTime)
	defer cancel()
	reading := *c
	reading.w, reading.r = a, c.r.WithContext(ctx)
	a.err = c.route.handle(&reading)
	if c.route.costly { // so that those who look again and again take one part in a hundred of the time
		s.mu.Lock()
		a.good = min(sampleShare*time.Since(a.began), maxCostly)
		s.mu.Unlock()
	}
}

// sharedKey is the same for those who ask the same and may see the same.
func (c *call) sharedKey() string {
	reader := strconv.FormatBool(c.operates())
	if c.h.cfg.Redact != nil {
		reader = c.who.Name + " " + string(c.who.Role)
	}
	return strings.Join(append([]string{c.r.URL.Path, c.r.URL.RawQuery, reader}, c.who.Namespaces...), "\x00")
}

// age is how old an answer may be for the request, 0 if it must be new.
func (c *call) age() time.Duration {
	for part := range strings.SplitSeq(c.r.Header.Get("Cache-Control"), ",") {
		if text, ok := strings.CutPrefix(strings.TrimSpace(part), "max-age="); ok {
			if n, err := strconv.ParseUint(text, 10, 16); err == nil {
				return min(time.Duration(n)*time.Second, maxShared)
			}
		}
	}
	return 0
}
