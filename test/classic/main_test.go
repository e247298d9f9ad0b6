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
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/classic"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/podserver"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

// patience is how long a test waits for what takes half a minute on an idle machine.
const patience = 5 * time.Minute

// volumeDelay is how late the pod of the webhooks gets to know another certificate.
const volumeDelay = time.Second

var (
	withClassic = flag.Bool("classic", false, "run classic OLM")
	settling    = flag.Duration("settle", 20*time.Second, "how long classic OLM is watched after a move")
)

func TestMain(m *testing.M) {
	flag.Parse()
	logrus.SetOutput(io.Discard) // the library tells there how it reads bundles
	os.Exit(m.Run())
}

// site is a cluster with classic OLM, which does not run yet, and with a server that answers for
// [classic.WebhookSample].
type site struct {
	*environment.Environment
	*classic.OLM

	logs  string
	audit string
	// services lead the API server to what stands for pods.
	services *webhook.Services
}

// newSite makes one, after any changes that the caller wants.
func newSite(t *testing.T, snapshot string, changes ...func(*environment.Options)) *site {
	t.Helper()
	logs, err := os.MkdirTemp("", "operator-controller-classic-") //nolint:usetesting // kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	s := &site{logs: logs, audit: filepath.Join(logs, "audit.log"), services: &webhook.Services{}}
	options := environment.Options{
		Snapshot: snapshot, AuditLog: s.audit, Registries: []string{classic.Registry}, Dial: s.services.Dial, Progress: t.Output(),
	}
	for _, change := range changes {
		change(&options)
	}
	s.Environment, err = environment.Start(t.Context(), options)
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
	s.services.Use(s.Environment.Admin)
	answering, err := webhook.Start()
	if err != nil {
		t.Fatal(err)
	}
	s.runPod(t, classic.WebhookSample, answering.Server)
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

// runPod has a server stand for the pods of an operator, in the namespace of its name.
func (s *site) runPod(t *testing.T, operator testkit.Operator, server *podserver.Server) {
	t.Helper()
	t.Cleanup(server.Close)
	s.services.Lead(types.NamespacedName{Namespace: operator.Package, Name: operator.WebhookService()}, server.Address())
	go server.Follow(t.Context(), s.Environment.Admin, types.NamespacedName{Namespace: operator.Package, Name: operator.WebhookSecret()}, volumeDelay)
}

func needClassic(t *testing.T) {
	t.Helper()
	if !*withClassic {
		t.Skip("takes a program that is built in minutes: make test-long SUITE=classic runs it")
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
