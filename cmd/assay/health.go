package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-rag/assay/client"
	"github.com/assay-rag/assay/cmd/assay/internal/config"
)

// healthTime bounds the check of a server.
const healthTime = 5 * time.Second

func (a *app) healthCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "health [URL]",
		Short: "Check whether a server is ready",
		Long: `Health asks a server whether it is ready and exits with 0 if it is. It is for health checks of
containers, which have no shell. Without a URL it asks http://` + config.DefaultListen + `.`,
		Example: `  assay health
  assay health https://assay.example.com`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return hinted{usagef("got %d arguments, want one URL at most", len(args)), "see: " + cmd.CommandPath() + " --help"}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			url := "http://" + config.DefaultListen
			if len(args) > 0 {
				url = args[0]
			}
			set, err := a.settings()
			if err != nil {
				return err
			}
			c, err := client.New(url, client.Options{Retries: -1, HTTP: set.Config().HealthClient(url)})
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), healthTime)
			defer cancel()
			r, err := c.ServiceReady(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(a.stdout, r.Status)
			return err
		},
	}
}
