package stream_test

import (
	"fmt"

	"github.com/flowfabric/flowfabric-go/stream"
)

func ExampleMergeSummary() {
	document := []byte(`{"done":1713100800150123,"stage":{"name":"load","rows":10}}`)
	document, err := stream.MergeSummary(document,
		[]byte(`{"stage":{"name":"index","rows":null},"owner":"__ff_null__"}`))
	fmt.Println(string(document), err)
	// Output: {"done":1713100800150123,"owner":null,"stage":{"name":"index"}} <nil>
}
