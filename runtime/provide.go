package runtime

import (
	"context"
	"fmt"
	"reflect"
	goruntime "runtime"
	"slices"

	"go.uber.org/fx"

	flowfabric "github.com/flowfabric/flowfabric-go"
	"github.com/flowfabric/flowfabric-go/handler"
)

// handles is what a provided constructor must return, or batches.
type handles[In, Out any] interface {
	Handle(ctx context.Context, t *handler.Task, in In) (Out, error)
}

// batches is what a constructor returns whose handler gets several executions in one call.
type batches[In, Out any] interface {
	Handle(ctx context.Context, items []*handler.Item[In, Out]) error
	Batch() handler.Batch
}

// Handle binds a function to a kind. A handler that has dependencies is bound with [Provide].
//
// An invalid definition, or a function that is nil, is an error at the start that wraps [flowfabric.ErrConfig].
func Handle[In, Out any](def *handler.Definition[In, Out],
	fn func(ctx context.Context, t *handler.Task, in In) (Out, error)) fx.Option {
	binding := handler.Bind(def, fn)
	if err := binding.Err(); err != nil {
		return fx.Error(fmt.Errorf("%w: runtime.Handle: %w", flowfabric.ErrConfig, err))
	}
	return fx.Supply(fx.Annotate(binding, fx.ResultTags(bindings)))
}

// HandleBatch binds a function that gets several executions of a kind in one call, see [handler.BindBatch].
//
// An invalid definition, a function that is nil, or a size out of bounds is an error at the start that wraps
// [flowfabric.ErrConfig].
func HandleBatch[In, Out any](def *handler.Definition[In, Out],
	fn func(ctx context.Context, items []*handler.Item[In, Out]) error, size handler.Batch) fx.Option {
	binding := handler.BindBatch(def, fn, size)
	if err := binding.Err(); err != nil {
		return fx.Error(fmt.Errorf("%w: runtime.HandleBatch: %w", flowfabric.ErrConfig, err))
	}
	return fx.Supply(fx.Annotate(binding, fx.ResultTags(bindings)))
}

// Provide binds the handler of a kind to a constructor that fx calls with its dependencies:
//
//	runtime.Provide(Write, func(llm LLM) *Writer { return &Writer{llm} })
//
// constructor is a function that returns a value with a method
// Handle(context.Context, *handler.Task, In) (Out, error), and optionally an error. For batches ([handler.BindBatch])
// the value has the methods Handle(context.Context, []*handler.Item[In, Out]) error and Batch() handler.Batch
// instead. The constructor is called once. The value stays private to the kind, so two kinds may be handled by two
// values of one type. The function may be annotated (fx.Annotate): its dependencies with fx.ParamTags and fx.From,
// the value's life with fx.OnStart and fx.OnStop; fx.As and fx.ResultTags have no effect on a value that nobody else
// gets. A constructor of another shape, or an invalid definition, is an error at the start that names the kind and
// the constructor; it wraps [flowfabric.ErrConfig].
func Provide[In, Out any](def *handler.Definition[In, Out], constructor any) fx.Option {
	if err, ok := constructor.(error); ok { // what fx.Annotate returns for annotations that it refuses
		return fx.Error(fmt.Errorf("%w: runtime.Provide: %w", flowfabric.ErrConfig, err))
	}
	constructor, annotations := plainConstructor(constructor)
	if def == nil {
		return fx.Error(fmt.Errorf("%w: runtime.Provide: the definition of constructor %s is nil", flowfabric.ErrConfig,
			nameOf(constructor)))
	}
	if err := def.Err(); err != nil {
		return fx.Error(fmt.Errorf("%w: handler for kind %q: %w", flowfabric.ErrConfig, def.Kind(), err))
	}
	result, err := resultOf[In, Out](constructor)
	if err != nil {
		return fx.Error(fmt.Errorf("%w: handler for kind %q: constructor %s %w", flowfabric.ErrConfig, def.Kind(),
			nameOf(constructor), err))
	}
	// fx needs a function of the constructor's own result type to take the value from this module's scope.
	bind := reflect.MakeFunc(
		reflect.FuncOf([]reflect.Type{result},
			[]reflect.Type{reflect.TypeFor[handler.Binding](), reflect.TypeFor[error]()}, false),
		func(args []reflect.Value) []reflect.Value {
			binding, err := bindValue(def, args[0])
			failure := reflect.Zero(reflect.TypeFor[error]())
			if err != nil {
				failure = reflect.ValueOf(&err).Elem()
			}
			return []reflect.Value{reflect.ValueOf(binding), failure}
		})
	return fx.Module("flowfabric."+def.Kind(),
		fx.Provide(annotate(constructor, annotations), fx.Private),
		fx.Provide(fx.Annotate(bind.Interface(), fx.ResultTags(bindings))),
	)
}

// bindValue binds a constructed handler, unless the constructor returned nil.
func bindValue[In, Out any](def *handler.Definition[In, Out], v reflect.Value) (handler.Binding, error) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Func:
		if v.IsNil() {
			return handler.Binding{},
				fmt.Errorf("%w: handler for kind %q: its constructor returned nil", flowfabric.ErrConfig, def.Kind())
		}
	}
	if b, ok := v.Interface().(batches[In, Out]); ok {
		return handler.BindBatch(def, b.Handle, b.Batch()), nil
	}
	return handler.Bind(def, v.Interface().(handles[In, Out]).Handle), nil
}

// resultOf checks the shape of a constructor and returns the type of the handler it makes.
func resultOf[In, Out any](constructor any) (reflect.Type, error) {
	expected := func(got string) error {
		return fmt.Errorf(
			"%s; want func(dependencies…) T or (T, error), where T has the method Handle(context.Context, *handler.Task, %s) (%s, error)",
			got, reflect.TypeFor[In](), reflect.TypeFor[Out]())
	}
	t := reflect.TypeOf(constructor)
	if t == nil || t.Kind() != reflect.Func || reflect.ValueOf(constructor).IsNil() {
		return nil, expected("is not a function")
	}
	if t.NumOut() == 0 || t.NumOut() > 2 || t.NumOut() == 2 && t.Out(1) != reflect.TypeFor[error]() {
		return nil, expected(fmt.Sprintf("returns %d values of another shape", t.NumOut()))
	}
	result := t.Out(0)
	if !result.Implements(reflect.TypeFor[handles[In, Out]]()) &&
		!result.Implements(reflect.TypeFor[batches[In, Out]]()) {
		if m, ok := result.MethodByName("Handle"); ok {
			return nil, expected(fmt.Sprintf("returns %s, whose method Handle is %s", result, m.Type))
		}
		return nil, expected(fmt.Sprintf("returns %s, which has no such method", result))
	}
	return result, nil
}

// plainConstructor takes the function out of an annotated constructor, and the annotations that say how it is called.
// The type that fx.Annotate returns has no name outside of fx.
func plainConstructor(constructor any) (target any, annotations []fx.Annotation) {
	if a, ok := constructor.(fx.Annotated); ok { // its name or group is for others, who do not get the value
		return a.Target, nil
	}
	v := reflect.ValueOf(constructor)
	if v.Kind() != reflect.Struct || v.Type().PkgPath() != reflect.TypeFor[fx.Annotated]().PkgPath() {
		return constructor, nil
	}
	function, added := v.FieldByName("Target"), v.FieldByName("Annotations")
	if !function.IsValid() || !added.IsValid() {
		return constructor, nil
	}
	all, ok := added.Interface().([]fx.Annotation)
	if !ok {
		return constructor, nil
	}
	results := []reflect.Type{reflect.TypeOf(fx.As(new(any))), reflect.TypeOf(fx.ResultTags())}
	return function.Interface(), slices.DeleteFunc(slices.Clone(all), func(a fx.Annotation) bool {
		return slices.Contains(results, reflect.TypeOf(a))
	})
}

// annotate is fx.Annotate, but for a function without annotations.
func annotate(constructor any, annotations []fx.Annotation) any {
	if len(annotations) == 0 {
		return constructor
	}
	return fx.Annotate(constructor, annotations...)
}

// nameOf shows a constructor as its function name and type.
func nameOf(constructor any) string {
	v := reflect.ValueOf(constructor)
	if v.Kind() == reflect.Func && !v.IsNil() {
		return fmt.Sprintf("%s (%s)", goruntime.FuncForPC(v.Pointer()).Name(), v.Type())
	}
	return fmt.Sprintf("of type %T", constructor)
}
