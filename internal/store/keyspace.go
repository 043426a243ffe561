package store

import (
	"container/heap"
	"hash/maphash"
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
	queued  int64  // the time under which it waits in the queue; 0: it does not
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

// find is the entry of a key, nil if there is none.
func (s *Store) find(key string) *entry {
	e := (*s.keys.bucket(key))[key]
	if e != nil && s.dead(e) {
		return nil
	}
	return e
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
	if e := (*b)[key]; e != nil { // it keeps its place in the queue
		s.snapshot.keep(key, e)
		e.value, e.expires = v, 0
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
	delete(b, key)
	e.value = nil // it may be in the queue for long
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

// until sets the time of a key, in Unix milliseconds; 0 takes it away.
func (s *Store) until(key string, e *entry, when int64) {
	e.expires = when
	if when != 0 && (e.queued == 0 || when < e.queued) {
		e.queued = when
		heap.Push(&s.keys.queue, due{when, strings.Clone(key), e})
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
	for len(*q) > 0 && (*q)[0].when <= s.ms {
		if most--; most < 0 {
			return true
		}
		d := heap.Pop(q).(due)
		if d.e.queued != d.when { // it waits under an earlier time, which has been dealt with
			continue
		}
		d.e.queued = 0
		switch there := (*s.keys.bucket(d.key))[d.key]; {
		case there != d.e || d.e.expires == 0:
		case d.e.expires > s.ms:
			s.until(d.key, d.e, d.e.expires)
		default:
			s.forget(d.key)
			s.effects.add([]string{"UNLINK", d.key})
		}
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

// due is a key in the queue.
type due struct {
	when int64
	key  string
	e    *entry
}

type queue []due

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].when < q[j].when }
func (q queue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)        { *q = append(*q, x.(due)) }
func (q *queue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = due{}
	*q = old[:len(old)-1]
	return last
}
