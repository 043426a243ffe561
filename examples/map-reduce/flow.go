package main

import (
	"context"
	"fmt"
	"time"

	"github.com/flowfabric/flowfabric-go/flow"
	"github.com/flowfabric/flowfabric-go/handler"
)

const (
	parts  = 50
	enough = 48 // parts that reduce waits for
)

// Part is the input of a node that counts.
type Part struct {
	Number int // from 1
	Text   string
}

// Count is its result.
type Count struct {
	Words int
	Times map[string]int // how often each word is there
}

// Query is the input of the node that reduces.
type Query struct {
	Top     int // how many words are wanted
	Letters int // that they have at least
}

// Ranking is its result.
type Ranking struct {
	Parts   int   // that were counted
	Missing []int // the numbers of the others
	Words   int
	Top     []Frequency
}

// Frequency is a word and how often it is there.
type Frequency struct {
	Word  string
	Times int
}

// What producers and workers share: the definitions, and the names under which reduce is given the counts.
var (
	CountWords = handler.Define[Part, Count]("count-words", handler.Retry(3, 500*time.Millisecond, 5*time.Second))
	Reduce     = handler.Define[Query, Ranking]("reduce")

	counts = inputs()
)

func inputs() (named [parts]flow.Input[Count]) {
	for i := range named {
		named[i] = flow.Input[Count]{Name: nodeName(i + 1)}
	}
	return named
}

// nodeName is the name of the node that counts a part, and of its result.
func nodeName(number int) string { return fmt.Sprintf("part-%02d", number) }

// mapReduce is one flow: a node for each part, and one that runs as soon as enough of them are counted. What is not
// counted by then is cancelled.
func mapReduce(texts []string, in Query) (*flow.Flow, *flow.Node[Ranking]) {
	f := flow.New("map-reduce")
	rules := []flow.NodeOption{flow.Quorum(enough), flow.CancelRemaining()}
	for i, text := range texts {
		part := flow.Add(f, nodeName(i+1), CountWords, Part{i + 1, text})
		rules = append(rules, counts[i].From(part))
	}
	return f, flow.Add(f, "reduce", Reduce, in, rules...)
}

// Counter handles CountWords.
type Counter struct {
	tokenizer Tokenizer
	heard     Heard
}

// Heard is called at the end of every attempt to count a part. It must be safe for concurrent use.
type Heard func(part int, err error)

// NewCounter is the constructor given to runtime.Provide: fx injects its dependencies.
func NewCounter(x Tokenizer, heard Heard) *Counter { return &Counter{tokenizer: x, heard: heard} }

// Handle counts the words of a part.
func (c *Counter) Handle(ctx context.Context, t *handler.Task, in Part) (Count, error) {
	count := Count{Times: map[string]int{}}
	words, err := c.tokenizer.Words(ctx, in, int(t.Attempt()))
	for _, word := range words {
		count.Words++
		count.Times[word]++
	}
	c.heard(in.Number, err)
	return count, err
}

// reduce handles Reduce: it adds up the counts that were there when the quorum was reached.
func reduce(_ context.Context, t *handler.Task, in Query) (Ranking, error) {
	var ranking Ranking
	times := map[string]int{}
	for i, input := range counts {
		count, ok, err := handler.Given(t, input)
		switch {
		case err != nil:
			return Ranking{}, err
		case !ok:
			ranking.Missing = append(ranking.Missing, i+1)
			continue
		}
		ranking.Parts++
		ranking.Words += count.Words
		for word, n := range count.Times {
			times[word] += n
		}
	}
	ranking.Top = mostFrequent(times, in)
	return ranking, nil
}
