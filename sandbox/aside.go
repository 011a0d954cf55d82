package sandbox

import "context"

type asideKey struct{}

// WithAside returns a context with which an executor calls f when it sets a call of the batch aside: the call has taken
// long while others wait, and continues in the background with a small share of the time. A caller that bounds how many
// calls it submits at once may then submit one more. f is called at most once per call, from any goroutine, before Run
// returns.
func WithAside(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, asideKey{}, f)
}

// Aside is called by executors. It notifies the caller, through WithAside's context, that the call has been set aside.
func Aside(ctx context.Context) {
	if f, ok := ctx.Value(asideKey{}).(func()); ok {
		f()
	}
}
