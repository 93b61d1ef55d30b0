package caddy

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
)

// relay hands what a node logs to Caddy's logger, which is another one after each
// reload.
type relay struct {
	shared *atomic.Pointer[slog.Handler] // nil: at is
	at     atomic.Pointer[slog.Handler]
	with   []func(slog.Handler) slog.Handler // groups and attributes, in their order
}

func (r *relay) to(l *slog.Logger) {
	h := l.Handler()
	r.at.Store(&h)
}

func (r *relay) handler() slog.Handler {
	at := r.shared
	if at == nil {
		at = &r.at
	}
	h := *at.Load()
	for _, f := range r.with {
		h = f(h)
	}
	return h
}

func (r *relay) but(f func(slog.Handler) slog.Handler) *relay {
	shared := r.shared
	if shared == nil {
		shared = &r.at
	}
	return &relay{shared: shared, with: append(slices.Clip(r.with), f)}
}

func (r *relay) Enabled(ctx context.Context, l slog.Level) bool { return r.handler().Enabled(ctx, l) }

func (r *relay) Handle(ctx context.Context, what slog.Record) error {
	return r.handler().Handle(ctx, what)
}

func (r *relay) WithAttrs(attrs []slog.Attr) slog.Handler {
	return r.but(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (r *relay) WithGroup(name string) slog.Handler {
	return r.but(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

// version is what the other nodes are told of this one.
func version() string {
	said := "development"
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, d := range info.Deps {
			if d.Path == "github.com/anteroom/anteroom" && d.Replace == nil {
				said = d.Version
			}
		}
	}
	return "anteroom " + said + ", inside Caddy"
}
