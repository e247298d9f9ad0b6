package docs_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// startTimeout bounds the start of the controller on a busy machine.
const startTimeout = 3 * time.Minute

// The hosts that pages name, all of which are the registry here.
var registries = []string{operator.Registry, "registry.example", "quay.io"}

// suite is what all pages share. A page is carried out when the one before it is
// cleared away: their examples have the same names.
type suite struct {
	*environment.Environment

	controller    *environment.Controller
	controllerLog string
}

var theSuite suite

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := environment.KeepLogs("docs", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	s.controllerLog = filepath.Join(logs, "controller.log")
	ctx := context.Background()
	s.Environment, err = environment.Start(ctx, environment.Options{Registries: registries, Progress: os.Stderr})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if err := s.startController(ctx); err != nil {
		return 1, err
	}
	// The last page has removed what the controller needs to end in order.
	return m.Run(), s.controller.Kill()
}

// publish pushes the sample operator, which most pages are about, and my-operator,
// which stands for that of the reader. Pages push others in their place.
func (s *suite) publish(ctx context.Context) error {
	for _, version := range []string{"1.0.0", "1.1.0", "2.0.0"} {
		files, err := operator.Bundle(version)
		if err != nil {
			return err
		}
		if err := s.PushBundle(ctx, operator.Package+":v"+version, files); err != nil {
			return err
		}
	}
	for _, version := range []string{"1.0.0", "1.1.0"} {
		mine := testkit.Operator{Package: "my-operator", Version: version}
		if err := s.PushBundle(ctx, "my-operator:v"+version, mine.Bundle()); err != nil {
			return err
		}
	}
	return errors.Join(
		s.PushCatalog(ctx, "sample-catalog:latest", operator.Catalog),
		s.PushCatalog(ctx, "operatorhubio/catalog:latest", operator.Catalog),
	)
}

// startController starts it as it runs in a pod: catalogs are served over TLS, with
// a certificate of its own.
func (s *suite) startController(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	address, err := freeAddress()
	if err != nil {
		return err
	}
	s.controller, err = s.StartController(ctx, s.controllerLog,
		"--catalog-server-bind-address="+address, "--catalog-server-external-url=https://"+address)
	return err
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
