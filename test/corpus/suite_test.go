// Package corpus_test has the real binary install real bundles on one cluster, as
// ServiceAccounts that may do what 'bundle rbac' prints and no more.
package corpus_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/webhook"
)

const (
	// registryHost is the one that the catalog of the corpus has in its references.
	registryHost = "registry.test"

	catalogName = "public-catalog"

	// patience is how long one thing may take while all others are going on, and tests of
	// other packages beside them.
	patience = 3 * time.Minute

	// restarting is how long a controller may take to look at all packages.
	restarting = 2 * time.Minute

	// collecting is how long it may take until the cluster has deleted all that
	// belonged to the packages.
	collecting = 3 * time.Minute

	// parallelism is how many packages are looked after at a time.
	parallelism = 8
)

// suite is a cluster on which the corpus can be installed, and what is to be found
// in its audit log at the end.
type suite struct {
	*environment.Environment

	corpus        string
	logs          string
	controllerLog string
	auditLog      string

	mu        sync.Mutex
	silent    []silence
	forecasts []forecast
}

// silence is a time in which nothing may be written for a package.
type silence struct {
	revision revision
	from, to time.Time
}

func corpus(t *testing.T) fs.FS {
	t.Helper()
	return os.DirFS(testkit.Corpus(t))
}

// startSuite starts everything but the controller. Logs are kept if the test
// fails.
func startSuite(t *testing.T) *suite {
	t.Helper()
	logs, err := os.MkdirTemp("", "operator-controller-corpus-") //nolint:usetesting // kept when the test fails
	if err != nil {
		t.Fatal(err)
	}
	s := &suite{
		corpus: testkit.Corpus(t), logs: logs,
		controllerLog: filepath.Join(logs, "controller.log"), auditLog: filepath.Join(logs, "audit.log"),
	}
	// Nobody answers for the webhooks of operators; that is to show at once.
	services := &webhook.Services{}
	s.Environment, err = environment.Start(t.Context(), environment.Options{
		AuditLog:         s.auditLog,
		ClusterLogs:      filepath.Join(logs, "cluster"),
		AdmissionPlugins: []string{"OwnerReferencesPermissionEnforcement"},
		Registries:       []string{registryHost},
		Dial:             services.Dial,
		Progress:         t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	services.Use(s.Admin)
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
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
	return s
}

// startController returns what stops it again.
func (s *suite) startController(t *testing.T) *environment.Controller {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	controller, err := s.StartController(ctx, s.controllerLog, "--v=1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = controller.Kill() }) // of no effect after Stop
	return controller
}

// folder is where the bundle is, for the command line.
func (s *suite) folder(r revision) string {
	return filepath.Join(s.corpus, "bundles", r.pkg, r.version)
}

// publish pushes the catalog and all bundles.
func (s *suite) publish(t *testing.T, families []family) {
	t.Helper()
	catalog, err := fs.Sub(corpus(t), "catalog")
	if err != nil {
		t.Fatal(err)
	}
	target := catalogName + ":v1"
	err = errors.Join(s.PushCatalog(t.Context(), target, catalog), s.CreateCatalog(t.Context(), catalogName, registryHost+"/"+target))
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range slices.Concat(families...) {
		files := fstest.MapFS{}
		for _, part := range []string{"manifests", "metadata"} {
			copyInto(t, files, revision.files, part)
		}
		if err := s.PushBundle(t.Context(), revision.pkg+":v"+revision.version, files); err != nil {
			t.Fatal(err)
		}
	}
}

func copyInto(t *testing.T, target fstest.MapFS, files fs.FS, part string) {
	t.Helper()
	err := fs.WalkDir(files, part, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		target[name] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// makeForeignKinds brings kinds that real operators take for granted: those of
// cert-manager, and stand-ins for those of others.
func (s *suite) makeForeignKinds(t *testing.T) {
	t.Helper()
	manifests := []string{"stub-crds.yaml"}
	for _, kind := range []string{"certificates", "issuers"} {
		found, err := fs.Glob(corpus(t), "bundles/cert-manager/1.7.1/manifests/*"+kind+".yaml")
		if err != nil || len(found) == 0 {
			t.Fatalf("no CRD of %s in the corpus (%v)", kind, err)
		}
		manifests = append(manifests, found...)
	}
	for _, name := range manifests {
		data, err := fs.ReadFile(corpus(t), name)
		if err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			{"apply", "--server-side", "-f", "-"},
			{"wait", "--for=condition=Established", "--timeout=60s", "-f", "-"},
		} {
			if _, err := s.KubectlOutput(t.Context(), string(data), args...); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// together runs a subtest for each family, some at a time.
func together(t *testing.T, name string, families []family, test func(*testing.T, family)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		var group errgroup.Group
		group.SetLimit(parallelism)
		for _, family := range families {
			group.Go(func() error {
				t.Run(family.name(), func(t *testing.T) { test(t, family) })
				return nil
			})
		}
		_ = group.Wait() // failures are those of the subtests
	})
}

// eventually waits for check to hold, and says at the end what was amiss.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

// progress waits until Progressing speaks of the present spec and is as wanted.
func (s *suite) progress(t *testing.T, r revision, want func(reason, message string) error) {
	t.Helper()
	eventually(t, r.String(), func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := s.Admin.Get(ctx, client.ObjectKey{Name: r.pkg}, found); err != nil {
			return err
		}
		progressing := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeProgressing)
		if progressing == nil || progressing.ObservedGeneration != found.Generation {
			return fmt.Errorf("conditions are those of another spec: %+v", found.Status.Conditions)
		}
		if progressing.Reason == ocv1.ReasonSucceeded && (found.Status.Install == nil || found.Status.Install.Bundle.Version != r.version) {
			return fmt.Errorf("installed is %+v", found.Status.Install)
		}
		message := progressing.Message
		if ready := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady); ready != nil && progressing.Reason != ocv1.ReasonSucceeded {
			message = ready.Message + "; " + message
		}
		return want(progressing.Reason, message)
	})
}

// installed waits until a bundle is installed and nothing is left to do.
func (s *suite) installed(t *testing.T, r revision) {
	t.Helper()
	s.progress(t, r, func(reason, message string) error {
		if reason != ocv1.ReasonSucceeded {
			return fmt.Errorf("%s: %s", reason, message)
		}
		return nil
	})
}

// refused waits until a bundle is refused, for a reason that Progressing or Ready
// gives.
func (s *suite) refused(t *testing.T, r revision, because string) {
	t.Helper()
	s.progress(t, r, func(reason, message string) error {
		if reason == ocv1.ReasonSucceeded || !strings.Contains(message, because) {
			return fmt.Errorf("%s: %s; want %q", reason, message, because)
		}
		return nil
	})
}

// denied waits until a bundle is refused for want of exactly these rights.
func (s *suite) denied(t *testing.T, r revision, lines []string) {
	t.Helper()
	want := "pre-authorization failed: service account requires the following permissions to manage cluster extension:\n" + strings.Join(lines, "\n")
	s.progress(t, r, func(reason, message string) error {
		if reason != ocv1.ReasonRetrying || !strings.HasSuffix(message, ": "+want) {
			return fmt.Errorf("%s: %s; want %s", reason, message, want)
		}
		return nil
	})
}
