package model_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/model"
	"github.com/flowfabric/flowfabric-go/internal/trail"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// call is one call, in the words of the model. Which fields count depends on the kind.
type call struct {
	Kind     string
	ID       string
	Fence    model.Fence
	Session  string
	Submit   model.Submission
	Claim    model.ClaimRequest
	Failure  model.Failure
	Cancel   model.Cancellation
	Replay   model.Replay
	Rewind   model.Rewind
	Name     string // step, subscription, owner, message, who asks
	Value    string // step value, reason
	Number   int64  // bytes, ms, percent or priority
	Number2  uint64 // first sequence, generation, request
	Count    int
	Modes    string // of frames
	Base     uint64 // version of the summary
	Document int    // bytes of its content
	Flag     bool
	Set      map[string]string
	List     []string
	Routes   []int
	Wait     model.Wait
	Point    model.Point
	Signal   model.Signal
	Message  model.Message
	Resume   model.Resumption
	Lane     model.LaneChange
}

// usual makes up what a call about a suspension leaves out.
func (c call) usual() call {
	if c.Point.ID == "" {
		c.Point = point(1)
	}
	if c.Wait.ID == "" {
		c.Wait = model.Wait{ID: subject, Reason: "waiting_for_signal", Behaviour: "fail", Point: c.Point, Need: 1,
			Names: []string{"go"}}
	}
	if c.Signal.ID == "" {
		c.Signal = model.Signal{ID: subject, Name: "go"}
	}
	if c.Resume.Request == "" {
		c.Resume = model.Resumption{Request: subject, Trigger: "operator", By: "me"}
	}
	return c
}

// point is the n-th waitpoint.
func point(n int) model.Point {
	return model.Point{ID: fmt.Sprintf("00000000-0000-4000-a000-%012x", n), Key: "key" + strconv.Itoa(n%2),
		Kid: model.Kid, Digest: fmt.Sprintf("%064x", n), Nonce: fmt.Sprintf("%032x", n)}
}

func suspension(q model.Wait) []string {
	timeout, condition, count := "", q.Only, "0"
	if q.Timeout != 0 {
		timeout = text(q.Timeout)
	}
	var bound []string
	if q.Only == "" {
		condition, count = strings.Join(append([]string{"L", "1", strconv.Itoa(q.Need)}, q.Names...), "\x1f"), "1"
		bound = []string{q.Point.ID, q.Point.Key, "f", q.Point.Kid, q.Point.Digest, q.Point.Nonce, ""}
		if q.Pending {
			bound = []string{q.Point.ID, q.Point.Key, "p", "", "", "", ""}
		}
	}
	return append([]string{q.ID, q.Request, q.Name, q.Reason, timeout, q.Behaviour, text(q.Delay), condition, "",
		"0", count}, bound...)
}

// request is an id made of Number2.
func (c call) request() string { return fmt.Sprintf("00000000-0000-4000-9000-%012x", c.Number2) }

func (c call) String() string {
	text := fmt.Sprintf("%s %+v", c.Kind, struct {
		ID      string
		Fence   model.Fence
		Session string
		Name    string
		Number  int64
	}{c.ID, c.Fence, c.Session, c.Name, c.Number})
	switch c.Kind {
	case "create":
		return fmt.Sprintf("create %+v", c.Submit)
	case "claim":
		return fmt.Sprintf("claim %+v", c.Claim)
	case "complete and claim":
		return fmt.Sprintf("%s %+v", text, c.Claim)
	case "fail":
		return fmt.Sprintf("%s %+v", text, c.Failure)
	case "cancel":
		return fmt.Sprintf("%s %+v", text, c.Cancel)
	case "replay":
		return fmt.Sprintf("%s %+v", text, c.Replay)
	case "rewind":
		return fmt.Sprintf("%s %.300s", text, fmt.Sprintf("%+v", c.Rewind))
	case "suspend":
		return fmt.Sprintf("%s %+v", text, c.Wait)
	case "pend", "unpend":
		return fmt.Sprintf("%s %+v", text, c.Point)
	case "signal":
		return fmt.Sprintf("%s %s %+v", text, c.Point.ID, c.Signal)
	case "send":
		return fmt.Sprintf("%s %.200s", text, fmt.Sprintf("%+v", c.Message))
	case "receive":
		return fmt.Sprintf("%s %s %d %q", text, c.Message.Mailbox, c.Count, c.Value)
	case "resume":
		return fmt.Sprintf("%s %+v", text, c.Resume)
	case "set lane":
		return fmt.Sprintf("set lane %+v", c.Lane)
	case "subscription":
		return fmt.Sprintf("%s %v", text, c.Routes)
	}
	return text
}

// kind is how calls of one kind are made on a server and in the model.
type kind struct {
	function string
	wire     func(call) []string // without the protocol
	apply    func(*model.Partition, call) model.Reply
	drop     []int // slots of a success that do not matter
}

var kinds = map[string]kind{
	"create": {"ff_create_execution", func(c call) []string { return submission(c.Submit) },
		func(p *model.Partition, c call) model.Reply { return p.Create(c.Submit) }, nil},
	"claim": {"ff_claim_next", func(c call) []string { return request(c.Claim) },
		func(p *model.Partition, c call) model.Reply { return p.Claim(c.Claim) }, nil},
	"complete": {"ff_complete_execution", func(c call) []string { return completion(c, "0") },
		func(p *model.Partition, c call) model.Reply { return p.Complete(c.ID, c.Fence, int(c.Number)) }, nil},
	"complete and claim": {"ff_complete_execution", func(c call) []string {
		return append(completion(c, "1"), request(c.Claim)...)
	},
		func(p *model.Partition, c call) model.Reply {
			return p.CompleteAndClaim(c.ID, c.Fence, int(c.Number), c.Claim)
		}, nil},
	"fail": {"ff_fail_execution", func(c call) []string {
		after := ""
		if c.Failure.After != -1 {
			after = text(c.Failure.After)
		}
		return append(fence(c), c.Failure.Category, c.Failure.Reason, bit(c.Failure.Permanent), after, "", "0")
	}, func(p *model.Partition, c call) model.Reply { return p.Fail(c.ID, c.Fence, c.Failure) }, nil},
	"continue": {"ff_continue_execution", func(c call) []string {
		return append(fence(c), strings.Repeat("x", int(c.Number)))
	},
		func(p *model.Partition, c call) model.Reply { return p.Continue(c.ID, c.Fence, int(c.Number)) }, nil},
	"delay": {"ff_delay_execution", func(c call) []string { return append(fence(c), "+"+text(c.Number), "") },
		func(p *model.Partition, c call) model.Reply { return p.Delay(c.ID, c.Fence, c.Number) }, nil},
	"release": {"ff_release_execution", fence, func(p *model.Partition, c call) model.Reply {
		return p.Release(c.ID, c.Fence)
	}, nil},
	"cancel": {"ff_cancel_execution", func(c call) []string {
		return append(fence(c), c.Cancel.Source)
	},
		func(p *model.Partition, c call) model.Reply { return p.Cancel(c.ID, c.Fence, c.Cancel) }, nil},
	"step": {"ff_record_step", func(c call) []string { return append(fence(c), c.Name, c.Value, "0", "") },
		func(p *model.Partition, c call) model.Reply { return p.RecordStep(c.ID, c.Fence, c.Name, c.Value) }, nil},
	"progress": {"ff_update_progress", func(c call) []string {
		percent := ""
		if c.Number >= 0 {
			percent = text(c.Number)
		}
		return append(fence(c), percent, c.Name)
	}, func(p *model.Partition, c call) model.Reply { return p.Progress(c.ID, c.Fence, int(c.Number), c.Name) }, nil},
	"append": {"ff_append_frames", func(c call) []string {
		args, modes, groups := append(fence(c), strconv.FormatUint(c.Number2, 10), ""),
			cmp.Or(c.Modes, strings.Repeat("d", c.Count)), 0
		for rest := modes; rest != ""; groups++ {
			mode := rest[:1]
			n := len(rest) - len(strings.TrimLeft(rest, mode))
			args = append(args, map[string]string{"d": "d", "s": "s", "l": "l60000"}[mode], "token", "", "", "",
				strconv.Itoa(n))
			args = append(args, slices.Repeat([]string{strings.Repeat("f", int(c.Number))}, n)...)
			rest = rest[n:]
		}
		args[len(fence(c))+1] = strconv.Itoa(groups)
		if strings.Contains(modes, "s") {
			args = append(args, strconv.FormatUint(c.Base, 10), "{"+strings.Repeat(" ", c.Document)+"}")
		}
		if strings.Contains(modes, "l") {
			args = append(args, "64")
		}
		return args
	}, func(p *model.Partition, c call) model.Reply {
		return p.AppendFrames(c.ID, c.Fence, model.Batch{First: c.Number2, Count: c.Count, Size: int(c.Number),
			Modes: c.Modes, Base: c.Base, Document: c.Document + 2})
	}, []int{0}}, // ids of frames are of the server's own clock
	"priority": {"ff_change_priority", func(c call) []string { return []string{c.ID, text(c.Number)} },
		func(p *model.Partition, c call) model.Reply { return p.ChangePriority(c.ID, int(c.Number)) }, nil},
	"set delay": {"ff_set_delay", func(c call) []string {
		return []string{c.ID, text(c.Number), c.request(), ""}
	},
		func(p *model.Partition, c call) model.Reply {
			return p.SetDelay(c.ID, c.Number, c.request())
		}, nil},
	"replay": {"ff_replay_execution", func(c call) []string {
		steps := map[bool]string{false: "keep", true: "drop"}[c.Replay.Drop]
		if c.Replay.From != "" {
			steps = "from " + c.Replay.From
		}
		return []string{c.ID, c.Replay.Request, steps, bit(c.Replay.Force)}
	}, func(p *model.Partition, c call) model.Reply { return p.Replay(c.ID, c.Replay) }, nil},
	"rewind": {"ff_rewind_execution", func(c call) []string {
		encoding := ""
		if c.Rewind.Message != "" {
			encoding = "utf8"
		}
		return []string{c.ID, c.Rewind.Request, c.Rewind.Step, strconv.Itoa(c.Rewind.Attempt), encoding,
			c.Rewind.Message}
	}, func(p *model.Partition, c call) model.Reply { return p.Rewind(c.ID, c.Rewind) }, nil},
	"tags": {"ff_set_tags", func(c call) []string {
		return slices.Concat([]string{c.ID, "execution"}, pairs(c.Set),
			list(c.List))
	},
		func(p *model.Partition, c call) model.Reply { return p.SetTags(c.ID, c.Set, c.List) }, nil},
	"purge": {"ff_purge_execution", func(c call) []string { return []string{c.ID, text(c.Number)} },
		func(p *model.Partition, c call) model.Reply { return p.Purge(c.ID, c.Number) }, nil},
	"revoke": {"ff_revoke_lease", func(c call) []string {
		return []string{c.ID, c.Session, c.request()}
	},
		func(p *model.Partition, c call) model.Reply {
			return p.Revoke(c.ID, c.Session, c.request())
		}, nil},
	"mark dead": {"ff_mark_dead", func(c call) []string { return []string{"session", c.Session} },
		func(p *model.Partition, c call) model.Reply { return p.MarkDead(c.Session, c.Value) }, nil},
	"renew": {"ff_session_renew", func(c call) []string {
		return []string{c.Session, text(c.Number), strconv.FormatUint(c.Number2, 10)}
	}, func(p *model.Partition, c call) model.Reply { return p.Renew(c.Session, c.Number, c.Number2) }, []int{3}},
	"held": {"ff_session_held", func(c call) []string { return []string{c.Session, "0"} },
		func(p *model.Partition, c call) model.Reply { return p.Held(c.Session) }, []int{2}},
	"close": {"ff_session_close", func(c call) []string { return []string{c.Session} },
		func(p *model.Partition, c call) model.Reply { return p.Close(c.Session) }, nil},
	"subscription": {"ff_set_subscription", func(c call) []string {
		args := []string{c.Name, "0", strconv.Itoa(len(c.Routes))}
		for _, r := range c.Routes {
			args = append(args, strconv.Itoa(r))
		}
		return append(args, "0")
	}, func(p *model.Partition, c call) model.Reply { return p.SetSubscription(c.Name, c.Routes) }, nil},
	"suspend": {"ff_suspend_execution", func(c call) []string {
		return append(fence(c), suspension(c.usual().Wait)...)
	},
		func(p *model.Partition, c call) model.Reply { return p.Suspend(c.ID, c.Fence, c.usual().Wait) },
		[]int{5}}, // how long the history is
	"pend": {"ff_create_pending_waitpoint", func(c call) []string {
		w := c.usual().Point
		return append(fence(c), c.Name, w.ID, w.Key, w.Kid, w.Digest, w.Nonce, text(1000+c.Number), "", "")
	}, func(p *model.Partition, c call) model.Reply {
		return p.Pend(c.ID, c.Fence, c.Name, c.usual().Point, 1000+c.Number)
	}, nil},
	"unpend": {"ff_close_waitpoint", func(c call) []string { return append(fence(c), c.usual().Point.ID) },
		func(p *model.Partition, c call) model.Reply { return p.Unpend(c.ID, c.Fence, c.usual().Point.ID) }, nil},
	"signal": {"ff_deliver_signal", func(c call) []string {
		c = c.usual()
		g := c.Signal
		return []string{c.ID, c.Point.ID, c.Point.Digest, g.ID, g.Name, "", "t", "s", "", g.Key, text(g.TTL), "",
			"json", g.Payload}
	}, func(p *model.Partition, c call) model.Reply {
		c = c.usual()
		return p.Deliver(c.ID, c.Point.ID, c.Point.Digest, c.Signal)
	}, nil},
	"send": {"ff_send_message", func(c call) []string {
		m := c.Message
		return []string{c.ID, m.Mailbox, m.ID, m.Key, m.By, "json", m.Payload}
	}, func(p *model.Partition, c call) model.Reply { return p.Send(c.ID, c.Message) }, nil},
	"receive": {"ff_receive_messages", func(c call) []string {
		return append(fence(c), c.Name, c.Message.Mailbox, strconv.Itoa(c.Count), c.Value, "")
	}, func(p *model.Partition, c call) model.Reply {
		return p.Receive(c.ID, c.Fence, c.Name, c.Message.Mailbox, c.Count, c.Value)
	}, nil},
	"messages": {"ff_read_messages", func(c call) []string { return []string{c.ID, "0", "100"} },
		func(p *model.Partition, c call) model.Reply { return p.Messages(c.ID) }, nil},
	"resume": {"ff_resume_execution", func(c call) []string {
		q := c.usual().Resume
		return []string{c.ID, q.Expected, q.Request, q.Trigger, text(q.Delay)}
	}, func(p *model.Partition, c call) model.Reply { return p.Resume(c.ID, c.usual().Resume) }, nil},
	"tick": {"ff_tick", func(c call) []string { return []string{c.Name, bit(c.Flag)} },
		func(p *model.Partition, c call) model.Reply { return p.Tick(c.Name, c.Flag) }, []int{9}},
	"set lane": {"ff_set_lane", func(c call) []string {
		q, keep := c.Lane, ""
		if q.Keep >= 0 {
			keep = text(q.Keep)
		}
		return []string{q.Namespace, q.Name, q.State, keep, ""}
	}, func(p *model.Partition, c call) model.Reply { return p.SetLane(c.Lane) }, nil},
	"lanes": {"ff_list_lanes", func(call) []string { return []string{""} },
		func(p *model.Partition, _ call) model.Reply { return p.ListLanes() }, nil},
}

func (c call) apply(p *model.Partition) model.Reply { return kinds[c.Kind].apply(p, c) }

// wire is the function and its arguments.
func (c call) wire() (function string, args []string) {
	k := kinds[c.Kind]
	by, why := c.asked()
	protocol := strconv.Itoa(limits.Protocol) + trail.Of(trail.As(context.Background(), by, why))
	return k.function, append([]string{protocol}, k.wire(c)...)
}

// asked is who asks for a call and why, as its note says.
func (c call) asked() (by, why string) {
	switch c.Kind {
	case "cancel":
		return c.Cancel.By, c.Cancel.Reason
	case "replay":
		return c.Replay.By, c.Replay.Reason
	case "rewind":
		return c.Rewind.By, c.Rewind.Reason
	case "mark dead":
		return "", c.Value
	case "resume":
		q := c.usual().Resume
		return q.By, q.Why
	case "set lane":
		return c.Lane.By, ""
	}
	return c.Name, c.Value
}

// fence is the id and the four parts, the absent ones empty.
func fence(c call) []string {
	f := c.Fence
	args := []string{c.ID, f.Session, strconv.FormatUint(f.Claim, 10), strconv.FormatUint(f.Epoch, 10),
		strconv.Itoa(f.Attempt)}
	if f.Claim == 0 {
		args[2] = ""
	}
	if f.Epoch == 0 {
		args[3] = ""
	}
	if f == (model.Fence{}) {
		args[4] = ""
	}
	return args
}

func completion(c call, claims string) []string {
	return append(append([]string{"1"}, fence(c)...), strings.Repeat("r", int(c.Number)), claims)
}

func request(q model.ClaimRequest) []string {
	return []string{q.Session, strconv.FormatUint(q.Number, 10), text(q.TTL), strconv.Itoa(q.Max), q.Subscription,
		text(q.Table), bit(q.Wait), text(q.Rotation), "0"}
}

func submission(s model.Submission) []string {
	timeout, ahead := "", func(ms int64) string {
		if ms == 0 {
			return ""
		}
		return "+" + text(ms)
	}
	if s.Policy.AttemptTimeout != 0 {
		timeout = text(time.Duration(s.Policy.AttemptTimeout).Milliseconds())
	}
	id := s.ID
	if s.Key != "" {
		held := text(s.Held)
		if s.Held == -1 {
			held = "-"
		}
		if s.Debounce {
			held = "~" + text(s.Most)
		}
		id += " " + s.Key + " " + held
	}
	return append(append([]string{s.Route.Namespace, s.Route.Lane, s.Route.Kind, s.Route.Capabilities,
		strconv.Itoa(s.Priority), ahead(s.Delay),
		ahead(s.Deadline), valid.PackPolicy(s.Policy), timeout, s.Creator}, pairs(s.Tags)...), "1", id, s.Digest,
		strings.Repeat("i", s.Input))
}

func pairs(m map[string]string) []string {
	args := []string{strconv.Itoa(len(m))}
	for _, k := range slices.Sorted(maps.Keys(m)) {
		args = append(args, k, m[k])
	}
	return args
}

func list(all []string) []string { return append([]string{strconv.Itoa(len(all))}, all...) }

func text(n int64) string { return strconv.FormatInt(n, 10) }

func bit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}
