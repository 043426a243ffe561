package model_test

import (
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/model"
)

// waitReasons are how the tour gets into each state in which an attempt waits.
var waitReasons = map[model.Code]string{"S1": "waiting_for_signal", "S2": "waiting_for_approval", "S5": "manual_pause"}

// halt suspends what is held, for a time or for ever.
func (x *pair) halt(f model.Fence, code model.Code, timeout int64, behaviour string, delay int64) model.Wait {
	x.t.Helper()
	q := model.Wait{ID: x.serial(), Name: "it", Reason: waitReasons[code], Timeout: timeout, Behaviour: behaviour,
		Delay: delay, Point: point(1), Need: 1, Names: []string{"go"}}
	x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: q})
	return q
}

// waits makes every move of what is suspended, and reaches what its calls refuse.
func (x *pair) waits() {
	x.wait = 1500
	sent := func(c call) {
		c.Kind, c.ID = "signal", subject
		x.make(c)
	}
	for _, code := range []model.Code{"S1", "S2", "S5"} {
		x.reach(code)
		sent(call{})
		x.make(call{Kind: "suspend", ID: subject, Fence: x.claim(30_000),
			Wait: model.Wait{ID: x.serial(), Reason: "manual_pause", Behaviour: "fail", Only: "O"}})
		x.make(call{Kind: "resume", ID: subject})
		x.make(call{Kind: "resume", ID: subject})
		x.claim(30_000)
		x.compare()
		for _, behaviour := range []string{"fail", "cancel", "expire", "auto_resume", "auto_resume_with_timeout_signal",
			"auto_resume_open", "escalate"} {
			x.halt(x.reach("A1"), code, 1000, behaviour, 100)
			x.advance(x.p.Now + 999)
			x.tick()
			x.advance(x.p.Now + 1)
			x.tick()
			sent(call{})
			x.compare()
		}
		x.halt(x.reach("A1"), code, 0, "fail", 1500)
		sent(call{})
		x.tick()
		x.advance(x.p.Now + 1500)
		x.tick()
		x.claim(30_000)
		x.compare()
	}
	x.handedOut()
	x.reminded()
	x.refusedWaits()
	x.mailboxes()
}

// mailboxes sends and receives in every order, and reaches what those calls refuse.
func (x *pair) mailboxes() {
	send := func(change func(*call)) {
		c := call{Kind: "send", ID: subject,
			Message: model.Message{ID: x.serial(), Mailbox: "a", By: "me", Payload: "1"}}
		change(&c)
		x.make(c)
	}
	plain := func(*call) {}
	receive := func(f model.Fence, name, box, why string) {
		x.make(call{Kind: "receive", ID: subject, Fence: f, Name: name, Message: model.Message{Mailbox: box}, Count: 2,
			Value: why})
	}
	f := x.reach("A1")
	receive(f, "r1", "a", "")
	send(plain)
	send(func(c *call) { c.Message.Mailbox = "b" })
	for range 2 {
		send(func(c *call) { c.Message.Key = "k" })
	}
	x.make(call{Kind: "messages", ID: subject})
	receive(f, "r1", "a", "looked")
	receive(f, "r1", "a", "")
	receive(f, "r2", "a", "looked")
	wait := model.Wait{Name: "r3", Reason: "waiting_for_signal", Behaviour: "fail", Only: "M\x1fa"}
	halt := func(only string) {
		wait.ID, wait.Only = x.serial(), only
		x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait})
	}
	halt("M\x1fb") // one is there
	halt("M\x1fa")
	send(func(c *call) { c.Message.Mailbox = "b" })
	send(plain)
	f = x.claim(30_000)
	receive(f, "r3", "a", "")
	wait.Name, wait.Delay, wait.Timeout, wait.Behaviour = "r4", 1200, 1000, "auto_resume"
	halt("M\x1fa")
	x.advance(x.p.Now + 1000)
	x.tick()
	x.advance(x.p.Now + 1300)
	x.tick()
	f = x.claim(30_000)
	wait.Delay, wait.Timeout = 0, 0
	halt("M\x1fa") // what the one before told is kept: there is no receipt
	send(plain)
	f = x.claim(30_000)
	x.compare()
	halt("M\x1f")
	send(func(c *call) { c.Message.Mailbox = "" })
	send(func(c *call) { c.ID = "short" })
	send(func(c *call) { c.ID = unknown })
	send(func(c *call) { c.Message.Payload = strings.Repeat("x", 65_537) })
	for range 16 {
		send(func(c *call) { c.Message.Payload = strings.Repeat("x", 65_536) })
	}
	receive(f, "", "a", "")
	receive(model.Fence{}, "r9", "a", "")
	partial := f
	partial.Claim = 0
	receive(partial, "r9", "a", "")
	for _, c := range []call{{ID: "short"}, {ID: unknown}} {
		c.Kind = "messages"
		x.make(c)
	}
	x.compare()
	x.override("")
	send(plain)
	receive(f, "r9", "a", "")
	x.make(call{Kind: "messages", ID: subject})
	x.compare()
}

// handedOut follows waitpoints that were opened before their attempt waits.
func (x *pair) handedOut() {
	f := x.reach("A1")
	pend := call{Kind: "pend", ID: subject, Fence: f, Name: "a", Point: point(1), Number: 1000}
	early := call{Kind: "signal", ID: subject, Point: point(1),
		Signal: model.Signal{ID: x.serial(), Name: "on", Key: "k", TTL: 1000}}
	x.make(pend)
	x.make(pend)
	x.make(early)
	x.make(early)
	wait := model.Wait{ID: x.serial(), Name: "a", Reason: "waiting_for_signal", Behaviour: "fail", Point: point(1),
		Pending: true, Need: 2, Names: []string{"on", ""}}
	x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait})
	x.make(early)
	early.Signal = model.Signal{ID: x.serial(), Name: "on"}
	x.make(early)
	f = x.claim(30_000)
	x.make(call{Kind: "unpend", ID: subject, Fence: f, Point: point(1)})
	pend.Fence, pend.Name, pend.Point = f, "b", point(2)
	x.make(pend)
	early.Point = point(2)
	x.make(early)
	wait.ID, wait.Point, wait.Need, wait.Name = x.serial(), point(2), 1, "b"
	for range 2 { // satisfied by what came early; the lease is kept
		x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait})
	}
	wait.ID, wait.Request = x.serial(), "r"
	wait.Point, wait.Pending = point(3), false
	x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait})
	wait.ID = x.serial()
	x.make(call{Kind: "suspend", ID: subject, Fence: f, Wait: wait}) // the same request
	x.compare()
	for _, drop := range []bool{true, false} {
		x.override("")
		x.make(call{Kind: "replay", ID: subject, Replay: model.Replay{Request: x.serial(), Drop: drop}})
		f = x.claim(30_000)
		x.make(call{Kind: "pend", ID: subject, Fence: f, Name: "b", Point: point(10 + x.made), Number: 1000})
		x.compare()
	}
	x.make(call{Kind: "pend", ID: subject, Fence: f, Point: point(20), Number: 0})
	x.advance(x.p.Now + 1000)
	x.make(call{Kind: "signal", ID: subject, Point: point(20)})
	x.make(call{Kind: "suspend", ID: subject, Fence: f,
		Wait: model.Wait{ID: x.serial(), Reason: "manual_pause", Behaviour: "fail", Point: point(20),
			Pending: true, Need: 1, Names: []string{""}}})
	x.tick()
	x.make(call{Kind: "signal", ID: subject, Point: point(20)})
	x.make(call{Kind: "unpend", ID: subject, Fence: f, Point: point(20)})
	x.compare()
}

// reminded waits several times on one waitpoint: what a wait took counts for the next one, and what it passed over
// does not. In the end the handler closes the waitpoint, or a wait that is not to leave it open does.
func (x *pair) reminded() {
	f := x.reach("A1")
	send := func(n int, name, key string) {
		x.make(call{Kind: "signal", ID: subject, Point: point(n),
			Signal: model.Signal{ID: x.serial(), Name: name, Key: key, TTL: 1000}})
	}
	pend := func(n int, name string) {
		x.make(call{Kind: "pend", ID: subject, Fence: f, Name: name, Point: point(n), Number: 60_000})
	}
	wait := func(n int, name, behaviour string, need int, names ...string) {
		x.make(call{Kind: "suspend", ID: subject, Fence: f,
			Wait: model.Wait{ID: x.serial(), Name: name, Reason: "waiting_for_signal", Timeout: 1000,
				Behaviour: behaviour, Point: point(n), Pending: true, Need: need, Names: names}})
	}
	over := func() {
		x.advance(x.p.Now + 1000)
		x.tick()
		f = x.claim(30_000)
		x.compare()
	}
	pend(1, "a")
	send(1, "on", "early")
	wait(1, "a", "auto_resume_open", 2, "on", "go")
	send(1, "other", "")
	send(1, "on", "again")
	over()
	pend(1, "a") // the same one
	send(1, "on", "early")
	wait(1, "b", "auto_resume_open", 2, "on", "go")
	over()
	send(1, "go", "between")
	wait(1, "c", "auto_resume_open", 3, "go", "on", "")
	over()
	wait(1, "d", "auto_resume_open", 2, "go", "on") // what came is enough
	pend(2, "e")
	wait(2, "e", "auto_resume_open", 1, "go")
	over()
	x.make(call{Kind: "unpend", ID: subject, Fence: f, Point: point(2)})
	send(2, "go", "")
	x.make(call{Kind: "release", ID: subject, Fence: f})
	f = x.claim(30_000) // its step says so
	pend(3, "f")
	wait(3, "f", "auto_resume", 1, "go")
	over()
	send(3, "go", "")
	pend(4, "")
	wait(4, "g", "auto_resume_open", 1, "go") // no later run would find it
	over()
	send(4, "go", "")
	x.compare()
}

// refusedWaits reaches every refusal that has nothing to do with fences.
func (x *pair) refusedWaits() {
	f := x.reach("A1")
	held := func(kind string, change func(*call)) {
		c := call{Kind: kind, ID: subject, Fence: f}.usual()
		c.Wait.ID, c.Signal.ID, c.Resume.Request, c.Point = x.serial(), x.serial(), x.serial(), point(1)
		change(&c)
		x.make(c)
	}
	long := strings.Repeat("x", 65)
	held("resume", func(*call) {})
	held("resume", func(c *call) { c.ID = unknown })
	held("resume", func(c *call) { c.ID = "short" })
	held("resume", func(c *call) { c.Resume.By = "" })
	held("resume", func(c *call) { c.Resume.Delay = 2_592_000_001 })
	held("pend", func(c *call) { c.Number = 604_799_001 })
	held("pend", func(c *call) { c.Point.Digest = long })
	held("pend", func(c *call) { c.Point.Kid = "k9" })
	held("pend", func(*call) {})
	held("pend", func(c *call) { c.Point.Digest = point(2).Digest })
	held("unpend", func(c *call) { c.Point.ID = "short" })
	held("unpend", func(c *call) { c.Point = point(5) })
	held("suspend", func(c *call) { c.Wait.Reason = "boredom" })
	held("suspend", func(c *call) { c.Wait.Need = 2 })
	held("suspend", func(c *call) { c.Wait.Only = "T" })
	held("suspend", func(*call) {}) // the waitpoint is there
	held("suspend", func(c *call) { c.Wait.Point = point(3); c.Wait.Point.Kid = "k9" })
	held("suspend", func(c *call) { c.Wait.Pending, c.Wait.Point = true, point(3) })
	held("suspend", func(c *call) { c.Wait.Pending, c.Wait.Point.Key = true, "another" })
	held("unpend", func(*call) {})
	held("unpend", func(*call) {})
	held("suspend", func(c *call) { c.Wait.Pending = true })
	held("signal", func(*call) {})
	held("signal", func(c *call) { c.ID = unknown })
	held("signal", func(c *call) { c.ID = "short" })
	held("signal", func(c *call) { c.Point.Digest = point(2).Digest })
	held("signal", func(c *call) { c.Point.Digest = "short" })
	held("signal", func(c *call) { c.Signal.Name = "__x" })
	held("signal", func(c *call) { c.Signal.Payload = strings.Repeat("x", 65_537) })
	held("suspend", func(c *call) { c.Wait.Point = point(4) })
	held("resume", func(c *call) { c.Resume.Expected = unknown })
	x.override("")
	held("signal", func(c *call) { c.Point = point(4) })
	x.compare()
}
