package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestRequirements has an extension wait for what its next version requires, go
// on when that appears, and stay when it goes.
func TestRequirements(t *testing.T) {
	t.Parallel()
	for name, requirement := range map[string]string{
		"package": `{type: olm.package.required, value: {packageName: needed-package, versionRange: ">=1.0.0 <2.0.0"}}`,
		"api":     `{type: olm.gvk.required, value: {group: needed-api.test, version: v1, kind: Thing}}`,
		"rule": `{type: olm.constraint, value: {failureMessage: "needs one of that color", cel: {rule: ` +
			`'properties.exists(p, p.type == "color" && p.value == "needed-rule")'}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRequirement(t, "needy-"+name, "needed-"+name, requirement)
		})
	}
}

func testRequirement(t *testing.T, needy, needed, requirement string) {
	t.Helper()
	waiting := operators(needy, "1.0.0", "1.1.0")
	waiting[1].Properties = []string{requirement}
	publish(t, waiting...)
	awaited := operators(needed, "1.0.0")
	awaited[0].Properties = []string{
		`{type: color, value: ` + needed + `}`,
		fmt.Sprintf(`{type: olm.gvk, value: {group: %s.test, version: v1, kind: Thing}}`, needed),
	}
	publish(t, awaited...)

	extend(t, needy)
	installed(t, needy, "1.0.0")
	conditionContains(t, needy, ocv1.TypeReady, fmt.Sprintf(`newer but left out: %q`, needy+".v1.1.0"))

	explained, err := theSuite.CommandOutput(t.Context(), "explain", "clusterextension/"+needy)
	if err != nil {
		t.Fatal(err)
	}
	if want := needy + ".v1.1.0"; !strings.Contains(explained, want) || !strings.Contains(explained, "RequirementNotMet") {
		t.Errorf("explain says\n%s\nwant %s left out for its requirement", explained, want)
	}

	makeNamespace(t, needed)
	makeAccount(t, needed)
	grant(t, needed, "cluster-admin")
	extension := environment.Extension(needed, needed, installer, fromCatalog(needed))
	if err := theSuite.Admin.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, extension) })
	installed(t, needed, "1.0.0")
	installed(t, needy, "1.1.0")
	condition(t, needy, ocv1.TypeReady, fmt.Sprintf(`True Succeeded: %q version "1.1.0" is installed, from catalog %q`, needy+".v1.1.0", needy))

	remove(t, extension)
	told(t, needed, corev1.EventTypeWarning, "Required", fmt.Sprintf("extension %q", needy))
	if needed != "needed-api" {
		// The API goes when its definition is gone, for which the API server at
		// times takes minutes.
		conditionContains(t, needy, ocv1.TypeReady, fmt.Sprintf(`True Succeeded: %q version "1.1.0" is installed, from catalog %q; %q `, needy+".v1.1.0", needy, needy+".v1.1.0"))
	}
	installed(t, needy, "1.1.0")
}

// told waits for an event about an extension.
func told(t *testing.T, extension, kind, reason, note string) {
	t.Helper()
	eventually(t, "event about "+extension, func(ctx context.Context) error {
		var events corev1.EventList
		if err := theSuite.Admin.List(ctx, &events, client.InNamespace("default")); err != nil {
			return err
		}
		var others []string
		matches := slices.ContainsFunc(events.Items, func(event corev1.Event) bool {
			if event.InvolvedObject.Kind != "ClusterExtension" || event.InvolvedObject.Name != extension {
				return false
			}
			others = append(others, fmt.Sprintf("%s %s: %s", event.Type, event.Reason, event.Message))
			return event.Type == kind && event.Reason == reason && strings.Contains(event.Message, note)
		})
		if !matches {
			return fmt.Errorf("no %s %s with %q, only %q", kind, reason, note, others)
		}
		return nil
	})
}

// TestFilesOfABundleRequire has a bundle whose own files state what it needs, and a catalog that
// does not say so: it waits for a package and for an API, and goes on when both are there.
func TestFilesOfABundleRequire(t *testing.T) {
	t.Parallel()
	const name, pkg, api = "stated-by-files", "stated-package", "stated-api"
	wanted := operators(name, "1.0.0")[0]
	files := wanted.Bundle()
	files["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte(`dependencies:
- {type: olm.gvk, value: {group: ` + api + `.test, version: v1, kind: Thing}}
- {type: olm.package, value: {packageName: ` + pkg + `, version: ">=1.0.0"}}
`)}
	pushBundle(t, wanted, files)
	publishCatalog(t, name, testkit.Catalog(registryHost, wanted))
	extend(t, name)
	for _, want := range []string{`cannot be installed: the bundle requires `, api + ".test/v1", pkg, "install what is missing"} {
		conditionContains(t, name, ocv1.TypeReady, want)
	}
	conditionContains(t, name, ocv1.TypeProgressing, "True Retrying")

	for _, needed := range []string{pkg, api} {
		err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "settings"}, &corev1.ConfigMap{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("err = %v, want that nothing was written without %s", err, needed)
		}
		publish(t, operators(needed, "1.0.0")...)
		extend(t, needed)
		installed(t, needed, "1.0.0")
	}
	installed(t, name, "1.0.0")
}
