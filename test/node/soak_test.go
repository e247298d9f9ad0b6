//go:build linux

package node_test

import (
	"flag"
	"fmt"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/yaml"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/node"
)

var soak = flag.Duration("soak", 0, "go on upgrading many extensions back and forth for so long")

const (
	// soakExtensions are upgraded back and forth.
	soakExtensions = 50
	// soakCatalog is how large another catalog is, in bytes, of which nobody draws.
	soakCatalog = 202_000_000
)

// TestSoak upgrades many operators that run back and forth, beside a large catalog, in
// the memory that a deployed controller may have. It is never killed for it.
//
//nolint:paralleltest // it measures
func TestSoak(t *testing.T) {
	needNode(t)
	if *soak == 0 {
		t.Skip("takes long: make soak-node runs it")
	}
	pushBulky(t, "bulky", soakCatalog)
	if err := theSuite.content.CreateCatalog(t.Context(), "bulky", node.Registry+"/bulky:v1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, named(&ocv1.ClusterCatalog{}, "", "bulky")) })
	serving(t, "bulky")
	var names []string
	for i := range soakExtensions {
		name := fmt.Sprintf("soaked-%02d", i)
		names = append(names, name)
		offer(t, name, nil, "1.0.0", "1.1.0")
		extend(t, name, "1.0.0")
		allowDowngrades(t, name)
	}
	began, rounds := time.Now(), 0
	used := &usage{}
	for ; time.Since(began) < *soak; rounds++ {
		version := []string{"1.1.0", "1.0.0"}[rounds%2]
		var all sync.WaitGroup
		for _, name := range names {
			all.Go(func() { upgrade(t, name, version) })
		}
		all.Wait()
		for _, name := range names {
			ready(t, name, version)
			used.look(t)
		}
	}
	t.Logf("%d rounds of %d upgrades; a controller used at most %d MiB", rounds, soakExtensions, used.most>>20)
	if count := restarts(t); count > 0 {
		t.Errorf("controllers were restarted %d times", count)
	}
}

// allowDowngrades lets an extension go back, which no catalog offers.
func allowDowngrades(t *testing.T, name string) {
	t.Helper()
	if err := theSuite.content.Update(t.Context(), name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
	}); err != nil {
		t.Fatal(err)
	}
}

// usage is the most memory that a controller was seen to use, in bytes, as kubelet
// accounts for it.
type usage struct{ most int64 }

func (u *usage) look(t *testing.T) {
	t.Helper()
	text := kubectl(t, "", "get", "--raw", "/api/v1/nodes/"+node.Name+"/proxy/stats/summary")
	var summary struct {
		Pods []struct {
			PodRef     struct{ Name, Namespace string }
			Containers []struct {
				Name   string
				Memory struct{ WorkingSetBytes int64 }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &summary); err != nil {
		t.Fatal(err)
	}
	for _, pod := range summary.Pods {
		for _, container := range pod.Containers {
			if container.Name == "manager" && pod.PodRef.Namespace == environment.SystemNamespace {
				u.most = max(u.most, container.Memory.WorkingSetBytes)
			}
		}
	}
}

// pushBulky pushes a catalog of so many bytes in packages of a usual size.
func pushBulky(t *testing.T, name string, size int) {
	t.Helper()
	files := fstest.MapFS{}
	const packageSize = 1 << 20
	for i := range size / packageSize {
		pkg := fmt.Sprintf("%s-%d", name, i)
		files[pkg+"/catalog.json"] = &fstest.MapFile{Data: aPackage(t, pkg, noise(packageSize))}
	}
	if err := theSuite.content.PushCatalog(t.Context(), name+":v1", files); err != nil {
		t.Fatal(err)
	}
}
