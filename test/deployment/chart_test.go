package deployment_test

import (
	"path/filepath"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart/loader"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"github.com/clusterextensions/operator-controller/test/environment"
)

const releaseName = "operator-controller"

// TestChart installs the chart with Helm, and uninstalls it with an extension installed:
// the extension stays, guarded, and the chart takes all over when it is installed again.
// First it is installed where config/default was.
//
//nolint:paralleltest // it replaces what all others need
func TestChart(t *testing.T) {
	apply(t)
	before := installSample(t)
	since := time.Now()
	kubectl(t, "delete", "-k", kustomization("controller"))
	comeBack(t, before, since, helmTakeOver)
	_, err := action.NewUninstall(helm(t)).Run(releaseName)
	must(t, err)
	nothingLost(t, before)
	reinstall(t, helmTakeOver)
	removeAll(t) // and Helm's own record with the namespace

	reinstall(t, helmInstall)
	before = installSample(t)

	since = time.Now()
	_, err = action.NewUninstall(helm(t)).Run(releaseName)
	must(t, err)
	if err := theSuite.Kubectl(t.Context(), "-n", environment.SystemNamespace, "get", "deployment", "operator-controller-controller-manager"); err == nil {
		t.Error("the controller is there")
	}
	awaitGuard(t)
	nothingLost(t, before)
	comeBack(t, before, since, helmInstall)

	_, err = action.NewUninstall(helm(t)).Run(releaseName)
	must(t, err)
	reinstall(t, apply)
	removeAll(t)
	reinstall(t, apply)
}

// helmInstall installs the chart, and returns when the guard is in force.
func helmInstall(t *testing.T) {
	t.Helper()
	helmInstallWith(t, func(*action.Install) {})
}

// helmTakeOver is helmInstall of objects that may be there without Helm.
func helmTakeOver(t *testing.T) {
	t.Helper()
	helmInstallWith(t, func(install *action.Install) { install.TakeOwnership = true })
}

func helmInstallWith(t *testing.T, change func(*action.Install)) {
	t.Helper()
	loaded, err := loader.Load(filepath.Join(theSuite.Root(), "charts", releaseName))
	must(t, err)
	install := action.NewInstall(helm(t))
	install.ReleaseName, install.Namespace, install.CreateNamespace = releaseName, environment.SystemNamespace, true
	change(install)
	_, err = install.RunWithContext(t.Context(), loaded, nil)
	must(t, err)
	awaitGuard(t)
}

func helm(t *testing.T) *action.Configuration {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	kubeconfig, namespace := theSuite.Cluster.Kubeconfig(), environment.SystemNamespace
	flags.KubeConfig, flags.Namespace = &kubeconfig, &namespace
	configuration := &action.Configuration{}
	must(t, configuration.Init(flags, environment.SystemNamespace, "secret", t.Logf))
	return configuration
}
