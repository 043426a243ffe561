package store

import (
	"container/heap"
	"hash/maphash"
	"strconv"
	"strings"
)

// value is what a key holds.
type value interface {
	// kind is the answer of TYPE.
	kind() string
	// clone is a copy that does not change when this value does, and the other way round. It takes no longer for a
	// large value than for a small one.
	clone() value
	// dump tells emit commands that build the value under a key that does not exist. They may use their own text and
	// nothing that emit is given is changed afterwards.
	dump(key string, emit func(args ...string))
}

// entry is a key.
type entry struct {
	value   value
	expires int64  // Unix milliseconds; 0: never
	place   int32  // in the queue, from 1; 0: it is not there
	taken   uint32 // the last snapshot that has it, or that it need not be in
}

// buckets divides the keys, so that they can be walked in parts. It is a power of two.
const buckets = 1 << 12

// keyspace is all keys and the queue of those that expire.
type keyspace struct {
	seed    maphash.Seed
	buckets [buckets]map[string]*entry
	count   int
	queue   queue
}

func (k *keyspace) init() { k.seed = maphash.MakeSeed() }

func (k *keyspace) bucket(key string) *map[string]*entry {
	return &k.buckets[maphash.String(k.seed, key)&(buckets-1)]
}

// find is the entry of a key, nil if there is none. A key whose time has come goes now, so that it is gone in the log
// before what the command does to its name.
func (s *Store) find(key string) *entry {
	e := (*s.keys.bucket(key))[key]
	if e != nil && s.dead(e) {
		s.bury(key)
		return nil
	}
	return e
}

// bury removes a key whose time has come.
func (s *Store) bury(key string) {
	s.forget(key)
	s.effects.add([]string{"UNLINK", key})
	s.effects.buried++
}

// dead reports whether the time of a key has come. While the log is read no key expires: the log says when it did.
func (s *Store) dead(e *entry) bool { return e.expires != 0 && e.expires <= s.ms && !s.reading() }

func (s *Store) reading() bool { return s.log != nil && s.log.reading }

// edit is the entry of a key whose value is about to be changed, nil if there is none.
func (s *Store) edit(key string) *entry {
	e := s.find(key)
	if e != nil {
		s.snapshot.keep(key, e)
	}
	return e
}

// put gives a key a value, and takes its time away. It may exist already.
func (s *Store) put(key string, v value) *entry {
	b := s.keys.bucket(key)
	if e := (*b)[key]; e != nil {
		s.snapshot.keep(key, e)
		s.until(key, e, 0)
		e.value = v
		return e
	}
	if *b == nil {
		*b = map[string]*entry{}
	}
	e := &entry{value: v, taken: s.snapshot.number()}
	(*b)[strings.Clone(key)] = e
	s.keys.count++
	return e
}

// drop removes a key, and reports whether it was there.
func (s *Store) drop(key string) bool {
	there := s.find(key) != nil
	s.forget(key)
	return there
}

// forget removes a key, also one whose time has come.
func (s *Store) forget(key string) {
	b := *s.keys.bucket(key)
	e := b[key]
	if e == nil {
		return
	}
	s.snapshot.keep(key, e)
	s.until(key, e, 0)
	delete(b, key)
	s.keys.count--
}

// get is the value of a key as the type that a command wants: the zero value if there is none. fault is not nil when
// the key has another type.
func get[T value](s *Store, key string) (v T, fault *reply) { return typed[T](s.find(key)) }

// change is get for a command that is about to change the value in its place.
func change[T value](s *Store, key string) (v T, fault *reply) { return typed[T](s.edit(key)) }

func typed[T value](e *entry) (v T, fault *reply) {
	if e == nil {
		return v, nil
	}
	v, same := e.value.(T)
	if !same {
		return v, &errWrongType
	}
	return v, nil
}

// pointer is a value in its type.
type pointer interface {
	value
	comparable
}

// reads is a command that reads the value of its first argument. absent is the answer if there is none.
func reads[T pointer](absent reply, run func(c *call, v T) reply) runner {
	return func(c *call) reply { return with(c, c.s.find(c.args[1]), absent, run) }
}

// changes is reads for a command that changes the value in its place.
func changes[T pointer](absent reply, run func(c *call, v T) reply) runner {
	return func(c *call) reply { return with(c, c.s.edit(c.args[1]), absent, run) }
}

func with[T pointer](c *call, e *entry, absent reply, run func(c *call, v T) reply) reply {
	if e == nil {
		return absent
	}
	v, fault := typed[T](e)
	if fault != nil {
		return *fault
	}
	return run(c, v)
}

// making is the value that a command is about to put something in: a new one under a key that does not exist.
func making[T pointer](c *call, made func() T) (v T, fault *reply) {
	e := c.s.edit(c.args[1])
	if e == nil {
		v = made()
		c.s.put(c.args[1], v)
		return v, nil
	}
	return typed[T](e)
}

// until sets the time of a key, in Unix milliseconds; 0 takes it away.
func (s *Store) until(key string, e *entry, when int64) {
	q, before := &s.keys.queue, e.place
	e.expires = when
	switch {
	case when == 0 && before != 0:
		heap.Remove(q, int(before-1))
	case when != 0 && before != 0:
		heap.Fix(q, int(before-1))
	case when != 0:
		heap.Push(q, due{strings.Clone(key), e})
	}
}

// duePerCall bounds how many keys that have expired a call removes before it begins. The rest is not found, and
// [Store.Expire] removes it.
const duePerCall = 16

// expire removes up to most keys whose time has come, and reports whether there may be more.
func (s *Store) expire(most int) bool {
	if s.reading() {
		return false
	}
	q := &s.keys.queue
	for len(*q) > 0 && s.dead((*q)[0].e) {
		if most--; most < 0 {
			return true
		}
		s.bury((*q)[0].key)
	}
	return false
}

// Expire removes keys whose time has come. Commands never see them; this gives their memory back. It is a call of its
// own.
func (s *Store) Expire() {
	for more := true; more; {
		s.Lock()
		more = s.expire(1000)
		s.Unlock()
	}
}

// all walks the keys that are there.
func (s *Store) all(yield func(key string, e *entry) bool) {
	for i := range s.keys.buckets {
		for key, e := range s.keys.buckets[i] {
			if !s.dead(e) && !yield(key, e) {
				return
			}
		}
	}
}

// Export tells emit commands that build everything the store holds in an empty one, one key after another. It belongs
// between Lock and Unlock.
func (s *Store) Export(emit func(args ...string)) {
	for key, e := range s.all {
		export(key, e.value, e.expires, emit)
	}
}

// export is Export for one key.
func export(key string, v value, expires int64, emit func(args ...string)) {
	v.dump(key, emit)
	if expires != 0 {
		emit("PEXPIREAT", key, strconv.FormatInt(expires, 10))
	}
}

// due is a key in the queue, which is a heap by the time in its entry.
type due struct {
	key string
	e   *entry
}

type queue []due

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].e.expires < q[j].e.expires }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].e.place, q[j].e.place = int32(i+1), int32(j+1)
}
func (q *queue) Push(x any) {
	d := x.(due)
	*q = append(*q, d)
	d.e.place = int32(len(*q))
}
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	last.e.place = 0
	old[len(old)-1] = due{}
	*q = old[:len(old)-1]
	return last
}
