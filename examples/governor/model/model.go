// Package model is a service that stands for a language model behind HTTP. Like real ones it has limits of requests
// and tokens in a minute, over the last 60 seconds of its own clock, and of calls at once. Above them it answers status
// 429 with Retry-After. It has no models in it: an answer is a number of tokens.
package model

import (
	"encoding/json"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Limits are those of a [Service]. 0 is no limit.
type Limits struct {
	Requests int64 // in a minute
	Tokens   int64 // in a minute, of those that answers have
	Calls    int   // at once
}

// Question is the body of a request: who asks, and how many tokens the answer may have.
type Question struct {
	Tenant    string `json:"tenant"`
	MaxTokens int64  `json:"max_tokens"`
}

// Answer is the body of the answer with status 200.
type Answer struct {
	Tokens int64 `json:"tokens"`
}

// Count is what a service counted, of all or of one tenant.
type Count struct {
	Calls, Tokens, Refused int64
}

// Service is an [http.Handler] that answers questions. Safe for concurrent use.
type Service struct {
	limits Limits
	think  time.Duration
	uses   func(maxTokens int64) int64

	mu      sync.Mutex
	minute  []call // of the last 60 s, the oldest first
	tokens  int64  // of those
	under   int    // calls under way
	peak    int
	closed  time.Time
	counts  map[string]Count
	arrived func(Question) // may be nil
}

type call struct {
	at     time.Time
	tokens int64
}

// New makes a service that thinks about a question for half of a time to one and a half. An answer has from 20 to 100
// per cent of the tokens it may have, 60 on average, unless uses says otherwise.
func New(limits Limits, think time.Duration, uses func(maxTokens int64) int64) *Service {
	if uses == nil {
		uses = func(most int64) int64 { return max(1, most/5+rand.Int64N(most*4/5+1)) }
	}
	return &Service{limits: limits, think: think, uses: uses, counts: map[string]Count{}}
}

// OnCall is told each question that is answered, when it arrives, one after the other. To be set before the first.
func (s *Service) OnCall(f func(Question)) { s.arrived = f }

// Close has the service refuse everything for a time, as one that is overloaded does.
func (s *Service) Close(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = time.Now().Add(d)
}

// Counts returns what was counted so far by tenant, and of all under "", and how many calls were at most under way.
func (s *Service) Counts() (by map[string]Count, peak int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.counts), s.peak
}

// ServeHTTP answers a [Question].
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var q Question
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil || q.MaxTokens < 1 {
		http.Error(w, "want a tenant and max_tokens of at least 1", http.StatusBadRequest)
		return
	}
	tokens, pause := s.begin(q)
	if pause > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(pause.Seconds()))))
		http.Error(w, "too many requests", http.StatusTooManyRequests)
		return
	}
	defer s.end()
	timer := time.NewTimer(s.think/2 + rand.N(s.think+1))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done(): // whoever asked has gone
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(Answer{Tokens: tokens})
}

// begin takes a call, or says in how long to come again.
func (s *Service) begin(q Question) (tokens int64, pause time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for len(s.minute) > 0 && now.Sub(s.minute[0].at) >= time.Minute {
		s.tokens -= s.minute[0].tokens
		s.minute = s.minute[1:]
	}
	tokens = min(q.MaxTokens, s.uses(q.MaxTokens))
	if pause = s.room(now, tokens); pause > 0 {
		s.count(q.Tenant, Count{Refused: 1})
		return 0, pause
	}
	s.minute = append(s.minute, call{now, tokens})
	s.tokens += tokens
	s.under++
	s.peak = max(s.peak, s.under)
	s.count(q.Tenant, Count{Calls: 1, Tokens: tokens})
	if s.arrived != nil {
		s.arrived(q)
	}
	return tokens, 0
}

// room is in how long there is room for a call; one that is larger than a minute goes when nothing else does.
func (s *Service) room(now time.Time, tokens int64) time.Duration {
	l := s.limits
	switch {
	case now.Before(s.closed):
		return s.closed.Sub(now)
	case l.Calls > 0 && s.under >= l.Calls:
		return time.Second
	}
	requests, used, at := int64(len(s.minute)), s.tokens, now
	for _, c := range s.minute {
		if (l.Requests == 0 || requests < l.Requests) && (l.Tokens == 0 || used+tokens <= l.Tokens) {
			break
		}
		requests, used, at = requests-1, used-c.tokens, c.at.Add(time.Minute)
	}
	return at.Sub(now)
}

func (s *Service) count(tenant string, c Count) {
	for _, name := range []string{"", tenant} {
		old := s.counts[name]
		s.counts[name] = Count{old.Calls + c.Calls, old.Tokens + c.Tokens, old.Refused + c.Refused}
	}
}

func (s *Service) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.under--
}
