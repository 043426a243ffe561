package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"time"
)

const (
	turns    = 3 // answers of a run; all but the last want the tool
	perTurn  = 5 // tokens of an answer
	callCost = 8 // output tokens of an answer's call of the tool
	rest     = 4 * time.Millisecond
)

// ledger is the world outside: a model service that bills tokens and a bank that takes bookings, which no crash of a
// worker undoes. It counts for one run at a time; what is late of an earlier run meets an account that nobody reads.
type ledger struct {
	server *httptest.Server

	mu  sync.Mutex
	run int
	now *account
}

// account is what one run has cost.
type account struct {
	watch *watch

	mu      sync.Mutex
	tokens  int64
	samples [turns + 1]int // by turn: how often it was asked
	asked   [][]message    // the requests of the last turn, by sample
	booked  []booking
}

func openLedger() *ledger {
	l := &ledger{}
	l.server = httptest.NewServer(l)
	return l
}

func (l *ledger) close() {
	l.server.CloseClientConnections()
	l.server.Close()
}

// begin opens the account of the next run, and tells its address.
func (l *ledger) begin(w *watch) (*account, string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.run++
	l.now = &account{watch: w}
	return l.now, fmt.Sprintf("%s/%d", l.server.URL, l.run)
}

// ServeHTTP is the model service and the bank.
func (l *ledger) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	a, model, bank := l.now, fmt.Sprintf("/%d/model", l.run), fmt.Sprintf("/%d/bank", l.run)
	l.mu.Unlock()
	switch r.URL.Path {
	case model:
		a.answer(w, r)
	case bank:
		a.book(w, r)
	default:
		http.Error(w, "of another run", http.StatusGone)
	}
}

// abort ends the connection of a worker that was killed.
func abort() { panic(http.ErrAbortHandler) }

// answer streams an answer that is another one each time, as those of models are.
func (a *account) answer(w http.ResponseWriter, r *http.Request) {
	var messages []message
	if err := json.NewDecoder(r.Body).Decode(&messages); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	turn := 1
	for _, m := range messages {
		if m.Role == assistant {
			turn++
		}
	}
	if turn > turns {
		http.Error(w, "the conversation is over", http.StatusBadRequest)
		return
	}
	if a.watch.reached(moment, fmt.Sprintf("model call %d arrives", turn)) {
		abort()
	}
	text, _ := json.Marshal(messages)
	end := piece{End: true, Input: int64(len(text)) / 4}
	a.mu.Lock()
	a.tokens += end.Input
	sample := a.samples[turn]
	a.samples[turn]++
	if turn == turns {
		a.asked = append(a.asked, messages)
	}
	a.mu.Unlock()
	lines := json.NewEncoder(w)
	said := func(cost int64, what string) {
		end.Output += cost
		a.mu.Lock()
		a.tokens += cost
		a.mu.Unlock()
		if a.watch.reached(moment, what) {
			abort()
		}
	}
	for i := range perTurn {
		if lines.Encode(piece{Token: word(turn, sample, i)}) != nil || http.NewResponseController(w).Flush() != nil ||
			!pause(r.Context()) {
			abort() // the service stops when nobody listens
		}
		said(1, fmt.Sprintf("token %d of answer %d is out", i+1, turn))
	}
	cost := int64(0)
	if turn < turns {
		end.Call = &call{ID: fmt.Sprintf("c%d.%d", turn, sample), Seat: fmt.Sprintf("%d%c", turn, 'A'+sample)}
		cost = callCost
	}
	said(cost, fmt.Sprintf("answer %d is about to end", turn)) // all of it is billed
	_ = lines.Encode(end)
}

// word is a token that tells where it is from. All have the same length, as long as no turn has ten samples.
func word(turn, sample, i int) string { return fmt.Sprintf("%d.%d.%d ", turn, sample, i) }

// pause is the time that a model takes for a token.
func pause(ctx context.Context) bool {
	t := time.NewTimer(rest)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// book takes a booking. Whether the bank knows keys is judged afterwards.
func (a *account) book(w http.ResponseWriter, r *http.Request) {
	var b booking
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if a.watch.reached(moment, "booking "+b.Seat[:1]+" arrives") {
		abort()
	}
	a.mu.Lock()
	a.booked = append(a.booked, b)
	a.mu.Unlock()
	if a.watch.reached(moment, "booking "+b.Seat[:1]+" is made") {
		abort()
	}
	fmt.Fprintf(w, "booked %s", b.Seat[:1])
}
