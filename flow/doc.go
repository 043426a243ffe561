// Package flow builds graphs of work in which one piece depends on another: a graph of typed nodes that is submitted
// as one flow, and sets of children that a handler makes and waits for. Package handler waits, and reads results.
//
//	var ( // producers and workers share these
//		Fetch = handler.Define[string, string]("fetch")
//		Join  = handler.Define[string, string]("join")
//		Left  = flow.Input[string]{Name: "left"}
//		Right = flow.Input[string]{Name: "right"}
//	)
//
//	// the producer
//	f := flow.New("report")
//	a := flow.Add(f, "tides", Fetch, "tides")
//	b := flow.Add(f, "moons", Fetch, "moons")
//	report := flow.Add(f, "report", Join, "title", Left.From(a), Right.From(b))
//	submitted, err := client.SubmitFlow(ctx, c, f)
//	text, err := client.NodeResult(ctx, submitted, report) // waits
//
//	// the handler of Join
//	func join(ctx context.Context, t *handler.Task, title string) (string, error) {
//		left, err := handler.Need(t, Left)
//		if err != nil {
//			return "", err
//		}
//		right, err := handler.Need(t, Right)
//		return title + ": " + left + right, err
//	}
//
// Every node is an execution of a definition, with its own retries, lane and deadline. It runs once those it depends
// on allow it: all of them succeeded (the default), one of them ([AnyOf]), or so many ([Quorum]). The server decides
// that in the very call that ends an upstream, so nothing polls and nobody has to be alive but the workers:
//
//	              all its upstreams               [AnyOf] [Quorum]
//	satisfied     succeeded                       enough succeeded: the node runs; with [CancelRemaining] the others are cancelled
//	impossible    one failed, was cancelled,      so many did not succeed that enough cannot: the node is skipped,
//	              expired or was skipped          and so on down the graph
//
// A node with [AllEnded] runs once all its upstreams have ended, in whatever way: cleanup. One with [AnyFailed] does
// so only if one of them did not succeed, and is skipped otherwise. handler.Task.Upstreams tells their handlers what
// came before.
//
// A flow ends by itself when none of its nodes is left. It completed if every node that no other depends on succeeded;
// otherwise it failed. So the losers of a race and the tolerated failures of a quorum do not fail it. Nodes with
// [AllEnded] and [AnyFailed], and what is behind the latter, do not count as depending on others there: a flow whose
// work failed has failed, whatever its cleanup came to. A node that was skipped because nothing failed does not fail
// the flow.
//
// # Results
//
// An [Input] names the result of an upstream, with its type, on both sides: Left.From(node) where the flow is built,
// and handler.Need(t, Left) in the handler, or handler.Given(t, Left) where it may be missing. Results are not copied;
// the claim of the node brings them. An upstream that did not succeed, or only after the decision of an any-of or a
// quorum, gives nothing.
//
// # Children
//
// A handler makes [Children] and waits for them with handler.Task.WaitChildren. It gives up slot, lease and goroutine
// meanwhile, as it does with package suspend, and runs again from the top when they have ended. They join the handler's
// flow, which must be [Growing]; an execution that is in no flow starts one, whose id is its own, and is the member
// "root" of it.
//
// # When something goes wrong
//
// A submission that was cut short leaves a flow that does not run; submitting it again with the same key completes
// it, and one that stays incomplete is given up after a day. A worker that dies between making children and waiting
// for them makes no child twice: ids follow from the names. Every mistake in a graph is found before anything is
// sent, and named by node and edge.
package flow
