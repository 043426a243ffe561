package handler_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/admin"
	"github.com/flowfabric/flowfabric-go/fftest"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/runtime"
	"github.com/flowfabric/flowfabric-go/suspend"
)

var asker = handler.Define[int, []string]("asker", flowfabric.Retries(0))

// numberedQuestions are so many of them, called q1, q2 …
func numberedQuestions(n int) (all []suspend.Question) {
	for i := range n {
		all = append(all, suspend.Question{Key: fmt.Sprint("q", i+1), Title: fmt.Sprint("Question ", i+1, "?")})
	}
	return all
}

// inWords are the causes and choices of answers.
func inWords(answers []suspend.Answer) (out []string) {
	for _, a := range answers {
		out = append(out, string(a.Cause)+" "+a.Choice)
	}
	return out
}

// asking asks n questions under a name.
func asking(name string) func(context.Context, *handler.Task, int) ([]string, error) {
	return func(ctx context.Context, task *handler.Task, n int) ([]string, error) {
		answers, err := task.AskAll(ctx, name, numberedQuestions(n))
		return inWords(answers), err
	}
}

func approveAll(from, to int) (all []fftest.Answer) {
	for i := from; i <= to; i++ {
		all = append(all, fftest.Approve(fmt.Sprint("q", i), suspend.Answer{Choice: "approve"}))
	}
	return all
}

// Sixteen questions are open at once, the next one follows. A name that has no room for the number of what follows is
// refused before anybody is asked.
func TestAskSixteenAndOneMore(t *testing.T) {
	for n, waits := range map[int]int{16: 1, 17: 2, 33: 3} {
		r := fftest.Run(t, asker, fftest.Answered(asking("all"), approveAll(1, n)...), n)
		if r.Err != nil || len(r.Waits) != waits || len(r.Result) != n {
			t.Errorf("%d questions: %v, %d waits, %d answers", n, r.Err, len(r.Waits), len(r.Result))
		}
		for i, text := range r.Result {
			if text != "signal approve" {
				t.Errorf("%d questions, number %d: %s", n, i+1, text)
			}
		}
	}
	longest := asking(strings.Repeat("n", limits.MaxStepName))
	r := fftest.Run(t, asker, fftest.Answered(longest, approveAll(1, 16)...), 16)
	if r.Err != nil {
		t.Error(r.Err)
	}
	for n, most := range map[int]int{17: limits.MaxStepName - 2, 33: limits.MaxStepName - 2} {
		r = fftest.Run(t, asker, asking(strings.Repeat("n", most+1)), n)
		if r.Err == nil || len(r.Waits) > 0 || !strings.Contains(r.Err.Error(), "wait name") {
			t.Errorf("%d questions: %v, %d waits", n, r.Err, len(r.Waits))
		}
		r = fftest.Run(t, asker, fftest.Answered(asking(strings.Repeat("n", most)), approveAll(1, n)...), n)
		if r.Err != nil || len(r.Result) != n {
			t.Errorf("%d questions: %v", n, r.Err)
		}
	}
}

// An operator ends what is open; what was answered counts, and what was not asked yet is asked.
func TestAnOperatorEndsSixteenOfSeventeen(t *testing.T) {
	answers := append(approveAll(3, 3), fftest.Resume(), fftest.Approve("q17", suspend.Answer{Choice: "reject"}))
	r := fftest.Run(t, asker, fftest.Answered(asking("all"), answers...), 17)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	for i, text := range r.Result {
		want := map[int]string{2: "signal approve", 16: "signal reject"}[i]
		if want == "" {
			want = "operator "
		}
		if text != want {
			t.Errorf("%d: %q, want %q", i+1, text, want)
		}
	}
}

// A cancellation between two answers ends all questions, and whoever answers later is told.
func TestCancelBetweenTwoAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := fftest.New(t, runtime.Config{}, handler.Bind(asker, asking("all")))
		x := fftest.Submit(w, asker, 3)
		x.Answer(fftest.Approve("q2", suspend.Answer{Choice: "approve"}))
		x.Cancel()
		if r := x.Wait(); r.State != flowfabric.Cancelled {
			t.Errorf("%v, %v", r.State, r.Err)
		}
		for _, key := range []string{"q1", "q2"} {
			_, err := w.Client().Execution(x.ID()).Approve(t.Context(), key, suspend.Answer{Choice: "approve"},
				flowfabric.By("anna"))
			if !errors.Is(err, flowfabric.ErrWaitpointClosed) && !errors.Is(err, flowfabric.ErrTerminal) {
				t.Errorf("%s: %v", key, err)
			}
		}
		open, err := admin.New(w.Client()).Approvals(t.Context(), admin.ApprovalFilter{}, "", 0)
		if err != nil || len(open.Items) > 0 {
			t.Errorf("%v, %v", open.Items, err)
		}
	})
}

// The worker dies anywhere around questions that are answered one after the other, in two waits: nobody is asked twice.
func TestCrashesBetweenAnswers(t *testing.T) {
	n := fftest.Crashes(t, asker, func(fx *fftest.Effects) func(context.Context, *handler.Task, int) ([]string, error) {
		return fftest.Answered(func(ctx context.Context, task *handler.Task, n int) ([]string, error) {
			if _, err := handler.Step(ctx, task, "before", func(context.Context) (int, error) {
				fx.Did("before")
				return 1, nil
			}); err != nil {
				return nil, err
			}
			return asking("all")(ctx, task, n)
		}, approveAll(1, 17)...)
	}, 17, func(r *fftest.Report[[]string]) {
		if r.Err != nil || strings.Join(r.Result, ",") != strings.Repeat("signal approve,", 16)+"signal approve" {
			t.Errorf("%s: %v, %q", r.Crash, r.Err, r.Result)
		}
	})
	if n < 10 {
		t.Errorf("%d crashes", n)
	}
}

// A replay that keeps the steps asks nothing again.
func TestAReplayKeepsAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fail := true
		w := fftest.New(t, runtime.Config{}, handler.Bind(asker,
			func(ctx context.Context, task *handler.Task, n int) ([]string, error) {
				words, err := asking("all")(ctx, task, n)
				if err == nil && fail {
					return nil, handler.Permanent(errors.New("not yet"))
				}
				return words, err
			}))
		x := fftest.Submit(w, asker, 17)
		for _, a := range approveAll(1, 17) {
			x.Answer(a)
		}
		if r := x.Wait(); r.State != flowfabric.Failed {
			t.Fatal(r.State)
		}
		fail = false
		if err := admin.New(w.Client()).Replay(t.Context(), x.ID(), admin.Replay{}, flowfabric.By("op")); err != nil {
			t.Fatal(err)
		}
		r := x.Wait()
		if r.Err != nil || len(r.Result) != 17 || r.Result[16] != "signal approve" || len(r.Waits) != 2 {
			t.Errorf("%v, %q, %d waits", r.Err, r.Result, len(r.Waits))
		}
	})
}

// A waitpoint that Pending has opened takes the answer to its question, from who has its token, too. One that came
// before the question counts.
func TestAQuestionOnAPendingWaitpoint(t *testing.T) {
	for want, early := range map[string]bool{"signal reject": true, "signal approve": false} {
		answers := approveAll(2, 3)
		if !early {
			answers = approveAll(1, 3)
		}
		t.Run(want, func(t *testing.T) {
			r := fftest.Run(t, asker, fftest.Answered(
				func(ctx context.Context, task *handler.Task, n int) ([]string, error) {
					token, err := task.Pending(ctx, "q1", time.Hour)
					if err != nil {
						return nil, err
					}
					if early {
						if _, err := handler.Step(ctx, task, "tell", func(ctx context.Context) (int, error) {
							fftest.Tell(ctx, fftest.Signal(token, suspend.Answer{Choice: "reject"}))
							return 1, nil
						}); err != nil {
							return nil, err
						}
					}
					return asking("all")(ctx, task, n)
				}, answers...), 3)
			if r.Err != nil || strings.Join(r.Result, ",") != want+",signal approve,signal approve" {
				t.Errorf("%v, %q", r.Err, r.Result)
			}
		})
	}
}

// Questions that cannot be asked together are refused before anybody is asked.
func TestQuestionsThatAreRefused(t *testing.T) {
	twice := append(numberedQuestions(2), numberedQuestions(1)...)
	negative := numberedQuestions(1)
	negative[0].Within = -time.Second
	for want, questions := range map[string][]suspend.Question{
		"comes twice": twice, "want 1..64": nil, "is empty": {{Title: "Who?"}}, "Within": negative,
		"65 questions": numberedQuestions(65),
	} {
		r := fftest.Run(t, asker, func(ctx context.Context, task *handler.Task, _ int) ([]string, error) {
			_, err := task.AskAll(ctx, "all", questions)
			if !errors.Is(err, flowfabric.ErrInvalidInput) {
				t.Errorf("%s: %v", want, err)
			}
			return nil, err
		}, 0)
		if r.Err == nil || !strings.Contains(r.Err.Error(), want) || len(r.Waits) > 0 {
			t.Errorf("%v, want %s", r.Err, want)
		}
	}
}

// Two calls may ask under the same keys, one after the other.
func TestTheSameKeysTwice(t *testing.T) {
	r := fftest.Run(t, asker, fftest.Answered(
		func(ctx context.Context, task *handler.Task, n int) ([]string, error) {
			first, err := asking("one")(ctx, task, n)
			if err != nil {
				return nil, err
			}
			second, err := asking("two")(ctx, task, n)
			return append(first, second...), err
		}, append(approveAll(1, 2), fftest.Approve("q2", suspend.Answer{Choice: "reject"}),
			fftest.Approve("q1", suspend.Answer{Choice: "approve"}))...), 2)
	if r.Err != nil || strings.Join(r.Result, ",") != "signal approve,signal approve,signal approve,signal reject" {
		t.Errorf("%v, %q", r.Err, r.Result)
	}
}
