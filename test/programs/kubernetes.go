package programs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// kubernetesVariable names the minor version of Kubernetes that the cluster runs, such as 1.31.
// Empty means the version in hack/cluster/go.mod.
const kubernetesVariable = "KUBERNETES"

// newestKubernetes is the minor version that hack/cluster pins.
const newestKubernetes = "1.37"

// kubernetesFolder is the folder of hack with the components of Kubernetes at other versions.
const kubernetesFolder = "kubernetes"

// kubernetesPins are the files in kubernetesFolder that pin the other minor versions, by version.
var kubernetesPins = map[string]string{
	"1.30": "go.mod",
	"1.31": "1.31.mod",
	"1.34": "1.34.mod",
}

// KubernetesVersion returns the minor version of Kubernetes that [Build] builds.
func KubernetesVersion() string {
	return cmp.Or(os.Getenv(kubernetesVariable), newestKubernetes)
}

// otherKubernetes returns the API server, controller manager and scheduler that replace those of
// hack/cluster; nil if $KUBERNETES does not name another version.
func otherKubernetes() (*group, error) {
	version := KubernetesVersion()
	if version == newestKubernetes {
		return nil, nil //nolint:nilnil // no other version is no error
	}
	pins, ok := kubernetesPins[version]
	if !ok {
		return nil, fmt.Errorf("%s=%s: no pins for this version; there are pins for %s and %s",
			kubernetesVariable, version, strings.Join(slices.Sorted(maps.Keys(kubernetesPins)), ", "), newestKubernetes)
	}
	return &group{
		folder: kubernetesFolder, modfile: pins,
		compile: []compiled{
			{"kube-apiserver " + version, 400, []string{"k8s.io/kubernetes/cmd/kube-apiserver/app"}},
			{"kube-controller-manager " + version, 100, []string{"k8s.io/kubernetes/cmd/kube-controller-manager/app"}},
		},
		programs: []program{{"kubernetes", 40, ".", []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}}},
	}, nil
}

// addControlPlane adds the control plane at the version that $KUBERNETES names.
func (b *build) addControlPlane(ctx context.Context) (*Binaries, error) {
	dir, err := b.add(ctx, controlPlane())
	if err != nil {
		return nil, err
	}
	binaries := &Binaries{
		Etcd:              filepath.Join(dir, "etcd"),
		APIServer:         filepath.Join(dir, "kube-apiserver"),
		ControllerManager: filepath.Join(dir, "kube-controller-manager"),
		Scheduler:         filepath.Join(dir, "kube-scheduler"),
		KWOK:              filepath.Join(dir, "kwok"),
		EtcdUtility:       filepath.Join(dir, "etcdutl"),
		Kubectl:           filepath.Join(dir, "kubectl"),
		Stages:            filepath.Join(dir, stagesName),
	}
	if assets := assets(); assets != "" {
		binaries.Etcd = filepath.Join(assets, "etcd")
		binaries.APIServer = filepath.Join(assets, "kube-apiserver")
		binaries.Kubectl = filepath.Join(assets, "kubectl")
	}
	other, err := otherKubernetes()
	if other == nil || err != nil {
		return binaries, err
	}
	if dir, err = b.add(ctx, other); err != nil {
		return nil, err
	}
	binaries.APIServer = filepath.Join(dir, "kube-apiserver")
	binaries.ControllerManager = filepath.Join(dir, "kube-controller-manager")
	binaries.Scheduler = filepath.Join(dir, "kube-scheduler")
	return binaries, nil
}
