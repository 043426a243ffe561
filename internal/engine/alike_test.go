package engine

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/uuid"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/internal/mint"
	"github.com/flowfabric/flowfabric-go/internal/valid"
	"github.com/flowfabric/flowfabric-go/stream"
)

// What items have in common is said once, so no field may differ that the server is told, whatever fields there will
// be.
func TestAlike(t *testing.T) {
	one := NewExecution{Start: flowfabric.Start{Namespace: "n", Lane: "l", Kind: "k", Priority: 1,
		Policy: flowfabric.Policy{Retry: valid.DefaultRetry()}}}
	own := map[string]bool{"ID": true, "Payload": true, "Digest": true, "Key": true, "KeyID": true,
		"Retries": true, "Type": true, "AsStored": true} // the server is not told the last two
	check := func(name string, field func(*NewExecution) reflect.Value, own bool) {
		other := one
		other.Policy.Retry.Categories = nil
		change(t, name, field(&other))
		if got := other.alike(&one, valid.PackPolicy(one.Policy)); got != own {
			t.Errorf("with another %s: alike is %v", name, got)
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[NewExecution]()) {
		if f.Name == "Start" || f.Name == "Policy" || len(f.Index) > 2 {
			continue
		}
		check(f.Name, func(x *NewExecution) reflect.Value { return reflect.ValueOf(x).Elem().FieldByIndex(f.Index) },
			own[f.Name])
	}
	policy := reflect.TypeFor[flowfabric.Policy]()
	for i := range policy.NumField() {
		if name := policy.Field(i).Name; name != "Retry" {
			check("Policy."+name, func(x *NewExecution) reflect.Value {
				return reflect.ValueOf(&x.Policy).Elem().Field(i)
			}, false)
		}
	}
	retry := reflect.TypeFor[flowfabric.RetryPolicy]()
	for i := range retry.NumField() {
		check("Policy.Retry."+retry.Field(i).Name, func(x *NewExecution) reflect.Value {
			return reflect.ValueOf(&x.Policy.Retry).Elem().Field(i)
		}, false)
	}
}

// Frames of one group share all that the server is told of them but their payloads.
func TestSameGroup(t *testing.T) {
	own := map[string]bool{"ID": true, "Sequence": true, "Payload": true, "SummaryVersion": true, "Document": true,
		"Keep": true, "Durables": true, "Run": true, "Encrypted": true}
	fields := reflect.TypeFor[stream.Frame]()
	for i := range fields.NumField() {
		one := stream.Frame{Type: "t", Correlation: "c", Payload: []byte("p")}
		other := one
		name := fields.Field(i).Name
		change(t, name, reflect.ValueOf(&other).Elem().Field(i))
		if got := sameGroup(&one, &other); got != own[name] {
			t.Errorf("with another %s: one group is %v", name, got)
		}
	}
}

// change gives a field another value.
func change(t *testing.T, name string, v reflect.Value) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *flowfabric.ExecutionID:
		*x = mint.ID(3)
	case *uuid.UUID:
		*x = uuid.New()
	case *time.Time:
		*x = time.UnixMilli(1_700_000_000_000)
	case *stream.Cursor:
		x.Seq++
	case *map[string]string:
		*x = map[string]string{"a.b": "c"}
	case *flowfabric.Retentions:
		x.Failed = time.Minute
	case *bool:
		*x = !*x
	default:
		switch v.Kind() {
		case reflect.String:
			v.SetString(v.String() + "x")
		case reflect.Int, reflect.Int64:
			v.SetInt(v.Int() + int64(time.Second))
		case reflect.Uint8, reflect.Uint32, reflect.Uint64:
			v.SetUint(v.Uint() + 1)
		case reflect.Float64:
			v.SetFloat(v.Float() + 1)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		default:
			t.Fatalf("%s: %s", name, v.Type())
		}
	}
}
