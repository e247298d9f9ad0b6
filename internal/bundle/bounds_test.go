package bundle_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// allocated is how many bytes a function takes, those that it gives back included.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRepeatedManifestsTakeLittle: a manifest that comes again is held against the first
// one, which may be much larger.
func TestRepeatedManifestsTakeLittle(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	large := configMap("{" + many(20_000, "k%05d: {}, ") + "}")
	measure := func(repeats int) uint64 {
		files := minimalBundle(map[string]string{"manifests/a.yaml": large, "manifests/b.yaml": strings.Repeat("---\n"+configMap("{}"), repeats)})
		return allocated(func() {
			_, err := bundle.Parse(files)
			if err == nil || !strings.Contains(err.Error(), "differs from the one in manifests/a.yaml") {
				t.Errorf("err = %v", err)
			}
		})
	}
	if once, often := measure(1), measure(200); often > 2*once {
		t.Errorf("a manifest that comes once more takes %d bytes, one that comes 200 times %d", once, often)
	}
}

// many is a text with a number in it, as often.
func many(count int, format string) string {
	var text strings.Builder
	for i := range count {
		fmt.Fprintf(&text, format, i)
	}
	return text.String()
}

// withContainers has the containers of a number of deployments.
func withContainers(deployments, containers int) *bundle.Bundle {
	b := bundleSupporting("A")
	strategy := &b.CSV.Spec.InstallStrategy.StrategySpec
	strategy.DeploymentSpecs = nil
	for i := range deployments {
		deployment := operatorsv1alpha1.StrategyDeploymentSpec{Name: fmt.Sprintf("d%d", i)}
		deployment.Spec.Template.Spec.Containers = make([]corev1.Container, containers)
		strategy.DeploymentSpecs = append(strategy.DeploymentSpecs, deployment)
	}
	return b
}

func render(t *testing.T, b *bundle.Bundle, inline string) error {
	t.Helper()
	config, err := bundle.ParseConfig(b, testNamespace, []byte(inline))
	if err != nil {
		t.Fatal(err)
	}
	_, err = bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config})
	return err
}

// TestTolerationsTakeLinearly: each is held against those that are there.
func TestTolerationsTakeLinearly(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	b := withContainers(1, 1)
	measure := func(count int) uint64 {
		inline := "deploymentConfig: {tolerations: [" + many(count, "{key: k%d}, ") + "]}"
		config, err := bundle.ParseConfig(b, testNamespace, []byte(inline))
		if err != nil {
			t.Fatal(err)
		}
		return allocated(func() {
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
			if err != nil || len(objects) != 1 {
				t.Errorf("objects %v, err = %v", objects, err)
			}
		})
	}
	if few, more := measure(100), measure(800); more > 24*few {
		t.Errorf("8 times the tolerations take %d bytes rather than %d, which is %d times as much", more, few, more/few)
	}
}

// TestCopiesOfAConfigurationAreBounded: each container has one.
func TestCopiesOfAConfigurationAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	inline := "deploymentConfig: {env: [{name: a, value: " + strings.Repeat("x", 100_000) + "}]}"
	tests := map[string]struct {
		deployments, containers int
		want                    string
	}{
		"few":         {deployments: 10, containers: 20},
		"containers":  {deployments: 1, containers: 5000, want: "deployments of the bundle (1) and their containers (5000) each get a copy"},
		"deployments": {deployments: 128, containers: 2, want: "deployments of the bundle (128) and their containers (256) each get a copy"},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			b := withContainers(tc.deployments, tc.containers)
			taken := allocated(func() {
				err := render(t, b, inline)
				if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
					t.Errorf("err = %v, want %q", err, tc.want)
				}
			})
			if limit := uint64(1 << 30); taken > limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
			}
		})
	}
}

// TestCopiesOfANameAreBounded: each container can have one.
func TestCopiesOfANameAreBounded(t *testing.T) {
	t.Parallel()
	const longest = 253
	for containers, want := range map[int]string{
		bundle.MaxNameCopiesBytes / longest: "",
		bundle.MaxNameCopiesBytes/longest + 1: "invalid bundle: metadata.name: the name has 253 bytes, and each of 33157 containers gets a copy " +
			"as OPERATOR_CONDITION_NAME; all copies may have 8388608 bytes",
	} {
		b := withContainers(1, containers)
		b.CSV.Name = strings.Repeat("x", longest)
		if err := render(t, b, ""); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("err = %v, want %q", err, want)
		}
	}
}

// TestCopiesOfRolesAreBounded: each of several namespaces has one.
func TestCopiesOfRolesAreBounded(t *testing.T) {
	t.Parallel()
	watching := func(count int) string {
		names := make([]string, count)
		for i := range names {
			names[i] = fmt.Sprintf("n-%d", i)
		}
		return "watchNamespaces: [" + strings.Join(names, ",") + "]"
	}
	tests := map[string]struct {
		roles, namespaces int
		want              string
	}{
		"many namespaces":          {roles: 100, namespaces: bundle.MaxWatchNamespaces},
		"many roles":               {roles: 1000, namespaces: 2},
		"many roles, for one":      {roles: 20_000, namespaces: 1},
		"many roles, often":        {roles: 1000, namespaces: 20, want: `field "watchNamespaces" has 20 namespaces: each gets the 1000 roles of the bundle, of 1063001 bytes, and all copies may have 16777216; name fewer`},
		"too many roles for a few": {roles: 10_000, namespaces: 2, want: "all copies may have 16777216; name fewer"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bundleSupporting("M")
			b.CSV.Spec.InstallStrategy.StrategySpec.Permissions = make([]operatorsv1alpha1.StrategyDeploymentPermissions, tc.roles)
			err := render(t, b, watching(tc.namespaces))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("err = %v, want %q", err, tc.want)
			}
		})
	}
}

// TestDeploymentsAreBounded: each of them gets the annotations of the bundle.
func TestDeploymentsAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	annotations := map[string]string{}
	for i := range 1000 {
		annotations[fmt.Sprintf("key-%d", i)] = "value"
	}
	tests := map[string]struct {
		deployments int
		want        string
	}{
		"as many as there may be": {deployments: bundle.MaxDeployments},
		"too many": {
			deployments: 2000, want: "invalid bundle: spec.install.spec.deployments: 2000 deployments, more than 128",
		},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			b := withContainers(tc.deployments, 1)
			b.CSV.Annotations = annotations
			taken := allocated(func() {
				err := render(t, b, "")
				if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
					t.Errorf("err = %v, want %q", err, tc.want)
				}
			})
			if limit := uint64(256 << 20); taken > limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
			}
		})
	}
}

// TestAPIServicesAreBounded: the cluster asks all of them again and again.
func TestAPIServicesAreBounded(t *testing.T) {
	t.Parallel()
	for count, want := range map[int]string{
		bundle.MaxAPIServices:     "",
		bundle.MaxAPIServices + 1: "invalid bundle: spec.apiservicedefinitions.owned: 129 API services, more than 128",
	} {
		b := bundleSupporting("A")
		b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs = []operatorsv1alpha1.StrategyDeploymentSpec{{Name: "gardener"}}
		for i := range count {
			b.CSV.Spec.APIServiceDefinitions.Owned = append(b.CSV.Spec.APIServiceDefinitions.Owned, operatorsv1alpha1.APIServiceDescription{
				Name: "plants", Group: "garden.test", Version: fmt.Sprintf("v%d", i), DeploymentName: "gardener",
			})
		}
		got := ""
		if err := b.Validate(); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%d API services: err = %q, want %q", count, got, want)
		}
	}
}

// TestInstallModesAreToldInPart: each webhook that converts says which there are.
func TestInstallModesAreToldInPart(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	b := bundleSupporting("A")
	for i := range 2000 {
		b.CSV.Spec.InstallModes = append(b.CSV.Spec.InstallModes,
			operatorsv1alpha1.InstallMode{Type: operatorsv1alpha1.InstallModeType(fmt.Sprintf("mode-%d", i)), Supported: true})
		b.CSV.Spec.WebhookDefinitions = append(b.CSV.Spec.WebhookDefinitions, operatorsv1alpha1.WebhookDescription{
			Type: operatorsv1alpha1.ConversionWebhook, GenerateName: fmt.Sprintf("w%d", i), DeploymentName: "gardener",
		})
	}
	taken := allocated(func() {
		err := b.Validate()
		if err == nil || !strings.Contains(err.Error(), "supports install modes [AllNamespaces mode-0 mode-1 ") {
			t.Errorf("err = %.1000v", err)
		}
	})
	if limit := uint64(64 << 20); taken > limit {
		t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
	}
}
