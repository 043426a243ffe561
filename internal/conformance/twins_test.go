package conformance

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/ids"
	"github.com/flowfabric/flowfabric-go/internal/library"
	"github.com/flowfabric/flowfabric-go/internal/mint"
)

// general is the library without its fast paths.
func general(f Features) string {
	return library.Library(library.Variant{Sharded: f.ShardedPubSub, TestClock: true, General: true})
}

// slowLibrary is that library under another name. Its functions begin with slow_.
func slowLibrary(w *env) string {
	text := strings.Replace(general(w.srv.Features), "#!lua name="+library.Name, "#!lua name=slow", 1)
	return strings.ReplaceAll(text, "function_name='ff_", "function_name='slow_")
}

// claimed is the header of a claim in a reply.
var claimed = regexp.MustCompile(`^([0-9a-f-]{36}) (\d+) (\d+) \w+ \d+ `)

var twinScenarios = []scenario{
	{name: "the fast paths of claims, completions and ends of upstreams leave and answer what the slow ones do",
		needs: []string{"Native"}, run: func(w *env) {
			seed := uint64(number("FLOWFABRIC_SEED", time.Now().UnixNano()))
			w.Logf("seed %d", seed)
			r := rand.New(rand.NewPCG(seed, 9))
			other := w.neighbour()
			w.set("FUNCTION", "LOAD", "REPLACE", slowLibrary(w))
			defer w.set("FUNCTION", "DELETE", "slow")
			both := func(name string, args ...string) []string {
				w.Helper()
				var said [2][]string
				for i, root := range []string{string(w.k), string(other.k)} {
					call := []string{"ff_", "slow_"}[i] + name
					got, err := w.raw.Do(w.ctx, w.raw.B().Fcall().Function(call).Numkeys(1).Key(root).Arg(args...).
						Build()).ToArray()
					w.no(err)
					for _, m := range got[1:] {
						text, err := m.ToString()
						w.no(err)
						said[i] = append(said[i], text)
					}
				}
				if !slices.Equal(said[0], said[1]) || said[0][0] != "OK" {
					w.Fatalf("%s answers\n%.2000q, the slow one\n%.2000q", name, said[0], said[1])
				}
				return said[0]
			}
			item := func() engine.NewExecution {
				x := w.item(payload(make([]byte, []int{0, 3, 4000}[r.IntN(3)])))
				x.Priority = r.IntN(3)
				switch r.IntN(5) {
				case 0:
					deadline(time.Hour)(&x)
				case 1:
					timeout(time.Minute)(&x)
				}
				return x
			}
			const session = "w1~twins"
			fences := []flowfabric.Fence{}
			number := 1 // of the next claim; one that finds nothing does not count
			search := func(most int) []string {
				return []string{session, strconv.Itoa(number), "30000", strconv.Itoa(most), allRoutes, "0", "0",
					strconv.Itoa(number), "0"}
			}
			take := func(said []string) {
				had := len(fences)
				for _, slot := range said {
					if m := claimed.FindStringSubmatch(slot); m != nil {
						id, err := ids.ParseUUID(m[1])
						w.no(err)
						attempt, _ := strconv.ParseUint(m[2], 10, 32)
						epoch, _ := strconv.ParseUint(m[3], 10, 64)
						fences = append(fences, flowfabric.Fence{Execution: mint.Join(w.p, id), Session: session,
							Claim: uint64(number), Epoch: epoch, Attempt: uint32(attempt)})
					}
				}
				if len(fences) > had {
					number++
				}
			}
			other.set("HSET", string(other.k), "clock_pin", w.hash(string(w.k))["clock_pin"])
			both("set_subscription", proto, allRoutes, "0", "1", "1", "0")
			for range 120 {
				switch r.IntN(6) {
				case 0:
					both("create_execution", createArgs(item(), item(), item())...)
				case 1:
					g := &graph{env: w, id: flowfabric.FlowID(mint.ID(w.p))}
					var nodes []engine.FlowMember
					for i := range 2 + r.IntN(4) {
						x := item()
						x.ID = g.id.Member(fmt.Sprint(i))
						m := engine.FlowMember{NewExecution: x, Node: fmt.Sprint(i)}
						if i > 0 {
							m.Edges = []engine.FlowEdge{{From: g.id.Member(fmt.Sprint(r.IntN(i))),
								Input: []string{"", "in"}[r.IntN(2)]}}
						}
						nodes = append(nodes, m)
					}
					both("flow_create", wireMake(g.id, "seal", nodes...)...)
				case 2:
					take(both("claim_next", append([]string{proto}, search(1+r.IntN(4))...)...))
				case 3:
					for _, e := range []*env{w, other} {
						e.set("HINCRBY", string(e.k), "clock_pin", "7")
					}
				default:
					n := min(len(fences), 1+r.IntN(3))
					if n == 0 {
						continue
					}
					args := []string{proto, strconv.Itoa(n)}
					for _, f := range fences[:n] {
						args = append(args, fenceArgs(f)...)
						args = append(args, strings.Repeat("r", []int{0, 5, 4000}[r.IntN(3)]))
					}
					fences = fences[n:]
					if r.IntN(2) == 0 {
						both("complete_execution", append(args, "0")...)
					} else {
						args = append(args, "1")
						take(both("complete_execution", append(args, search(1+r.IntN(4))...)...))
					}
				}
			}
			if a, b := w.dump().Text("root booted"), other.dump().Text("root booted"); a != b {
				w.Fatalf("the fast paths leave\n%s", difference(b, a))
			}
			w.check()
		}},
}
