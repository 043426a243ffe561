package model

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Kid is the token key of every partition of the model; keys and their rotation it does not know.
const Kid = "k1"

// unit joins the parts of what the library stores as one text.
const unit = "\x1f"

// Point is what a waitpoint is made of.
type Point struct{ ID, Key, Kid, Digest, Nonce string }

// Waitpoint is an address for signals. Its State is p pending, a active, c closed or x expired.
type Waitpoint struct {
	Point
	State      string
	Expires    int64 // 0 = never
	Suspension string
	Closed     int64
	Reason     string
	Early      []Signal            // what came before anybody waited
	Known      map[string]Delivery // by idempotency key, or else by id
}

// Delivery is how a signal was answered first.
type Delivery struct {
	ID, Effect string
	Until      int64 // a closed waitpoint remembers it for so long
}

// Signal is what somebody says to a waitpoint.
type Signal struct {
	ID, Name, Key, Payload string
	TTL                    int64

	at           int64
	order        int
	effect, late string
}

// buffered is the effect of a signal that nobody waits for yet.
const buffered = "buffered_for_pending_waitpoint"

// mark is what a repeat is known by.
func (g Signal) mark() string {
	if g.Key != "" {
		return "k" + g.Key
	}
	return "s" + g.ID
}

// stored is the text that the library keeps and hands to the handler.
func (g Signal) stored(w Waitpoint) string {
	return strings.Join([]string{g.ID, w.ID, w.Key, g.Name, "", "t", "s", "", g.Key, "", number(g.at), "json", g.effect,
		g.late, number(g.order), g.Payload}, unit)
}

func (w Waitpoint) open() bool { return w.State == "p" || w.State == "a" }

func instantText(at int64) string {
	if at == 0 {
		return ""
	}
	return number(at)
}

var (
	hexDigest = regexp.MustCompile(`^[0-9a-f]{64}$`)
	hexNonce  = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

func (w Point) invalid() bool {
	return !uuid(w.ID) || len(w.Key) < 1 || len(w.Key) > 256 || len(w.Kid) < 1 || len(w.Kid) > 32 ||
		!hexDigest.MatchString(w.Digest) || !hexNonce.MatchString(w.Nonce)
}

// put stores a waitpoint; clones of the execution keep theirs.
func (x *Execution) put(w Waitpoint) {
	x.Points = maps.Clone(x.Points)
	if x.Points == nil {
		x.Points = map[string]Waitpoint{}
	}
	x.Points[w.ID] = w
	if name := x.handed(w.ID); name != "" { // it says until when signals are awaited, and for ever without a limit
		parts, until := strings.SplitN(x.Steps[name], " ", 5), int64(9999999999999)
		if w.Expires != 0 {
			until = w.Expires
		}
		if parts[3] != "0" {
			parts[3] = number(until)
		}
		x.Steps = maps.Clone(x.Steps)
		x.Steps[name] = strings.Join(parts, " ")
	}
}

// shutPoint ends a waitpoint for good.
func (p *Partition) shutPoint(x *Execution, w Waitpoint, state, reason string) {
	w.State, w.Reason, w.Closed = state, reason, p.Now
	x.put(w)
}

// Pend opens a waitpoint for some ms while the attempt goes on, under a name that later runs find it by.
func (p *Partition) Pend(id string, f Fence, name string, w Point, life int64) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if len(name) > 128 || w.invalid() || life < 1000 || life > 604_800_000 {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	opened := func(code string, w Waitpoint) Reply {
		return answer(code, w.ID, w.Key, w.Kid, w.Nonce, instantText(w.Expires))
	}
	if step, ok := x.Steps[waitStep+name]; ok && name != "" {
		return opened(Already, x.Points[step[:36]])
	}
	if known, ok := x.Points[w.ID]; ok {
		if known.Digest == w.Digest && known.Key == w.Key && known.open() {
			return opened(Already, known)
		}
		return answer("waitpoint_already_exists", w.ID)
	}
	if w.Kid != Kid {
		return answer("kid_not_current", Kid)
	}
	made := Waitpoint{Point: w, State: "p", Expires: p.Now + life}
	x.put(made)
	p.need(made.Expires)
	if name != "" {
		x.record(waitStep+name, strings.Join([]string{w.ID, w.Kid, w.Nonce, number(made.Expires), w.Key}, " "))
	}
	return opened(OK, made)
}

// handed is the name of the step that keeps a waitpoint, "" if none does.
func (x *Execution) handed(point string) string {
	for name, value := range x.Steps {
		if strings.HasPrefix(name, waitStep) && strings.HasPrefix(value, point) {
			return name
		}
	}
	return ""
}

// Unpend takes a pending waitpoint back, and the step that keeps it.
func (p *Partition) Unpend(id string, f Fence, point string) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	if code := incomplete(id, f); code != "" {
		return answer(code)
	}
	if !uuid(point) {
		return answer("invalid_input")
	}
	x, refused, holder := p.refuse(id, f)
	if !holder {
		return refused
	}
	w, known := x.Points[point]
	switch {
	case !known:
		return answer("waitpoint_not_found")
	case !w.open():
		return answer(Already, "closed")
	}
	p.shutPoint(x, w, "c", "proactive_close")
	if name := x.handed(point); name != "" {
		parts := strings.SplitN(x.Steps[name], " ", 5)
		parts[3] = "0"
		x.Steps = maps.Clone(x.Steps)
		x.Steps[name] = strings.Join(parts, " ")
	}
	return answer(OK, "closed")
}

// Deliver brings a signal to a waitpoint for whoever has its token. Slots: the signal that this one repeats, or
// itself, its effect, and the state of the waitpoint.
func (p *Partition) Deliver(id, point, digest string, g Signal) Reply {
	if r, shut := p.enter(); shut {
		return r
	}
	switch {
	case !uuid(id) || !uuid(point):
		return answer("invalid_input")
	case !hexDigest.MatchString(digest):
		return answer("invalid_token")
	case !uuid(g.ID) || !signalName(g.Name) || g.Name == "" || len(g.Key) > 256:
		return answer("invalid_input")
	case len(g.Payload) > 65_536:
		return answer("payload_too_large")
	}
	x := p.Executions[id]
	if x == nil {
		return answer("invalid_token")
	}
	w, known := x.Points[point]
	if !known || w.Digest != digest {
		return answer("invalid_token")
	}
	if first, ok := w.Known[g.mark()]; ok && (w.open() || first.Until > p.Now || first.ID == g.ID) {
		return answer(Already, first.ID, first.Effect, w.State)
	}
	switch {
	case x.terminal():
		return answer("target_not_signalable", string(x.Code))
	case !w.open():
		return answer("waitpoint_closed", w.Reason, number(w.Closed))
	case w.State == "p" && w.Expires <= p.Now:
		return answer("waitpoint_closed", "pending_expired", number(w.Expires))
	}
	x.Signals++
	g.at, g.order = p.Now, x.Signals
	if w.Expires != 0 && w.Expires <= p.Now {
		g.late = number(p.Now - w.Expires)
	}
	if w.State == "p" {
		g.effect = buffered
		w.Early = append(slices.Clip(w.Early), g)
		x.put(p.knows(w, g))
		return answer(OK, g.ID, g.effect, "p")
	}
	u := *x.Suspension
	u.take(w, &g)
	x.put(p.knows(w, g))
	x.Suspension = &u
	if u.met() {
		p.resume(x, ending{reason: "resumed", cause: "signal", closer: g.ID, delay: u.Delay})
		return answer(OK, g.ID, g.effect, "c")
	}
	return answer(OK, g.ID, g.effect, "a")
}

// knows remembers a delivery.
func (p *Partition) knows(w Waitpoint, g Signal) Waitpoint {
	ttl := int64(86_400_000)
	if g.Key != "" {
		ttl = g.TTL
	}
	w.Known = maps.Clone(w.Known)
	if w.Known == nil {
		w.Known = map[string]Delivery{}
	}
	w.Known[g.mark()] = Delivery{ID: g.ID, Effect: g.effect, Until: p.Now + ttl}
	return w
}

// signalName tells whether a signal may be called so; "" is for conditions that take any.
func signalName(name string) bool { return len(name) <= 128 && !strings.HasPrefix(name, "__") }

// expirations closes pending waitpoints whose time is over.
func (p *Partition) expirations(n *counts) {
	for _, id := range p.sorted(func(x *Execution) bool { return true }, func(x *Execution) int64 { return 0 }) {
		x := p.Executions[id]
		for _, w := range x.Points {
			if w.State == "p" && w.Expires <= p.Now {
				p.shutPoint(x, w, "x", "pending_expired")
				n.waitpoints++
			}
		}
	}
}
