package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// registryHost stands for the registry here in all references.
const registryHost = "registry.test"

// bench is what the parts of a suite share: a cluster, and the controllers of the
// moment.
type bench struct {
	*environment.Environment

	report  *measure.Report
	size    int // of the thousand
	client  client.WithWatch
	audit   *auditLog
	dir     string // of logs, and of what controllers keep
	details details

	controller *environment.Controller
	// follower is a second replica, which does not lead; nil without one.
	follower *environment.Controller
}

func newBench(out io.Writer, o options) *bench {
	return &bench{report: measure.NewReport(out), size: o.size, details: details{dir: o.details}}
}

// measure measures parts on a new cluster. Without any, there is none.
func (b *bench) measure(ctx context.Context, parts []part) (over, err error) {
	if len(parts) == 0 {
		return nil, nil
	}
	if b.dir, err = os.MkdirTemp("", "bench-fleet-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	b.audit = &auditLog{AuditLog: environment.AuditLog{Path: filepath.Join(b.dir, "audit.log")}}
	b.Environment, err = environment.Start(ctx, environment.Options{
		AuditLog:   b.audit.Path,
		Registries: []string{registryHost},
		Unjudged:   true,
		Progress:   os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.stopControllers(), b.Stop()) }()
	if b.client, err = client.NewWithWatch(b.Cluster.RESTConfig(), client.Options{Scheme: b.Admin.Scheme()}); err != nil {
		return nil, err
	}
	var all []error
	for _, part := range parts {
		exceeded, err := part.measure(ctx)
		all = append(all, exceeded)
		if err != nil {
			return errors.Join(all...), err
		}
	}
	return errors.Join(all...), nil
}
