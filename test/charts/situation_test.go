package charts_test

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/util/version"
)

// situation contains all inputs of templates except the values.
type situation struct {
	release, namespace string
	isUpgrade          bool

	// kubernetes is the version of the API server, such as "v1.36.3".
	kubernetes string

	// minor is the minor version that the API server reports, if it differs from kubernetes.
	minor string

	// apis are served besides the APIs that Helm assumes without a cluster.
	apis []string
}

func (s situation) String() string {
	return fmt.Sprintf("release %s/%s, upgrade %v, Kubernetes %s, APIs %v", s.namespace, s.release, s.isUpgrade, s.kubernetes, s.apis)
}

// usual returns the situation of an installation.
func usual() situation {
	return situation{release: "shop", namespace: "shop-system", kubernetes: "v1.36.3"}
}

// situationOf returns the situation of a variation, the same for the same seed.
func situationOf(seed int, chart packaged) situation {
	at := usual()
	if seed == 0 {
		return at
	}
	random := randomOf(chart.name+" in a cluster", seed)
	at.isUpgrade = oneIn(random, 4) && !chart.counts()
	if oneIn(random, 3) {
		at.kubernetes = pick(random, []string{"v1.21.14", "v1.25.0", "v1.30.4-gke.100", "v1.33.2", "v1.36.0+k3s1"})
	}
	for _, api := range []string{
		"monitoring.coreos.com/v1", "monitoring.coreos.com/v1/ServiceMonitor", "cert-manager.io/v1", "policy/v1beta1/PodSecurityPolicy",
		"route.openshift.io/v1", "gateway.networking.k8s.io/v1", "autoscaling.k8s.io/v1", "apps/v1/Deployment", "networking.k8s.io/v1/Ingress",
	} {
		if oneIn(random, 4) {
			at.apis = append(at.apis, api)
		}
	}
	return at
}

// counts is true of a chart that reads the number of the revision, which differs from Helm for upgrades.
func (p packaged) counts() bool {
	loaded, err := loader.LoadArchive(bytes.NewReader(p.archive))
	if err != nil {
		return false
	}
	for _, file := range loaded.Raw {
		if bytes.Contains(file.Data, []byte(".Revision")) {
			return true
		}
	}
	return false
}

// kubeVersion returns the version as Helm reads it from an API server.
func (s situation) kubeVersion() (*chartutil.KubeVersion, error) {
	parsed, err := version.ParseGeneric(s.kubernetes)
	if err != nil {
		return nil, err
	}
	return &chartutil.KubeVersion{
		Version: s.kubernetes,
		Major:   fmt.Sprint(parsed.Major()),
		Minor:   cmp.Or(s.minor, fmt.Sprint(parsed.Minor())),
	}, nil
}

// served returns all APIs that templates learn.
func (s situation) served() []string {
	return append(slices.Clone(chartutil.DefaultVersionSet), s.apis...)
}

// randomOf returns a source of random numbers, the same for the same purpose and seed.
func randomOf(purpose string, seed int) *rand.Rand {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(purpose)) // never fails
	return rand.New(rand.NewPCG(uint64(seed), hash.Sum64()))
}

func oneIn(random *rand.Rand, n int) bool { return random.IntN(n) == 0 }

func pick[T any](random *rand.Rand, from []T) T { return from[random.IntN(len(from))] }
