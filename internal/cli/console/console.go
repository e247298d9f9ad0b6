// Package console has the command that shows a cluster in a browser.
package console

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/console"
)

// loopback is the only address that is listened on: the page shows what the rights of one
// person show.
const loopback = "127.0.0.1"

// lastPort is the highest port that there is.
const lastPort = 65_535

// command is the command line of console.
type command struct {
	port      int
	noBrowser bool
	cluster   cli.Cluster
	images    cli.Images
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	var o command
	made := &cobra.Command{
		Use:   "console",
		Short: "Show extensions, catalogs and packages in a browser",
		Long: `Show extensions, catalogs and packages in a browser: what is installed and why, what there
is, what an upgrade would do, and the manifests that lead there.

The page is served on 127.0.0.1 until you interrupt, and its URL has a token that is new
each time. Everything is asked with your own rights, and nothing is written: for what you
decide there are manifests to copy. What you may not read is said on each page.

A plan of an upgrade, which is made when you ask for it, pulls the image of the bundle with
the credentials of the system, and tries changes in dry runs of the API server.`,
		Example: `  kubectl extension console
  kubectl extension console --no-browser --port 8090`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	flags := made.Flags()
	flags.IntVar(&o.port, "port", 0, "Port to listen on; 0 for any that is free.")
	flags.BoolVar(&o.noBrowser, "no-browser", false, "Only print the URL.")
	cli.NoFiles(made, "port")
	o.images.Bind(flags)
	o.cluster.BindInspect(made)
	return made
}

func (o *command) run(command *cobra.Command) error {
	if o.port < 0 || o.port > lastPort {
		return program.Misuse(command, fmt.Errorf("--port %d: there is no such port", o.port))
	}
	config, err := o.cluster.Config()
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return program.Misuse(command, usage.Err)
	}
	if err != nil {
		return err
	}
	ctx := command.Context()
	cluster, err := o.cluster.Inspect(ctx)
	if err != nil {
		return err
	}
	seen, err := follow(ctx, config)
	if err != nil {
		return err
	}
	leader, err := o.cluster.Leader(config)
	if err != nil {
		return err
	}
	go seen.followLeader(ctx, leader)
	asked := newAsking(cluster, o.images.Bundles(), seen.touch)
	go asked.keepNewest(ctx, seen)

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(loopback, strconv.Itoa(o.port)))
	if err != nil {
		return fmt.Errorf("%w: --port 0 takes any port that is free", err)
	}
	token, once := console.NewToken(), console.NewToken()
	handler, err := console.New(console.Config{
		Host: listener.Addr().String(), Token: token, Once: once, Cluster: config.Host, Live: seen, Asking: asked, Offers: asked, Now: time.Now,
	})
	if err != nil {
		return err
	}
	url := func(token string) string { return fmt.Sprintf("http://%s/?token=%s", listener.Addr(), token) }
	if _, err := fmt.Fprintln(command.OutOrStdout(), url(token)); err != nil {
		return err
	}
	if !o.noBrowser {
		if err := open(ctx, url(once)); err != nil {
			fmt.Fprintf(command.ErrOrStderr(), "no browser can be opened (%v): open the URL above\n", err)
		}
	}
	return console.Serve(ctx, listener, handler)
}

// openers are the programs that open a URL, by operating system.
var openers = map[string][]string{
	"darwin":  {"open"},
	"windows": {"rundll32", "url.dll,FileProtocolHandler"},
}

// open has the browser of the system open a URL.
func open(ctx context.Context, url string) error {
	opener, known := openers[runtime.GOOS]
	if !known {
		opener = []string{"xdg-open"}
	}
	started := exec.CommandContext(ctx, opener[0], append(opener[1:], url)...) //nolint:gosec // our own arguments
	if err := started.Start(); err != nil {
		return err
	}
	go func() { _ = started.Wait() }() // it goes on as long as it likes
	return nil
}
