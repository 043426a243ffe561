package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/admission"
	"github.com/flowfabric/flowfabric-go/agent"
	"github.com/flowfabric/flowfabric-go/blob"
	"github.com/flowfabric/flowfabric-go/chat"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

// stage is a conversation in virtual time.
type stage struct {
	*testing.T
	env  *fftest.Env
	talk *fftest.Execution[agent.Result]
}

// perform begins a conversation, with a budget if it has a limit.
func perform(t *testing.T, limit int64, test func(s *stage)) {
	synctest.Test(t, func(t *testing.T) {
		talker := NewTalker(builtIn{pace: 50 * time.Millisecond}, newTools(t.TempDir()), blob.Folder(t.TempDir()))
		s := &stage{T: t, env: fftest.New(t, runtime.Config{}, handler.Bind(Talk, talker.Handle))}
		s.talk = fftest.Submit(s.env, Talk, chat.Conversation{},
			fftest.Gates(admission.Gate{Name: "b", Limits: map[string]admission.Limit{dimension: {Hard: limit}}}))
		test(s)
	})
}

func (s *stage) say(text string) {
	s.Helper()
	if _, err := s.env.Client().Execution(s.talk.ID()).Send(s.Context(), "user", text); err != nil {
		s.Fatal(err)
	}
}

// asks lets a minute pass, in which every answer and every lease of a dead worker ends, and tells what the
// conversation waits for then.
func (s *stage) asks(name string) {
	s.Helper()
	s.env.Sleep(time.Minute)
	if r := s.talk.AwaitSuspension(); !strings.HasPrefix(r.Name, name) {
		s.Fatalf("it waits for %q, want %q", r.Name, name)
	}
}

// heard is the last line of what is recorded.
func (s *stage) heard() agent.Message {
	s.Helper()
	r, err := agent.ReadTranscript(s.Context(), s.env.Client(), s.talk.ID(), agent.TranscriptOptions{})
	if err != nil || len(r.Messages) == 0 {
		s.Fatalf("%+v, %v", r, err)
	}
	return r.Messages[len(r.Messages)-1]
}

// A worker that dies in the middle of an answer, and in the wait for an approval, changes nothing of what is said.
func TestConversationSurvives(t *testing.T) {
	perform(t, 0, func(s *stage) {
		s.asks("user")
		s.say("Tell me about the sea")
		s.env.Sleep(2 * time.Second)
		s.env.Kill()
		s.asks("user")
		if text := s.heard().Text(); text != story("the sea", 0) {
			s.Errorf("%q", text)
		}
		s.say("search whales and publish it")
		s.asks("approve ")
		s.env.Kill()
		s.talk.Answer(fftest.Approve("approve 3.1 publish", suspend.Answer{Choice: "approve"}))
		s.asks("user")
		if text := s.heard().Text(); !strings.HasPrefix(text, "It is published as /published/") {
			s.Errorf("%q", text)
		}
	})
}

// An answer that the budget does not pay for is not recorded. It is asked for again when more is allowed, or the
// conversation ends.
func TestConversationWaitsForItsBudget(t *testing.T) {
	perform(t, 300, func(s *stage) {
		a := admin.New(s.env.Client())
		s.asks("user")
		s.say("What is 1 + 1?")
		s.asks("user")
		before := s.heard()
		s.say("Tell me about the sea")
		s.asks("budget 3.1")
		if now := s.heard(); now.Text() != before.Text() {
			s.Errorf("%+v was recorded", now)
		}
		s.talk.Answer(fftest.Approve("budget 3.1", suspend.Answer{Choice: allowMore})) // and nobody raises it
		s.asks("budget 3.2")
		b, err := a.GetGate(s.Context(), "b")
		if err != nil {
			s.Fatal(err)
		}
		b.Limits = map[string]admission.Limit{dimension: {Hard: 1500}}
		if err := a.PutGate(s.Context(), b.Gate, flowfabric.IfRevision(b.Revision),
			flowfabric.By("ada")); err != nil {
			s.Fatal(err)
		}
		s.talk.Answer(fftest.Approve("budget 3.2", suspend.Answer{Choice: allowMore}))
		s.asks("user")
		if text := s.heard().Text(); text != story("the sea", 4) {
			s.Errorf("%q", text)
		}
		s.say("Tell me about the sea")
		s.asks("budget 4.1")
		s.talk.Answer(fftest.Approve("budget 4.1", suspend.Answer{Choice: endIt}))
		if r := s.talk.Wait(); r.Err != nil || r.Result.Turns != 3 || len(r.Attempts) != 1 {
			s.Errorf("%v, %+v", r.Err, r.Result)
		}
	})
}
