package classic_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"

	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// patience is how long a test waits for what takes half a minute on an idle machine.
const patience = 5 * time.Minute

var withClassic = flag.Bool("classic", false, "run classic OLM")

func TestMain(m *testing.M) {
	flag.Parse()
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	os.Exit(m.Run())
}

// site is a cluster with classic OLM, which does not run yet.
type site struct {
	*environment.Environment
	*classic.OLM

	logs  string
	audit string
}

func newSite(t *testing.T, snapshot string) *site {
	t.Helper()
	logs, err := os.MkdirTemp("", "operator-controller-classic-") //nolint:usetesting // kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	s := &site{logs: logs, audit: filepath.Join(logs, "audit.log")}
	s.Environment, err = environment.Start(t.Context(), environment.Options{
		Snapshot: snapshot, AuditLog: s.audit, Registries: []string{classic.Registry}, Progress: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Environment.Stop(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Log("logs are kept in", logs)
			return
		}
		if err := os.RemoveAll(logs); err != nil {
			t.Error(err)
		}
	})
	s.OLM, err = classic.Install(t.Context(), s.Cluster, classic.Options{Logs: logs, Interval: time.Minute, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func needClassic(t *testing.T) {
	t.Helper()
	if !*withClassic {
		t.Skip("takes a program that is built in minutes: make test-classic runs it")
	}
}

func within(t *testing.T, do func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	must(t, do(ctx))
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
