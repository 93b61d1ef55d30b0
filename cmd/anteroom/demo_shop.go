package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/anteroom/anteroom/internal/shop"
)

func (p *program) demoShopCommand() *cobra.Command {
	listen := "127.0.0.1:9000"
	cmd := &cobra.Command{
		Use:   "shop",
		Short: "Serve the demo's shop alone",
		Long: `Serve the demo's small shop until Ctrl-C, as a site to try a waiting room of your own
with. Its /_shop/stats says how many people it counts.`,
		Example: "  anteroom demo shop --listen 127.0.0.1:9000",
		Args:    noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			l, err := (&net.ListenConfig{}).Listen(cmd.Context(), "tcp", listen)
			if err != nil {
				return fmt.Errorf("--listen: %w", err)
			}
			fmt.Fprintf(p.stdout, "the shop is at http://%s/\n", l.Addr())
			return serveShop(cmd.Context(), l, shop.New(shop.Config{Now: p.now}))
		},
	}
	cmd.Flags().StringVar(&listen, "listen", listen, "`HOST:PORT` of the shop")
	return cmd
}

// serveShop serves the shop until ctx ends.
func serveShop(ctx context.Context, l net.Listener, s *shop.Shop) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = h.Close() }) // nodes have stopped asking, or will fail to
	defer stop()
	if err := h.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
