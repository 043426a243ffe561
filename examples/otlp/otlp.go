// Package otlp sends the spans of a program to whatever takes OTLP over HTTP: a collector, Tempo, Langfuse.
package otlp

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Provider sends spans where OTEL_EXPORTER_OTLP_ENDPOINT says, with the headers of OTEL_EXPORTER_OTLP_HEADERS, under
// the name that OTEL_SERVICE_NAME says. Shut it down at the end of the program, which sends what is left.
func Provider(ctx context.Context) (*sdktrace.TracerProvider, error) {
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("spans: %w", err)
	}
	return sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(resource.Default())), nil
}
