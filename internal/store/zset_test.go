package store

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/flowfabric/flowfabric-go/internal/functions"
)

func TestScoresAreReadAndWrittenAsByRedis(t *testing.T) {
	redis := dialRedis(t)
	r := rand.New(rand.NewSource(1))
	texts := []string{"1e15", "1e16", "1e17", "123456789012345678", "9007199254740993", "-1e16", "99999999999999999",
		"0.1", "1e-5", "1e-4", "4.9e-324", "1e-310", "1.7976931348623157e308", "inf", "-inf", ".5", "5.",
		"-0", "0x1p-3", "0x", "1_0", "nan", "1e400", "1e-400", " 1", ""}
	for range 5000 {
		f := math.Float64frombits(r.Uint64())
		if r.Intn(2) == 0 {
			f = float64(r.Int63n(1<<r.Intn(62)+1)) / float64(int64(1)<<r.Intn(20))
		}
		if !math.IsNaN(f) {
			texts = append(texts, strconv.FormatFloat(f, "eg"[r.Intn(2)], -1, 64))
		}
	}
	var all [][]string
	for _, text := range texts {
		all = append(all, []string{"ZADD", "k", text, "m"}, []string{"ZSCORE", "k", "m"})
	}
	real := redis.do(all)
	short := redis.do([][]string{{"ZADD", "k", "0.1", "m"}, {"ZSCORE", "k", "m"}})[1].Text == "0.1"
	s := New(nil)
	s.Lock()
	for i, args := range all {
		got, want := s.Do(args), real[i]
		if want.Kind == functions.KindBulk && short { // from Redis 7.2 on as few digits as possible
			a, _ := parseScore(got.Text)
			b, _ := parseScore(want.Text)
			got.Text, want.Text = fmt.Sprint(a), fmt.Sprint(b)
		}
		if !equal(got, want) {
			t.Errorf("%q of %q: %v, Redis %v", args, texts[i/2], got, want)
		}
	}
}

// TestSortedSetsAgainstAModel compares small and large sets with a list that is sorted after each change.
func TestSortedSetsAgainstAModel(t *testing.T) {
	for _, members := range []int{20, 150, 3000} {
		r := rand.New(rand.NewSource(int64(members)))
		z := &zset{}
		model := map[string]float64{}
		type frozen struct {
			clone *zset
			items []item
		}
		var clones []frozen
		sorted := func() []item {
			var all []item
			for member, score := range model {
				all = append(all, item{score, member})
			}
			slices.SortFunc(all, item.compare)
			return all
		}
		for step := range 4000 {
			member, score := fmt.Sprintf("m%d", r.Intn(members)), float64(r.Intn(30))
			old, there := z.score(member)
			if was, has := model[member]; has != there || was != old {
				t.Fatalf("step %d: %s has %v, %v", step, member, old, there)
			}
			switch {
			case there && r.Intn(3) == 0:
				z.remove(item{old, member})
				delete(model, member)
			case there && score != old:
				z.move(item{old, member}, score)
				model[member] = score
			case !there:
				z.add(item{score, member})
				model[member] = score
			}
			if step%97 == 0 {
				clones = append(clones, frozen{z.clone().(*zset), sorted()})
			}
			if step%50 == 0 {
				checkZset(t, r, z, sorted())
			}
		}
		for _, f := range clones {
			checkZset(t, r, f.clone, f.items)
		}
	}
}

func checkZset(t *testing.T, r *rand.Rand, z *zset, want []item) {
	t.Helper()
	if got := z.items(span{low: beginning, high: edge{end: true}, most: -1}); !reflect.DeepEqual(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	backwards := slices.Clone(want)
	slices.Reverse(backwards)
	if got := z.items(span{low: beginning, high: edge{end: true}, reverse: true, most: -1}); !reflect.DeepEqual(got,
		backwards) {
		t.Fatalf("backwards %v, want %v", got, backwards)
	}
	low, high := edge{item: item{float64(r.Intn(30)), ""}}, edge{item: item{float64(r.Intn(30)), "m5"}}
	inside := slices.DeleteFunc(slices.Clone(want), func(it item) bool { return !low.before(it) || high.before(it) })
	if got := z.count(low, high); got != len(inside) {
		t.Fatalf("%d between %v and %v, want %d", got, low, high, len(inside))
	}
	skip, most := r.Intn(3), r.Intn(20)
	part := inside[min(skip, len(inside)):min(skip+most, len(inside))]
	if got := z.items(span{low: low, high: high, skip: skip, most: most}); !slices.Equal(got, part) {
		t.Fatalf("%v, want %v", got, part)
	}
	for range min(3, len(want)) {
		i := r.Intn(len(want))
		if z.at(i) != want[i] || z.rank(edge{item: want[i]}) != i {
			t.Fatalf("rank %d: %v and %d", i, z.at(i), z.rank(edge{item: want[i]}))
		}
	}
}

// TestACloneIsReadWhileTheSetChanges is for the race detector.
func TestACloneIsReadWhileTheSetChanges(t *testing.T) {
	for _, size := range []int{50, 128, 5000} {
		z := &zset{}
		for i := range size {
			z.add(item{float64(i), fmt.Sprintf("m%05d", i)})
		}
		var wg sync.WaitGroup
		for range 5 {
			clone := z.clone().(*zset)
			want := clone.items(span{low: beginning, high: edge{end: true}, most: -1})
			wg.Go(func() {
				for range 5 {
					i := 0
					clone.dump("k", func(args ...string) {
						for _, member := range args[2:] {
							if i++; i%2 == 0 && member != want[i/2-1].member {
								t.Errorf("%s, want %v", member, want[i/2-1])
							}
						}
					})
				}
			})
			for range 200 {
				it := z.at(0)
				z.remove(it)
				z.add(item{it.score + float64(size), it.member})
				it = z.at(size / 2)
				z.move(it, it.score+float64(size))
			}
		}
		wg.Wait()
	}
}

// With few homes most members are elsewhere than at home, and move when one before them goes.
func TestMembersAreFoundAwayFromHome(t *testing.T) {
	for _, homes := range []uint64{3, 50, 1 << 40} {
		r := rand.New(rand.NewSource(int64(homes)))
		z := large(nil)
		z.places.home = func(member string) uint64 { return digest(member) % homes * 3 }
		want := map[string]float64{}
		for step := range 5000 {
			member := fmt.Sprintf("m%d", r.Intn(400))
			if score, there := z.score(member); there {
				z.remove(item{score, member})
				delete(want, member)
			} else {
				z.add(item{float64(step), member})
				want[member] = float64(step)
			}
		}
		for i := range 400 {
			member := fmt.Sprintf("m%d", i)
			score, there := z.score(member)
			if was, has := want[member]; has != there || was != score {
				t.Errorf("%d homes: %s has %v, %v, want %v, %v", homes, member, score, there, was, has)
			}
		}
	}
}

func BenchmarkZset(b *testing.B) {
	for _, size := range []int{2000, 1_000_000} {
		s := New(nil)
		s.Lock()
		member := func(i int) string { return fmt.Sprintf("0198f2a4-7c1e-7%03x-8000-%012d", i%4096, i) }
		for i := range size {
			s.Do([]string{"ZADD", "z", strconv.Itoa(1700000000000 + i), member(i)})
		}
		args := make([][]string, size)
		for i := range args {
			args[i] = []string{"ZADD", "z", strconv.Itoa(1700000000000 + i*7919%size), member(i)}
		}
		run := func(name string, each func(i int)) {
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) {
				b.ReportAllocs()
				for i := range b.N {
					each(i)
					s.effects = effects{text: s.effects.text[:0]}
				}
			})
		}
		run("ZADD-moves", func(i int) { s.Do(args[i%size]) })
		next := size
		run("ZREM-first-ZADD-last", func(int) {
			first := s.Do([]string{"ZRANGE", "z", "0", "0"}).List[0].Text
			s.Do([]string{"ZREM", "z", first})
			s.Do([]string{"ZADD", "z", strconv.Itoa(1700000000000 + next), first})
			next++
		})
		run("ZSCORE", func(i int) { s.Do([]string{"ZSCORE", "z", args[i%size][3]}) })
		run("ZRANGEBYSCORE-LIMIT-100", func(i int) {
			s.Do([]string{"ZRANGEBYSCORE", "z", args[i%size][2], "+inf", "LIMIT", "0", "100"})
		})
		run("ZRANGE-0-99", func(int) { s.Do([]string{"ZRANGE", "z", "0", "99", "WITHSCORES"}) })
		run("ZRANK", func(i int) { s.Do([]string{"ZRANK", "z", args[i%size][3]}) })
		run("ZCOUNT", func(i int) { s.Do([]string{"ZCOUNT", "z", args[i%size][2], args[(i+1)%size][2]}) })
		run("clone-ZREM", func(i int) {
			s.find("z").value.clone()
			s.Do([]string{"ZADD", "z", "1", args[i%size][3]})
		})
	}
}
