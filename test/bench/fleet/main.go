// Command fleet measures what many extensions cost: the controller runs as users
// run it, on a real cluster, beside a plain client that does the same writes once
// and no more, the floor. Each result is a line of JSON; the command fails when
// one is over its limit.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// registryHost stands for the registry here in all references.
const registryHost = "registry.test"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	details := flag.String("details", "", "where to write CPU profiles, heap profiles and the requests of each phase; nowhere without it")
	flag.Parse()
	err := run(ctx, os.Stdout, *details)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// bench is what all measurements share: a cluster, and the controller of the
// moment.
type bench struct {
	*environment.Environment

	report  *measure.Report
	client  client.WithWatch
	audit   *auditLog
	logs    string
	details details

	// catalogs is the address at which every controller serves them.
	catalogs string

	controller *environment.Controller
}

func run(ctx context.Context, out io.Writer, detailsDir string) (err error) {
	logs, err := os.MkdirTemp("", "bench-fleet-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(logs)) }()
	b := &bench{report: measure.NewReport(out), logs: logs, details: details{dir: detailsDir}}
	if b.catalogs, err = freeAddress(); err != nil {
		return err
	}
	b.audit = &auditLog{path: filepath.Join(logs, "audit.log")}
	b.Environment, err = environment.Start(ctx, environment.Options{
		AuditLog:   b.audit.path,
		Registries: []string{registryHost},
		Progress:   os.Stderr,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.stopController(), b.Stop()) }()
	if b.client, err = client.NewWithWatch(b.Cluster.RESTConfig(), client.Options{Scheme: b.Admin.Scheme()}); err != nil {
		return err
	}
	return b.measure(ctx)
}

// measure runs every measurement. Results over their limits do not end it.
func (b *bench) measure(ctx context.Context) error {
	var over []error
	for _, part := range []func(context.Context) (over, err error){b.fleet, b.idle, b.restart, b.corpus, b.crowd} {
		exceeded, err := part(ctx)
		over = append(over, exceeded)
		if err != nil {
			return errors.Join(append(over, err)...)
		}
	}
	return errors.Join(over...)
}

// say tells on the standard error what is going on.
func say(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }
