package main

// subscribe are tests of subscriptions by name.
func subscribe(which string) Test { return in("admin", "^TestSubscribe("+which+")$") }

// feedMutants break the feed: what is recorded and for how long, and what a subscriber gets of it.
var feedMutants = []Mutant{
	{"feed: what was noted is never written", "indexes.apply",
		`  feed.flush(ctx)
`, ``, suite("feed")},
	{"feed: ends are told as leases", "feed.state",
		`'c' or 'l'`, `'l' or 'c'`, suite("feed")},
	{"feed: what nobody wants is recorded", "feed/add",
		`upto <= ctx.now or not string.find(kinds, kind, 1, true)`, `upto <= ctx.now`, suite("feed")},
	{"feed: recording does not end by itself", "feed/add",
		`upto <= ctx.now or not string.find`, `not string.find`, suite("feed")},
	{"feed: signals are not recorded", "feed.signal",
		`  add(ctx, 's', id`, `  add(ctx, 'x', id`, suite("feed")},
	{"feed: entries are not counted", "feed.flush",
		`'fed', 1)`, `'fed', 0)`, suite("feed")},
	{"feed: an entry comes again with the next", "feed.flush",
		`  ctx.moves.events = nil
`, ``, suite("feed")},
	{"feed: nobody is told that it has grown", "feed.flush",
		`  publish.to(keys.news(ctx.r), number)
`, ``, suite("feed")},
	{"feed: it has no bound", "feed.flush",
		`'MAXLEN', '~', ctx.cache.feed_length, '*'`, `'*'`, suite("feed")},
	{"feed: a tick never trims", "ff_tick",
		`  feed.trim(ctx)
`, ``, suite("feed")},
	{"feed: what is older than a day stays", "feed.trim",
		`math.max(0, ctx.now - 86400000)`, `math.max(0, ctx.now - 8640000000)`, suite("feed")},
	{"feed: what is younger than a day is trimmed", "feed.trim",
		`math.max(0, ctx.now - 86400000)`, `math.max(0, ctx.now - 3600000)`, suite("feed")},
	{"feed: it goes with the last wish", "feed.trim",
		`if upto + 86400000 <= ctx.now`, `if upto <= ctx.now`, suite("feed")},
	{"set feed: a union forgets what others want", "ff_feed.union",
		`string.find(a .. b, kind, 1, true)`, `string.find(b, kind, 1, true)`, suite("feed")},
	{"set feed: wishes that are over live on", "ff_set_feed",
		`local live = old and upto > ctx.now`, `local live = old`, suite("feed")},
	{"set feed: a shorter wish cuts a longer one", "ff_set_feed",
		`math.max(live and upto or 0, ctx.now + keep)`, `ctx.now + keep`, suite("feed")},
	{"set feed: a smaller wish shrinks the feed", "ff_set_feed",
		`math.max(length, live and tonumber(most) or 0)`, `length`, suite("feed")},
	{"set feed: the end of recording leaves the feed", "ff_set_feed",
		`    redis.call('UNLINK', keys.feed(ctx.r))
`, ``, suite("feed")},

	{"subscribe: a gap is not told", "admin.follower.partition",
		`entry.Number > place.number+1`, `entry.Number > place.number+1000`, subscribe("Gap")},
	{"subscribe: a gap is told again with every event", "admin.follower.partition",
		`		place = feedPlace{entry.ID, entry.Number}
`, `		place = feedPlace{entry.ID, place.number}
`, subscribe("Gap")},
	{"subscribe: a gap before the first event is not told", "admin.follower.partition",
		`if entry.Number > place.number+1 {`, `if place.number > 0 && entry.Number > place.number+1 {`, subscribe("GapAtTheBeginning")},
	{"subscribe: what was forgotten long ago is a gap", "admin.Admin.Subscribe",
		`		s.cursor.at[i].number = states[i].Number
`, `		states[i].Number = 0
`, subscribe("GapAtTheBeginning")},
	{"subscribe: the oldest is a gap", "admin.Subscription.oldest",
		`feedPlace{number: entry.Number - before}, true, err`, `feedPlace{}, true, err`, subscribe("GapAtTheBeginning")},
	{"subscribe: the cursor moves before an event is consumed", "admin.follower.partition",
		`		for _, event := range entry.Events {
`, `		f.consumed(p, feedPlace{entry.ID, entry.Number})
		for _, event := range entry.Events {
`, subscribe("Left")},
	{"subscribe: the cursor stands still", "admin.Subscription.consumed",
		`	s.cursor.at[p] = place
`, ``, subscribe("GoesOn")},
	{"subscribe: a stored cursor is not gone on from", "admin.Admin.Subscribe",
		`cursor: from}`, `cursor: feedCursor{at: make([]feedPlace, n)}}`, subscribe("GoesOn")},
	{"subscribe: now is the beginning", "admin.Subscription.begin",
		`	if oldest {`, `	if true {`, subscribe("FromNow")},
	{"subscribe: the oldest is now", "admin.Subscription.begin",
		`	if oldest {`, `	if false {`, subscribe("FromNow")},
	{"subscribe: events that only others want come too", "admin.follower.partition",
		`f.wants(event.Kind) && (chosen`, `(chosen`, subscribe("Kinds")},
	{"subscribe: events of others come too", "admin.SubscribeOptions.matches",
		`if have, ok := s.Tags[k]; !ok || have != v {`, `if have, ok := s.Tags[k]; ok && have != v {`, subscribe("ChoosesExecutions")},
	{"subscribe: what was chosen is not told", "admin.follower.partition",
		`chosen[event.Execution])`, `!chosen[event.Execution])`, subscribe("ChoosesExecutions")},
	{"subscribe: nothing is recorded for it", "admin.Admin.Subscribe",
		`states, err := s.record(ctx)`, `states, err := make([]engine.FeedState, n), error(nil)`, subscribe("FromNow")},
	{"subscribe: a cursor over other partitions is taken", "admin.Admin.Subscribe",
		`case len(from.at) != n:`, `case len(from.at) > n:`, subscribe("Refuses")},
	{"subscribe: a closed client's loop goes on", "admin.follower.run",
		`		case <-f.admin.conn.Life.Done():
			return client.ErrClosed
`, ``, subscribe("Ends")},
}
