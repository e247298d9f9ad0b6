// Package gitops_test has Flux's controllers and the engine of Argo CD work on a local
// cluster with what is in examples, and looks at what they and the controller do.
package gitops_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/operator"
	"github.com/clusterextensions/operator-controller/test/programs"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 3 * time.Minute

// startTimeout bounds a start on a busy machine, without the builds before it.
const startTimeout = 30 * time.Minute

// exampleRegistry is where examples have their images.
const exampleRegistry = "registry.example"

// broken is a version that nothing can install: the cluster does not know the API version
// of its CRD.
const broken = "3.0.0"

var (
	withEngines = flag.Bool("gitops", false, "run the controllers of Flux and the engine of Argo CD")
	idle        = flag.Duration("idle", time.Minute, "how long nothing may be written at rest")
)

// suite is what all tests share. They follow each other: the examples have names of their own.
type suite struct {
	*environment.Environment

	logs   string
	audit  string
	watch  client.WithWatch
	gitops *programs.GitOps
}

var theSuite suite

func TestMain(m *testing.M) {
	flag.Parse()
	if !*withEngines {
		os.Exit(m.Run())
	}
	code, err := environment.KeepLogs("gitops", func(logs string) (int, error) { return theSuite.run(m, logs) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func needEngines(t *testing.T) {
	t.Helper()
	if !*withEngines {
		t.Skip("takes programs that are built in minutes: make test-long SUITE=gitops runs it")
	}
}

func (s *suite) run(m *testing.M, logs string) (code int, err error) {
	s.logs, s.audit = logs, filepath.Join(logs, "audit.log")
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if s.gitops, err = programs.BuildGitOps(context.Background(), os.Stderr); err != nil {
		return 1, err
	}
	s.Environment, err = environment.Start(context.Background(), environment.Options{
		AuditLog: s.audit, Registries: []string{operator.Registry, exampleRegistry}, Progress: os.Stderr,
	})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	if s.watch, err = client.NewWithWatch(s.Cluster.RESTConfig(), client.Options{Scheme: s.Admin.Scheme()}); err != nil {
		return 1, err
	}
	if err := errors.Join(s.publish(ctx), s.define(ctx)); err != nil {
		return 1, err
	}
	// As deployed: it takes a moment to be ready, which the engines get to see.
	controller, err := s.StartController(ctx, filepath.Join(logs, "controller.log"), "--v=1", "--min-ready-seconds=5")
	if err != nil {
		return 1, err
	}
	code = m.Run()
	return code, controller.Stop()
}

// publish pushes the bundles of the sample operator, a broken one, and a catalog that
// offers all of them.
func (s *suite) publish(ctx context.Context) error {
	for _, version := range []string{"1.0.0", "1.1.0"} {
		bundle, err := operator.Bundle(version)
		if err != nil {
			return err
		}
		if err := s.PushBundle(ctx, operator.Package+":v"+version, bundle); err != nil {
			return err
		}
	}
	bundle, err := operator.Bundle("1.1.0")
	if err != nil {
		return err
	}
	unusable, err := copyFiles(bundle, func(content []byte) []byte {
		content = bytes.ReplaceAll(content, []byte("apiextensions.k8s.io/v1\n"), []byte("apiextensions.k8s.io/v1beta1\n"))
		return bytes.ReplaceAll(content, []byte("1.1.0"), []byte(broken))
	})
	if err != nil {
		return err
	}
	catalog, err := copyFiles(operator.Catalog, func(content []byte) []byte { return append(content, brokenEntry...) })
	if err != nil {
		return err
	}
	return errors.Join(
		s.PushBundle(ctx, operator.Package+":v"+broken, unusable),
		s.PushCatalog(ctx, "sample-catalog:latest", catalog),
	)
}

// brokenEntry offers the broken version.
const brokenEntry = `---
schema: olm.channel
package: sample-operator
name: broken
entries:
  - name: sample-operator.v3.0.0
    replaces: sample-operator.v1.1.0
---
schema: olm.bundle
package: sample-operator
name: sample-operator.v3.0.0
image: registry.test/sample-operator:v3.0.0
properties:
  - type: olm.package
    value:
      packageName: sample-operator
      version: 3.0.0
`

func copyFiles(from fs.FS, change func([]byte) []byte) (fstest.MapFS, error) {
	files := fstest.MapFS{}
	err := fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(from, name)
		files[name] = &fstest.MapFile{Data: change(content)}
		return err
	})
	return files, err
}

// define makes the kinds of Flux and Argo CD known, and the namespaces of both.
func (s *suite) define(ctx context.Context) error {
	return errors.Join(
		s.Kubectl(ctx, "apply", "--server-side", "-f", s.gitops.FluxDefinitions, "-f", filepath.Join("testdata", "applications.yaml")),
		s.Kubectl(ctx, "wait", "--for=condition=Established", "--timeout=1m", "crd/applications.argoproj.io",
			"crd/kustomizations.kustomize.toolkit.fluxcd.io", "crd/ocirepositories.source.toolkit.fluxcd.io"),
		s.Kubectl(ctx, "create", "namespace", "argocd"),
		s.Kubectl(ctx, "create", "namespace", "flux-system"),
	)
}

// step is a part of a test that the parts after it cannot do without.
func step(t *testing.T, name string, part func(*testing.T)) {
	t.Helper()
	if !t.Run(name, part) {
		t.FailNow()
	}
}

func kubectl(t *testing.T, args ...string) {
	t.Helper()
	must(t, theSuite.Kubectl(t.Context(), args...))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}
