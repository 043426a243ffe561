package tracing

import (
	"context"
	"maps"
	"strings"

	"github.com/flowfabric/flowfabric-go/internal/limits"
	"github.com/flowfabric/flowfabric-go/internal/valid"
)

// Tag returns tags and, when tracing is on, those that carry the context to the handler. The given map is not
// changed. Tracing must not fail a submission: what does not fit the limits of tags is left out.
func (t *Tracer) Tag(ctx context.Context, tags map[string]string) map[string]string {
	if t.current() == nil {
		return tags
	}
	carried := carrier{}
	t.carriedBy().Inject(ctx, carried)
	if len(carried) == 0 || len(tags)+len(carried) > limits.MaxTags || valid.Tags(carried) != nil {
		return tags
	}
	maps.Copy(carried, without(tags))
	return carried
}

// without leaves out what a handler may have copied from its own execution.
func without(tags map[string]string) map[string]string {
	for k := range tags {
		if strings.HasPrefix(k, limits.TraceTags) {
			tags = maps.Clone(tags)
			maps.DeleteFunc(tags, func(k, _ string) bool { return strings.HasPrefix(k, limits.TraceTags) })
			return tags
		}
	}
	return tags
}

// carried is whether tags bring a context along.
func brings(tags map[string]string) bool {
	for k := range tags {
		if strings.HasPrefix(k, limits.TraceTags) {
			return true
		}
	}
	return false
}

// carrier keeps a propagator's fields as tags: traceparent as otel.traceparent, x-b3-traceid as otel.x_b3_traceid.
type carrier map[string]string

var tagName = strings.NewReplacer("-", "_")

func (c carrier) Get(key string) string {
	return c[limits.TraceTags+tagName.Replace(strings.ToLower(key))]
}

// Set keeps what fits: of a long tracestate or baggage the trace does not depend.
func (c carrier) Set(key, value string) {
	if value != "" && len(value) <= limits.MaxTagValue {
		c[limits.TraceTags+tagName.Replace(strings.ToLower(key))] = value
	}
}

func (c carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		if key, ok := strings.CutPrefix(k, limits.TraceTags); ok {
			keys = append(keys, key)
		}
	}
	return keys
}
