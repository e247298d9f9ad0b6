package corpus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// oneCommand is how many packages are installed with one command each.
const oneCommand = 10

// TestInstallWithOneCommand has a catalog, and operators that serve when the commands end. They
// are of the first packages of the corpus that bring roles of their own, require no other package
// and run on any node, at their lowest version that can be installed.
//
//nolint:tparallel // together has as many at a time as the machine can
func TestInstallWithOneCommand(t *testing.T) {
	t.Parallel()
	var chosen []family
	for _, family := range readCorpus(t) {
		if installable := family.installable(); len(chosen) < oneCommand && len(installable) > 0 && isOneCommandEnough(installable[0]) {
			chosen = append(chosen, installable[:1])
		}
	}
	s := startSuite(t)
	s.makeForeignKinds(t)
	s.publish(t, chosen)
	s.startController(t)
	eventually(t, "the catalog", func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := s.Admin.Get(ctx, client.ObjectKey{Name: catalogName}, found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, ocv1.TypeServing) {
			return fmt.Errorf("it is not served: %+v", found.Status.Conditions)
		}
		return nil
	})
	together(t, "install", chosen, s.installWithOneCommand)
}

func (s *suite) installWithOneCommand(t *testing.T, family family) {
	t.Helper()
	wanted := family[0]
	args := []string{"install", wanted.pkg, "--version", wanted.version, "--apply", "--kubeconfig", s.Cluster.Kubeconfig()}
	if wanted.watch != "" {
		args = append(args, "--watch-namespace", wanted.watch)
	}
	output, err := s.LocalOutput(t.Context(), args...)
	if want := " is installed, and ready\n"; err != nil || !strings.HasSuffix(output, want) {
		t.Errorf("%v\n%s", err, output)
	}
	s.installed(t, wanted)
}

// requiresOthers are packages that cannot be installed alone.
var requiresOthers = map[string]string{"busybox": "it requires an API that another package brings"}

func isOneCommandEnough(r revision) bool {
	return requiresOthers[r.pkg] == "" && hasRoles(r) && runsAnywhere(r)
}

func hasRoles(r revision) bool {
	for _, object := range r.objects {
		if object.GroupVersionKind().Group == rbacv1.GroupName {
			return true
		}
	}
	return false
}

// runsAnywhere says that no workload asks for nodes of its own, which are not there.
func runsAnywhere(r revision) bool {
	for _, object := range r.objects {
		selected, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec", "nodeSelector")
		if err != nil || len(selected) > 0 {
			return false
		}
	}
	return true
}
