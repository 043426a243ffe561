package main

const (
	feedFile      = "lua/lib/feed.lua"
	setFeedFile   = "lua/operate/ff_set_feed.lua"
	subscribeFile = "client/subscribe.go"
)

// subscribe are tests of subscriptions by name.
func subscribe(which string) Test { return in("client", "^TestSubscribe("+which+")$") }

// feedMutants break the feed: what is recorded and for how long, and what a subscriber gets of it.
var feedMutants = []Mutant{
	{"feed: what was noted is never written", "10 §8 D65", homeFile,
		`  feed.flush(ctx)
`, ``, suite("feed")},
	{"feed: ends are told as leases", "10 §8 D65", feedFile,
		`'c' or 'l'`, `'l' or 'c'`, suite("feed")},
	{"feed: what nobody wants is recorded", "10 §8 D65", feedFile,
		`upto <= ctx.now or not string.find(kinds, kind, 1, true)`, `upto <= ctx.now`, suite("feed")},
	{"feed: recording does not end by itself", "50 §5", feedFile,
		`upto <= ctx.now or not string.find`, `not string.find`, suite("feed")},
	{"feed: signals are not recorded", "30 §11 #28", feedFile,
		`  add(ctx, 's', id`, `  add(ctx, 'x', id`, suite("feed")},
	{"feed: entries are not counted", "30 §11 #30", feedFile,
		`'fed', 1)`, `'fed', 0)`, suite("feed")},
	{"feed: an entry comes again with the next", "30 §11 #28", feedFile,
		`  ctx.events = nil
`, ``, suite("feed")},
	{"feed: nobody is told that it has grown", "30 §11 #28", feedFile,
		`  publish.to(keys.news(ctx.r), number)
`, ``, suite("feed")},
	{"feed: it has no bound", "design §2.7", feedFile,
		`'MAXLEN', '~', ctx.feed_length, '*'`, `'*'`, suite("feed")},
	{"feed: a tick never trims", "50 §5", tickFile,
		`  feed.trim(ctx)
`, ``, suite("feed")},
	{"feed: what is older than a day stays", "50 §5", feedFile,
		`math.max(0, ctx.now - 86400000)`, `math.max(0, ctx.now - 8640000000)`, suite("feed")},
	{"feed: what is younger than a day is trimmed", "50 §5", feedFile,
		`math.max(0, ctx.now - 86400000)`, `math.max(0, ctx.now - 3600000)`, suite("feed")},
	{"feed: it goes with the last wish", "50 §5", feedFile,
		`if upto + 86400000 <= ctx.now`, `if upto <= ctx.now`, suite("feed")},
	{"set feed: a union forgets what others want", "50 §14", setFeedFile,
		`string.find(a .. b, kind, 1, true)`, `string.find(b, kind, 1, true)`, suite("feed")},
	{"set feed: wishes that are over live on", "50 §5", setFeedFile,
		`local live = old and upto > ctx.now`, `local live = old`, suite("feed")},
	{"set feed: a shorter wish cuts a longer one", "50 §5", setFeedFile,
		`math.max(live and upto or 0, ctx.now + keep)`, `ctx.now + keep`, suite("feed")},
	{"set feed: a smaller wish shrinks the feed", "50 §5", setFeedFile,
		`math.max(length, live and tonumber(most) or 0)`, `length`, suite("feed")},
	{"set feed: the end of recording leaves the feed", "50 §5", setFeedFile,
		`    redis.call('UNLINK', keys.feed(ctx.r))
`, ``, suite("feed")},

	{"subscribe: a gap is not told", "30 §11 #29", subscribeFile,
		`entry.Number > place.number+1`, `entry.Number > place.number+1000`, subscribe("Gap")},
	{"subscribe: a gap is told again with every event", "30 §11 #29", subscribeFile,
		`		place = feedPlace{entry.ID, entry.Number}
`, `		place = feedPlace{entry.ID, place.number}
`, subscribe("Gap")},
	{"subscribe: a gap before the first event is not told", "30 §11 #29", subscribeFile,
		`if entry.Number > place.number+1 {`, `if place.number > 0 && entry.Number > place.number+1 {`, subscribe("GapAtTheBeginning")},
	{"subscribe: what was forgotten long ago is a gap", "30 §11 #29", subscribeFile,
		`		s.cursor.at[i].number = states[i].Number
`, `		states[i].Number = 0
`, subscribe("GapAtTheBeginning")},
	{"subscribe: the oldest is a gap", "30 §11 #29", subscribeFile,
		`feedPlace{number: entry.Number - before}, true, err`, `feedPlace{}, true, err`, subscribe("GapAtTheBeginning")},
	{"subscribe: the cursor moves before an event is consumed", "30 §11 #29", subscribeFile,
		`		for _, event := range entry.Events {
`, `		f.consumed(p, feedPlace{entry.ID, entry.Number})
		for _, event := range entry.Events {
`, subscribe("Left")},
	{"subscribe: the cursor stands still", "30 §11 #29", subscribeFile,
		`	s.cursor.at[p] = place
`, ``, subscribe("GoesOn")},
	{"subscribe: a stored cursor is not gone on from", "30 §11 #29", subscribeFile,
		`cursor: o.From.clone()}`, `cursor: FeedCursor{at: make([]feedPlace, n)}}`, subscribe("GoesOn")},
	{"subscribe: now is the beginning", "30 §11 #28", subscribeFile,
		`	if oldest {`, `	if true {`, subscribe("FromNow")},
	{"subscribe: the oldest is now", "30 §11 #28", subscribeFile,
		`	if oldest {`, `	if false {`, subscribe("FromNow")},
	{"subscribe: events that only others want come too", "50 §14", subscribeFile,
		`f.wants(event.Kind) && !yield`, `!yield`, subscribe("Kinds")},
	{"subscribe: nothing is recorded for it", "50 §14", subscribeFile,
		`states, err := s.record(ctx)`, `states, err := make([]engine.FeedState, n), error(nil)`, subscribe("FromNow")},
	{"subscribe: a cursor over other partitions is taken", "10-D5", subscribeFile,
		`case len(o.From.at) != n:`, `case len(o.From.at) > n:`, subscribe("Refuses")},
	{"subscribe: a closed client's loop goes on", "50 §14", subscribeFile,
		`		case <-f.client.waits.life.Done():
			return ErrClosed
`, ``, subscribe("Ends")},
}
