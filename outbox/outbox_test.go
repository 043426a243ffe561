package outbox

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/client"
	"github.com/flowfabric/flowfabric-go/handler"
	"github.com/flowfabric/flowfabric-go/internal/coalesce"
	"github.com/flowfabric/flowfabric-go/internal/engine"
	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/must"
)

func TestConfigIsChecked(t *testing.T) {
	for _, x := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "Config.Dialect"},
		{Config{Dialect: "oracle"}, `"oracle"`},
		{Config{Dialect: SQLite, Table: "a b"}, "Config.Table"},
		{Config{Dialect: SQLite, Table: "a.b.c"}, "Config.Table"},
		{Config{Dialect: SQLite, Table: strings.Repeat("a", 49)}, "1..48"},
		{Config{Dialect: SQLite, Partitions: 1025}, "1..1024"},
		{Config{Dialect: SQLite, Namespace: "{"}, "Config.Namespace"},
		{Config{Dialect: SQLite, Creator: strings.Repeat("x", 65)}, "Config.Creator has 65 bytes"},
		{Config{Dialect: SQLite, Poll: -1}, "Config.Poll"},
		{Config{Dialect: SQLite, Poll: time.Hour}, "1 ms..1 min"},
	} {
		if _, err := New(x.cfg); !errors.Is(err, flowfabric.ErrConfig) || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%+v: %v, want ErrConfig naming %s", x.cfg, err, x.want)
		}
	}
}

// statement is a transaction that keeps what it is told and fails.
type statement struct{ query string }

var errTx = errors.New("the connection is gone")

func (s *statement) ExecContext(_ context.Context, query string, _ ...any) (sql.Result, error) {
	s.query = query
	return nil, errTx
}

func TestSubmitRefusesBeforeAnyIO(t *testing.T) {
	o, err := New(Config{Dialect: PostgreSQL})
	must.No(t, err)
	raw := handler.Define[[]byte, int]("raw")
	for name, x := range map[string]struct {
		in   []byte
		opts []client.SubmitOption
		want error
	}{
		"priority":       {nil, []client.SubmitOption{flowfabric.Priority(9001)}, flowfabric.ErrInvalidInput},
		"nil":            {nil, []client.SubmitOption{nil}, flowfabric.ErrInvalidInput},
		"large":          {make([]byte, limits.MaxPayload+1), nil, flowfabric.ErrPayloadTooLarge},
		"empty order":    {nil, []client.SubmitOption{Ordered("")}, flowfabric.ErrInvalidInput},
		"long order":     {nil, []client.SubmitOption{Ordered(strings.Repeat("k", 257))}, flowfabric.ErrInvalidInput},
		"order with NUL": {nil, []client.SubmitOption{Ordered("a\x00")}, flowfabric.ErrInvalidInput},
		"order and key": {nil, []client.SubmitOption{Ordered("a"), flowfabric.IdempotencyKey("b")},
			flowfabric.ErrInvalidInput},
		"keys": {nil, []client.SubmitOption{client.Keys(func(int) flowfabric.Key { return flowfabric.Key{} })},
			flowfabric.ErrInvalidInput},
		"not UTF-8": {nil, []client.SubmitOption{flowfabric.Tags(map[string]string{"a.b": "\xff"})},
			flowfabric.ErrInvalidInput},
	} {
		tx := &statement{}
		if _, err := Submit(t.Context(), o, tx, raw, x.in, x.opts...); !errors.Is(err, x.want) || tx.query != "" ||
			!strings.Contains(err.Error(), "submit raw: ") {
			t.Errorf("%s: %v after %q, want %v", name, err, tx.query, x.want)
		}
	}
	tx := &statement{}
	if id, err := Submit(t.Context(), o, tx, raw, nil); !errors.Is(err, errTx) || !id.IsZero() ||
		!strings.HasPrefix(tx.query, "INSERT INTO flowfabric_outbox ") {
		t.Errorf("%s, %v after %q", id, err, tx.query)
	}
}

// fill sets every field of a struct that can be set, to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	for i := range v.NumField() {
		f, name := v.Field(i), v.Type().Field(i).Name
		if !v.Type().Field(i).IsExported() {
			continue
		}
		switch x := f.Addr().Interface().(type) {
		case *time.Time:
			*x = time.UnixMilli(1_700_000_000_123).UTC()
		case *time.Duration:
			*x = time.Duration(i+2) * time.Second
		case *flowfabric.Millis:
			*x = flowfabric.Millis(time.Duration(i+2) * time.Minute)
		case *[]string:
			*x = []string{"a", "b"}
		case *[]flowfabric.Category:
			*x = []flowfabric.Category{"timeout"}
		case *[]flowfabric.KeyLimit:
			*x = []flowfabric.KeyLimit{{Key: "k", Concurrency: 1, Rate: 2, Per: flowfabric.Millis(time.Minute)}}
		case *map[string]string:
			*x = map[string]string{"a.b": "größe"}
		case **int: // what StartWith alone reads
		case **flowfabric.Key:
			*x = &flowfabric.Key{}
			fill(t, reflect.ValueOf(*x).Elem())
		case *string:
			*x = name
		case *int:
			*x = i + 2
		case *bool:
			*x = true
		case *float64:
			*x = 1.5
		default:
			if f.Kind() == reflect.Struct {
				fill(t, f)
				continue
			}
			t.Fatalf("%s is a %s: say how it is kept in a row", name, f.Type())
		}
	}
}

// Whatever a submission can say is in the row.
func TestARowKeepsEverything(t *testing.T) {
	var x engine.NewExecution
	fill(t, reflect.ValueOf(&x.Start).Elem())
	x.Digest = "abc"
	partition, _ := keyID(64, &x)
	o := &Outbox{cfg: Config{Partitions: 64}}
	x.ID = o.identify(&x, "")
	if x.ID.Partition() != partition {
		t.Errorf("%s, want partition %d of its key", x.ID, partition)
	}
	text, err := details(&x)
	must.No(t, err)
	r := row{execution: x.ID.String(), details: text, input: []byte("in"), age: 60_000}
	must.No(t, r.decode(64))
	want := x
	want.Payload = []byte("in")
	_, want.KeyID = keyID(64, &x)
	want.Deadline = x.Deadline - flowfabric.Millis(time.Minute) // the delay is that of a key that debounces
	if !reflect.DeepEqual(r.sub.Item, want) {
		t.Errorf("%+v\nwant\n%+v\nfrom %s", r.sub.Item, want, text)
	}
	if err := (&row{execution: x.ID.String(), details: text}).decode(8); !errors.Is(err, flowfabric.ErrInvalidInput) {
		t.Errorf("in a store with 8 partitions: %v", err)
	}
	x.Key.Debounce = 0
	x.ID = o.identify(&x, "")
	text, err = details(&x)
	must.No(t, err)
	r = row{execution: x.ID.String(), details: text, age: 60_000}
	if err := r.decode(64); err != nil || r.sub.Item.Delay != x.Delay-flowfabric.Millis(time.Minute) {
		t.Errorf("a delay of %s after a minute: %s, %v", x.Delay, r.sub.Item.Delay, err)
	}
	r = row{execution: x.ID.String(), details: text, age: 1e9}
	if err := r.decode(64); err != nil || r.sub.Item.Delay != 0 ||
		r.sub.Item.Deadline != flowfabric.Millis(time.Millisecond) {
		t.Errorf("long after its time: %+v, %v", r.sub.Item, err)
	}
}

// A call has one row of a key, and what is behind a row that failed is in no call.
func TestCallsOfABatch(t *testing.T) {
	make := func(id int64, key string, size, tags int) *row {
		r := &row{id: id, orderKey: key, sub: coalesce.Submission{Size: size}}
		r.sub.Item.Tags = map[string]string{}
		for i := range tags {
			r.sub.Item.Tags[strings.Repeat("t", i+1)] = ""
		}
		return r
	}
	numbers := func(rows []*row) (ids []int64) {
		for _, r := range rows {
			ids = append(ids, r.id)
		}
		return ids
	}
	check := func(rows []*row, blocked map[string]bool, now, later []int64) {
		t.Helper()
		a, b := call(rows, blocked)
		if !reflect.DeepEqual(numbers(a), now) || !reflect.DeepEqual(numbers(b), later) {
			t.Errorf("%v, then %v; want %v, then %v", numbers(a), numbers(b), now, later)
		}
	}
	check([]*row{make(1, "a", 1, 0), make(2, "a", 1, 0), make(3, "", 1, 0), make(4, "", 1, 0), make(5, "b", 1, 0)}, nil,
		[]int64{1, 3, 4, 5}, []int64{2})
	check([]*row{make(1, "a", 1, 0), make(2, "b", 1, 0), make(3, "a", 1, 0)}, map[string]bool{"a": true},
		[]int64{2}, nil)
	check([]*row{make(1, "", maxCall+1, 0), make(2, "", 1, 0)}, nil, []int64{1}, []int64{2})
	check([]*row{make(1, "", maxCall, 0), make(2, "a", 1, 0), make(3, "", 1, 0)}, nil, []int64{1}, []int64{2, 3})
	check([]*row{make(1, "", 1, 1999), make(2, "", 1, 1), make(3, "", 1, 1)}, nil, []int64{1, 2}, []int64{3})
}
