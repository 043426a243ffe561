package crash

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/flowfabric/flowfabric-go/benchmarks/driver"
	"github.com/flowfabric/flowfabric-go/benchmarks/driver/drivertest"
)

// This program is also the workers that tests start.
func TestMain(m *testing.M) {
	if len(os.Args) > 3 && os.Args[1] == "crash" {
		if err := Work(context.Background(), os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// Moments of a run, in the order of every agent.
const (
	middleOfAnswer = 4                     // its third token is out
	firstBooked    = perTurn + 4           // after its call, its tokens, its end, and the arrival of the booking
	secondBooked   = 2 * (perTurn + 4)     // likewise
	lastToken      = 3*(perTurn+2) + 4 - 1 // of the run
)

// killed makes a run of each system whose worker is killed at a moment, and one that is not killed.
func killed(t *testing.T, s system, at ...int) (calm outcome, runs []outcome) {
	t.Helper()
	l, err := openLane(t.Context(), s, "redis-server")
	if errors.Is(err, driver.ErrNotInstalled) {
		t.Skip("NOT TESTED: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer l.close()
	for _, n := range append([]int{0}, at...) {
		p := point{moment, n}
		if n == 0 {
			p = point{}
		}
		o, err := l.run(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		if o.wrong != "" || o.killed != (n > 0) || o.lost > 0 || o.ruled > 0 {
			t.Errorf("killed at moment %d: %+v", n, o)
		}
		runs = append(runs, o)
	}
	return runs[0], runs[1:]
}

// Every system goes on after a kill. One that records steps repeats the step in which its worker died, with the same
// seat, and pays for no other model call.
func TestEverySystemRecovers(t *testing.T) {
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			calm, runs := killed(t, s, middleOfAnswer, firstBooked, secondBooked)
			if calm.bookings != 2 || calm.keyed != 2 || calm.other || calm.twice+calm.dropped > 0 {
				t.Fatalf("without a kill: %+v", calm)
			}
			answer, first, second := runs[0], runs[1], runs[2]
			if answer.where != "token 3 of answer 1 is out" || answer.tokens <= calm.tokens || answer.bookings != 2 {
				t.Errorf("killed in an answer: %+v", answer)
			}
			if first.where != "booking 1 is made" || first.bookings != 3 || first.keyed != 2 ||
				second.where != "booking 2 is made" {
				t.Errorf("killed when a seat was booked: %+v\n%+v", first, second)
			}
			if s.name == asynqPlain.name { // from the beginning
				if second.bookings != 4 || !second.other || second.tokens-calm.tokens <= first.tokens-calm.tokens ||
					second.twice != 2*perTurn {
					t.Errorf("killed when the second seat was booked: %+v", second)
				}
				return
			}
			if second.bookings != 3 || second.other || first.other || second.tokens != calm.tokens ||
				first.tokens != calm.tokens || first.twice+second.twice > 0 {
				t.Errorf("recorded steps were repeated: %+v\n%+v", first, second)
			}
		})
	}
}

// A reader of FlowFabric is told what is repeated, and a kill at each of some writes costs one model call at most.
func TestFlowFabric(t *testing.T) {
	drivertest.Needs(t, "redis-server")
	calm, runs := killed(t, flowFabric, lastToken)
	if o := runs[0]; o.twice > 0 || o.tokens <= calm.tokens || o.bookings != 2 {
		t.Errorf("%+v", o)
	}
	dir := t.TempDir()
	var out bytes.Buffer
	o := Options{Server: "redis-server", Systems: []string{flowFabric.name}, Most: 4, Lanes: 2, Points: true,
		Out: filepath.Join(dir, "some", "page.md")}
	if err := Run(t.Context(), o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(o.Out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"This is a sample", "| FlowFabric | 4 | 4 | ", "| FlowFabric | 8 | 8 | ",
		" | 0 | after 0 kills | ", " | 0 | 0 | 0 | 0 |", "## What FlowFabric repeats", "\n**FlowFabric**, "} {
		if !strings.Contains(string(written), want) {
			t.Errorf("no %q in\n%s", want, written)
		}
	}
	for _, want := range []string{"before a write", "after a write", "ff_", "Ended right: 4"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
}

func TestUnknownSystem(t *testing.T) {
	err := Run(t.Context(), Options{Systems: []string{"celery"}}, io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `unknown system "celery"`) {
		t.Errorf("%v", err)
	}
	if err := Work(t.Context(), []string{"celery"}); err == nil {
		t.Error("a worker without a store")
	}
}

// A system that this machine lacks is named on the page.
func TestNotInstalled(t *testing.T) {
	var out bytes.Buffer
	o := Options{Server: "/nowhere/redis-server", Systems: []string{asynqPlain.name}, Lanes: 1,
		Out: filepath.Join(t.TempDir(), "page.md")}
	if err := Run(t.Context(), o, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	written, err := os.ReadFile(o.Out)
	if err != nil || !strings.Contains(string(written), "**asynq**, which did not run (") {
		t.Errorf("%v\n%s", err, written)
	}
}
