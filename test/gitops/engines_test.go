package gitops_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// Users that the engines are, each with all rights, so that the audit log tells them apart.
const (
	argoCDUser = "argocd"
	fluxUser   = "flux"
)

// argoCDInterval is how often Applications are compared.
const argoCDInterval = "2s"

// startArgoCD has Applications reconciled until the test ends, with the health checks that
// config/argocd has.
func startArgoCD(t *testing.T, from *repository) {
	t.Helper()
	launch(t, "argocd", theSuite.gitops.ArgoCD, nil,
		"-kubeconfig", kubeconfig(t, argoCDUser), "-repository", from.dir, "-interval", argoCDInterval,
		"-customizations", filepath.Join(theSuite.Root(), "config", "argocd", "resource_customizations"))
}

// startFlux has Kustomizations reconciled until the test ends.
func startFlux(t *testing.T) {
	t.Helper()
	environ := []string{"KUBECONFIG=" + kubeconfig(t, fluxUser), "RUNTIME_NAMESPACE=flux-system"}
	artifacts := freeAddress(t)
	common := []string{"--watch-all-namespaces", "--enable-leader-election=false", "--metrics-addr=0", "--events-addr=", "--requeue-dependency=1s"}
	launch(t, "source-controller", theSuite.gitops.SourceController, environ, append(common,
		"--health-addr="+freeAddress(t), "--storage-path="+t.TempDir(), "--storage-addr="+artifacts, "--storage-adv-addr="+artifacts)...)
	launch(t, "kustomize-controller", theSuite.gitops.KustomizeController, environ, append(common, "--health-addr="+freeAddress(t))...)
}

func kubeconfig(t *testing.T, user string) string {
	t.Helper()
	path, err := theSuite.Cluster.KubeconfigFor(user, "system:masters")
	must(t, err)
	return path
}

func launch(t *testing.T, name, program string, environ []string, args ...string) {
	t.Helper()
	command := exec.Command(program, args...)
	command.Env = append(os.Environ(), environ...)
	process, err := environment.StartProcess(name, filepath.Join(theSuite.logs, name+".log"), command)
	must(t, err)
	t.Cleanup(func() {
		if err := process.Stop(); err != nil {
			t.Error(err)
		}
	})
}

func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer func() { must(t, listener.Close()) }()
	return listener.Addr().String()
}
