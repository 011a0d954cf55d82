package sandbox

import "context"

type asideKey struct{}

// WithAside returns a context under which an executor calls f when it sets a call of the batch aside: the call has
// taken long while others wait, and goes on beside them, with a small share of the time. Whoever bounds how many calls he hands
// over at once may then hand over one more. f is called at most once a call, from any goroutine, before Run returns.
func WithAside(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, asideKey{}, f)
}

// Aside is for executors: it tells whoever waits for the call that it is set aside.
func Aside(ctx context.Context) {
	if f, ok := ctx.Value(asideKey{}).(func()); ok {
		f()
	}
}
