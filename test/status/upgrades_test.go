package status_test

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/fstest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/judge"
	"github.com/clusterextensions/operator-controller/test/status"
)

var upgradeCount = flag.Int("upgrades", 40, "how many upgrades TestUpgradesLeaveOneRecord makes")

// poll is between two looks at the status.
const poll = time.Millisecond

// TestUpgradesLeaveOneRecord has a client that edits the spec and trusts Progressing
// or Ready: it always finds exactly one record that is deployed, and that one whole,
// of the version that it asked for if the status is about that generation.
func TestUpgradesLeaveOneRecord(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		padding  int
		upgrades int
	}{
		"small-records": {upgrades: *upgradeCount},
		// Of these, each record takes more than one Secret.
		"large-records": {padding: 700_000, upgrades: *upgradeCount / 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(name, extensionKind)
			offerPadded(t, s, test.padding)
			withInstaller(t, s)
			s.create(t, "1.0.0", selfCertified("1.0.0"))
			s.await(t, ready("1.0.0"))
			for i := range test.upgrades {
				version := []string{"1.1.0", "1.0.0"}[i%2]
				s.edit(t, version, selfCertified(version))
				if err := trusted(t.Context(), name, version); err != nil {
					t.Fatalf("upgrade %d, to %s: %v", i+1, version, err)
				}
			}
		})
	}
}

// offerPadded publishes two versions, each with so much that cannot be compressed.
func offerPadded(t *testing.T, s *scene, padding int) {
	t.Helper()
	var operators []testkit.Operator
	for _, version := range []string{"1.0.0", "1.1.0"} {
		operators = append(operators, operator(s.name, version))
		files := operators[len(operators)-1].Bundle()
		for i := range 2 {
			if padding == 0 {
				break
			}
			name := fmt.Sprintf("padding-%d", i)
			files["manifests/"+name+".yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf(
				"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\ndata:\n  text: %s\n", name, noise(padding)))}
		}
		pushBundle(t, operators[len(operators)-1], files)
	}
	serve(t, s.name, s.name, testkit.Catalog(registryHost, operators...))
}

// noise is text of a length that is the same in each run.
func noise(length int) string {
	random := rand.New(rand.NewPCG(1, uint64(length)))
	data := make([]byte, length*3/4)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return base64.StdEncoding.EncodeToString(data)
}

// selfCertified lets an extension go back, too.
func selfCertified(version string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Version = version
		extension.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
	}
}

// trusted looks every millisecond at the status and, as they were at that very
// moment, at the records, until the extension is ready. Clients of the v1 API trust
// Progressing whatever generation it is about.
func trusted(ctx context.Context, name, version string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		seen, revision, err := look(ctx, name)
		if err != nil {
			return err
		}
		done := seen.Condition("Progressing").Is("True", "Succeeded")
		ready := seen.WaitReturns("Ready")
		if done || ready {
			deployed, err := status.Deployed(ctx, theSuite.Admin, name, revision)
			if err != nil {
				return fmt.Errorf("the status says that it is done: %s: %w", seen, err)
			}
			mine := ready || seen.WaitReturns("Progressing")
			if len(deployed) != 1 || mine && deployed[0].BundleVersion() != version {
				return fmt.Errorf("records %v are deployed while the status says that it is done: %s", versionsOf(deployed), seen)
			}
		}
		if ready {
			return nil
		}
		time.Sleep(poll)
	}
}

// look gives the extension, and the revision of the cluster at which it was so.
func look(ctx context.Context, name string) (status.Capture, string, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(ocv1.GroupVersion.WithKind(extensionKind + "List"))
	if err := theSuite.Admin.List(ctx, list, client.MatchingFields{"metadata.name": name}); err != nil {
		return status.Capture{}, "", err
	}
	if len(list.Items) != 1 {
		return status.Capture{}, "", fmt.Errorf("%d extensions are named %s", len(list.Items), name)
	}
	return status.Capture{Reading: judge.Reading{Object: &list.Items[0]}, At: time.Now()}, list.GetResourceVersion(), nil
}

func versionsOf(records []*environment.Release) []string {
	var versions []string
	for _, record := range records {
		versions = append(versions, record.BundleVersion())
	}
	return versions
}
