package model_test

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/flowfabric/flowfabric-go/internal/codes"
	"github.com/flowfabric/flowfabric-go/internal/model"
)

// script is a history that is written by hand: calls one after another, answered by the model itself.
type script struct {
	p   *model.Partition
	ops []porcupine.Operation
}

func newScript() *script {
	s := &script{p: model.New(begin)}
	s.do(call{Kind: "create",
		Submit: model.Submission{ID: subject, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}}})
	s.do(call{Kind: "subscription", Name: "aa", Routes: []int{1}})
	return s
}

// do appends a call after all others and returns where it stands.
func (s *script) do(c call) int {
	at := int64(10 * len(s.ops))
	seen := &outcome{}
	switch c.Kind {
	case clock:
		s.p.Advance(s.p.Now + c.Number)
	case read:
		seen.view, seen.code = s.p.View(c.ID)
		seen.view.Streams = nil
	default:
		seen.reply = c.apply(s.p)
	}
	s.ops = append(s.ops, porcupine.Operation{ClientId: len(s.ops), Input: c, Call: at, Output: seen, Return: at + 5})
	return len(s.ops) - 1
}

func (s *script) claim(session string) model.Fence {
	i := s.do(call{Kind: "claim", Claim: model.ClaimRequest{Session: session, Number: 1, TTL: lease, Max: 1,
		Subscription: "aa", Table: 1}})
	return s.reply(i).Claims[0].Fence
}

// create submits an execution of the same lane.
func (s *script) create(id string) int {
	return s.do(call{Kind: "create",
		Submit: model.Submission{ID: id, Route: model.Route{Namespace: "n", Lane: "l", Kind: "k"}}})
}

func (s *script) lane(state string) {
	s.do(call{Kind: "set lane", Lane: model.LaneChange{LaneName: usual, State: state, Keep: -1}})
}

// complete completes the subject under a fence.
func (s *script) complete(f model.Fence) int {
	return s.do(call{Kind: "complete", ID: subject, Fence: f})
}

// requeue lets the holder's lease run out.
func (s *script) requeue() {
	s.do(call{Kind: clock, Number: advance})
	s.do(call{Kind: "tick", Name: "t1"})
}

func (s *script) reply(i int) *model.Reply { return &s.ops[i].Output.(*outcome).reply }

// lose makes a call one whose reply was lost.
func (s *script) lose(i int) { s.ops[i].Output, s.ops[i].Return = (*outcome)(nil), never }

// TestControl feeds the checker histories that are wrong, each next to the right one that it was made of. A checker
// that accepts them would accept anything from the library as well.
func TestControl(t *testing.T) {
	t.Parallel()
	ok := model.Reply{Code: model.OK}
	for _, c := range []struct {
		name  string
		legal bool
		write func(s *script)
	}{
		{"a requeued execution is completed by its second holder", true, func(s *script) {
			first := s.claim("w1~1")
			s.requeue()
			s.complete(s.claim("w2~1"))
			s.complete(first)
		}},
		{"a stale completion is accepted", false, func(s *script) {
			first := s.claim("w1~1")
			s.requeue()
			s.claim("w2~1")
			*s.reply(s.complete(first)) = ok
		}},
		{"two epochs complete one execution", false, func(s *script) {
			first := s.claim("w1~1")
			s.requeue()
			s.complete(s.claim("w2~1"))
			*s.reply(s.complete(first)) = ok
		}},
		{"an expired lease completes", false, func(s *script) {
			f := s.claim("w1~1")
			s.do(call{Kind: clock, Number: advance})
			*s.reply(s.complete(f)) = ok
		}},
		{"one execution is claimed twice", false, func(s *script) {
			s.claim("w1~1")
			i := s.do(call{Kind: "claim", Claim: model.ClaimRequest{Session: "w2~1", Number: 1, TTL: lease, Max: 1,
				Subscription: "aa", Table: 1}})
			s.reply(i).Claims = s.reply(2).Claims
		}},
		{"an epoch goes back", false, func(s *script) {
			s.claim("w1~1")
			s.requeue()
			s.claim("w2~1")
			s.reply(len(s.ops) - 1).Claims[0].Fence.Epoch = uint64(begin)
		}},
		{"a read after the completion shows it", true, func(s *script) {
			s.complete(s.claim("w1~1"))
			s.do(call{Kind: read, ID: subject})
		}},
		{"a read after the completion misses it", false, func(s *script) {
			f := s.claim("w1~1")
			before := *s.ops[s.do(call{Kind: read, ID: subject})].Output.(*outcome)
			s.complete(f)
			*s.ops[s.do(call{Kind: read, ID: subject})].Output.(*outcome) = before
		}},
		{"a read at the time of the completion misses it", true, func(s *script) {
			f := s.claim("w1~1")
			before := *s.ops[s.do(call{Kind: read, ID: subject})].Output.(*outcome)
			i := s.complete(f)
			s.ops[i].Return += 100
			*s.ops[s.do(call{Kind: read, ID: subject})].Output.(*outcome) = before
		}},
		{"a lost completion is answered when it is repeated", true, func(s *script) {
			f := s.claim("w1~1")
			s.lose(s.complete(f))
			s.complete(f)
		}},
		{"a lost completion happens twice", false, func(s *script) {
			f := s.claim("w1~1")
			s.lose(s.complete(f))
			s.complete(f)
			*s.reply(s.complete(f)) = ok
			*s.reply(len(s.ops) - 2) = ok
		}},
		{"a repeated failure names another instant", false, func(s *script) {
			fail := call{Kind: "delay", ID: subject, Fence: s.claim("w1~1"), Number: 20_000}
			s.do(fail)
			s.reply(s.do(fail)).Slots[0] = text(begin + 1)
		}},
		{"a notice is never delivered", false, func(s *script) {
			s.claim("w1~1")
			s.do(call{Kind: "revoke", ID: subject})
			i := s.do(call{Kind: "renew", Session: "w1~1", Number: lease})
			s.reply(i).Slots = s.reply(i).Slots[:3]
		}},
		{"a tick requeues what is alive", false, func(s *script) {
			s.claim("w1~1")
			s.reply(s.do(call{Kind: "tick", Name: "t1"})).Slots[4] = "1"
		}},
		{"a closed lane takes no work, and hands out what it has once it is open again", true, func(s *script) {
			s.lane("disabled")
			s.create(unknown)
			s.do(call{Kind: "claim", Claim: model.ClaimRequest{Session: "w1~1", Number: 1, TTL: lease, Max: 1,
				Subscription: "aa", Table: 1}})
			s.lane("active")
			s.complete(s.claim("w1~1"))
		}},
		{"a disabled lane takes work", false, func(s *script) {
			s.lane("disabled")
			*s.reply(s.create(unknown)) = model.Reply{Code: model.OK, Slots: []string{"R1f"}}
		}},
		{"a paused lane hands out work", false, func(s *script) {
			s.claim("w1~1")
			claimed := s.ops[len(s.ops)-1]
			s.requeue()
			s.lane("paused")
			i := s.do(call{Kind: "claim", Claim: model.ClaimRequest{Session: "w2~1", Number: 1, TTL: lease, Max: 1,
				Subscription: "aa", Table: 1}})
			s.reply(i).Claims = claimed.Output.(*outcome).reply.Claims
		}},
		{"what ended is purged before its time", false, func(s *script) {
			s.complete(s.claim("w1~1"))
			s.do(call{Kind: clock, Number: 86_399_999})
			s.reply(s.do(call{Kind: "tick", Name: "t1"})).Slots[11] = "1"
		}},
		{"what ended is purged at its time, and its route with it", true, func(s *script) {
			s.complete(s.claim("w1~1"))
			s.do(call{Kind: clock, Number: 86_400_000})
			if s.reply(s.do(call{Kind: "tick", Name: "t1"})).Slots[11] != "1" || len(s.p.Routes) != 0 {
				panic("the model keeps it")
			}
			s.do(call{Kind: read, ID: subject})
		}},
		{"a route comes back under its old id", false, func(s *script) {
			s.complete(s.claim("w1~1"))
			s.do(call{Kind: "purge", ID: subject, Number: 86_400_000})
			s.create(unknown)
			s.do(call{Kind: "subscription", Name: "aa", Routes: []int{1, 2}})
			i := s.do(call{Kind: "claim", Claim: model.ClaimRequest{Session: "w2~1", Number: 1, TTL: lease, Max: 1,
				Subscription: "aa", Table: 1}})
			s.reply(i).Claims[0].Route = 1
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScript()
			c.write(s)
			want := porcupine.Illegal
			if c.legal {
				want = porcupine.Ok
			}
			if got := porcupine.CheckOperationsTimeout(sequential(model.New(begin)), s.ops, unbounded); got != want {
				t.Errorf("the verdict is %s, want %s:\n%s", got, want, tell(s.ops))
			}
		})
	}
}

// TestLegal holds the table of moves against the codes there are: A2 is only shown, S3, S4, S6, S7 and S8 are as S1
// is, R3 and T5 belong to flows (flow_oracle_test.go), G1 to gates (gates_test.go), R4 to operators, and whatever is
// left can be reached and left again.
func TestLegal(t *testing.T) {
	t.Parallel()
	reached := map[model.Code]bool{}
	for _, all := range model.Legal {
		for _, to := range all {
			reached[to] = true
		}
	}
	for _, text := range codes.All() {
		code := codes.Code(text)
		_, left := model.Legal[code]
		if elsewhere := slices.Contains([]model.Code{"A2", "R3f", "R3p", "S3", "S4", "S6", "S7", "S8", "T5",
			"T5n"}, code) || code[:2] == "G1" || code[:2] == "R4"; left == elsewhere || reached[code] == elsewhere {
			t.Errorf("%s: reached %t, left %t", code, reached[code], left)
		}
	}
	for code := range reached {
		if _, ok := codes.Project(code); !ok {
			t.Errorf("%s is no code", code)
		}
	}
}
