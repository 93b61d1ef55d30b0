package main

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

func (p *program) healthcheckCommand() *cobra.Command {
	var ready bool
	client := adminClient{url: adminDefault}
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Say by the exit code whether a node is well",
		Long: `Exits with 0 when the node at --admin answers, else with 1 and the reason. It is for
what looks after processes and has no HTTP client of its own, such as a container.

A node that is not ready is no reason to restart it: it may wait for the others.`,
		Example: "  anteroom healthcheck\n  anteroom healthcheck --ready --admin http://10.0.0.2:9090",
		Args:    noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			answer, body, err := client.first(cmd.Context(), asking{method: http.MethodGet, path: path}, 3*time.Second)
			if err != nil {
				return err
			}
			said := strings.TrimSpace(string(body))
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s says %s: %s", path, answer.Status, said)
			}
			_, err = fmt.Fprintln(p.stdout, said)
			return err
		},
	}
	client.add(cmd)
	cmd.Flags().BoolVar(&ready, "ready", false, "be well only where visitors can be sent")
	return cmd
}
