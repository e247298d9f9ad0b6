package catalog

import (
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/localcatalog"
)

// serve is the command line of catalog serve.
type serve struct {
	address  string
	name     string
	catalogs cli.Catalogs
}

func newServeCommand() *cobra.Command {
	var o serve
	command := &cobra.Command{
		Use:   "serve CATALOG",
		Short: "Serve a catalog over the HTTP API of catalogs",
		Long: `Serve a catalog over the HTTP API that catalogs have in a cluster, for local work.

The base URL is printed once it can be used. Changes in a folder or a file are served
as soon as they are complete and can be read; other catalogs are read once. Interrupt
to end; nothing is left behind.

` + cli.CatalogHelp,
		Example: `  kubectl extension catalog serve ./catalog --address 127.0.0.1:8080 --name sample
  kubectl extension catalog serve registry.example/catalog:latest
  curl http://127.0.0.1:8080/catalogs/sample/api/v1/all`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVar(&o.address, "address", "127.0.0.1:8080", "Address to listen on; port 0 for any that is free.")
	command.Flags().StringVar(&o.name, "name", "catalog", "Name of the catalog in its URL.")
	o.catalogs.Bind(command.Flags())
	return command
}

func (o *serve) run(command *cobra.Command, from string) error {
	if problems := validation.IsDNS1123Subdomain(o.name); len(problems) > 0 {
		return program.Misuse(command, fmt.Errorf("no catalog can have the name %q: %s", o.name, problems[0]))
	}
	if _, _, err := net.SplitHostPort(o.address); err != nil {
		return program.Misuse(command, fmt.Errorf("--address: %w", err))
	}
	source, err := catalogsource.Parse(from)
	if err != nil {
		return program.Misuse(command, err)
	}
	reader, err := o.catalogs.Reader(command)
	if err != nil {
		return err
	}
	err = localcatalog.Serve(command.Context(), localcatalog.Config{
		Reader: reader, Source: source, Name: o.name, Address: o.address, Now: time.Now,
		Serving: func(url string) error {
			_, err := fmt.Fprintln(command.OutOrStdout(), url)
			return err
		},
		Changed: func(err error) {
			if err != nil {
				fmt.Fprintf(command.ErrOrStderr(), "the catalog has changed, and what was in it before is served: %v\n", err)
				return
			}
			fmt.Fprintln(command.ErrOrStderr(), "the catalog has changed, and its new content is served")
		},
	})
	if unreadable, ok := errors.AsType[*localcatalog.ReadError](err); ok {
		return fmt.Errorf("%w (try kubectl extension catalog check %s)", cli.CatalogError(unreadable), from)
	}
	return err
}
