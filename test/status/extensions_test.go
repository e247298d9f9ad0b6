package status_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/status"
)

// situation is what an object goes through.
type situation struct {
	// name is also that of the object, of its namespace and package, and of the
	// golden.
	name string

	// stage is what there is before the object.
	stage act
	steps []step
}

type step struct {
	do act

	// person says that from now on somebody has to act.
	person bool

	// then are the moments that follow, in their order.
	then []moment
}

func run(t *testing.T, kind string, situations []situation) {
	t.Helper()
	for _, situation := range situations {
		t.Run(situation.name, func(t *testing.T) {
			t.Parallel()
			s := newScene(situation.name, kind)
			situation.stage(t, s)
			for _, step := range situation.steps {
				if step.person {
					s.person()
				}
				step.do(t, s)
				for _, moment := range step.then {
					s.await(t, moment)
				}
				if step.person {
					s.nobody(t)
				}
			}
			s.finish(t)
		})
	}
}

// TestExtensions holds every status of every extension against the world.
func TestExtensions(t *testing.T) {
	t.Parallel()
	run(t, extensionKind, slices.Concat(installs(), upgrades(), workloads(), mistakes(), conflicts(), endings(), hooks()))
}

// installed is the first step of those situations that begin with an extension that
// is well.
func installed(changes ...func(*ocv1.ClusterExtension)) step {
	return step{
		do:   extend("1.0.0", append([]func(*ocv1.ClusterExtension){version("1.0.0")}, changes...)...),
		then: []moment{ready("1.0.0")},
	}
}

func installs() []situation {
	released := make(chan struct{})
	return []situation{
		{
			name:  "install",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0"), then: []moment{created(), atWork("applying"), ready("1.0.0")}}},
		},
		{
			name:  "registry-hangs",
			stage: all(offer(nil, "1.0.0"), withInstaller, stall("/registry-hangs/", released)),
			steps: []step{
				{do: extend("1.0.0"), then: []moment{created(), atWork("pulling")}},
				{do: func(*testing.T, *scene) { close(released) }, then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "broken-neighbour",
			stage: all(offer(nil, "1.0.0"), withInstaller, brokenNeighbour),
			steps: []step{{do: extend("1.0.0"), then: []moment{{name: "1.0.0 is ready, and the neighbour is not told of", is: func(c status.Capture) bool {
				return c.WaitReturns("Ready") && !strings.Contains(c.Condition("Ready").Message, "neighbour-2")
			}}}}},
		},
	}
}

// stall keeps whoever asks the registry for a path waiting.
func stall(path string, released <-chan struct{}) act {
	return func(*testing.T, *scene) { theSuite.Registry.Use(testkit.Stall(path, released)) }
}

// brokenNeighbour is another catalog for the scene that cannot be read.
func brokenNeighbour(t *testing.T, s *scene) {
	t.Helper()
	name := s.name + "-2"
	pushCatalog(t, name, "v1", brokenCatalog())
	createCatalog(t, s.name, name)
}

func upgrades() []situation {
	more := edit{"verbs: [get, list, watch]", "verbs: [get, list, watch, delete]"}
	selector := edit{"app: upgrade-immutable}", "app: upgrade-immutable, part: manager}"}
	return []situation{
		{
			name:  "upgrade",
			stage: all(offer(nil, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: change("1.1.0", version("1.1.0")), then: []moment{edited(), observed("upgrading"), ready("1.1.0")}},
			},
		},
		{
			name:  "upgrade-approval",
			stage: all(offer(more, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(approved("")),
				{do: change("1.0.0", version("1.x")), then: []moment{becomes("Ready", "True", "ApprovalPending")}},
				{do: change("1.1.0", approved("1.1.0")), then: []moment{ready("1.1.0")}},
			},
		},
		{
			name:  "upgrade-manual",
			stage: all(offer(nil, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(manual),
				{do: change("1.0.0", version("1.x")), then: []moment{becomes("Ready", "True", "ApprovalPending")}},
				{do: change("1.1.0", agreed("1.1.0")), then: []moment{ready("1.1.0")}},
			},
		},
		{
			name:  "upgrade-suspended",
			stage: all(offer(nil, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: change("1.0.0", version("1.1.0"), suspended(true)), then: []moment{becomes("Ready", "True", "Suspended")}},
				{do: change("1.1.0", suspended(false)), then: []moment{ready("1.1.0")}},
			},
		},
		{
			name:  "upgrade-immutable",
			stage: all(offer(selector, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: change("1.1.0", version("1.1.0")), person: true, then: []moment{failed()}},
				{do: change("1.1.0", replacing("Deployment")), then: []moment{ready("1.1.0")}},
			},
		},
		{
			name:  "upgrade-unsafe-crd",
			stage: all(offer(edit{"size: {type: integer}", "size: {type: integer, maximum: 5}"}, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: all(storeThing, change("1.1.0", version("1.1.0"))), person: true, then: []moment{failed()}},
			},
		},
		{
			name:  "upgrade-no-version",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{
				installed(),
				{do: change("3.0.0", version("3.x")), person: true, then: []moment{failed()}},
				{do: change("1.0.0", version("1.x")), then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "certificates-gone",
			stage: all(withCertManager, offerWebhooks("1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: removeCertManager, person: true, then: []moment{failed()}},
				{do: change("1.1.0", version("1.1.0")), then: []moment{ready("1.1.0")}},
			},
		},
	}
}

// storeThing stores a custom resource.
func storeThing(t *testing.T, s *scene) {
	t.Helper()
	eventually(t, "storing an object", func(ctx context.Context) error {
		return theSuite.Admin.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": s.name + ".test/v1", "kind": "Thing",
			"metadata": map[string]any{"namespace": s.name, "name": "stored"},
			"spec":     map[string]any{"size": int64(7)},
		}})
	})
}

func approved(version string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove, ApprovedVersion: version},
		}}
	}
}

func manual(extension *ocv1.ClusterExtension) {
	extension.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual
}

func agreed(version string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.ApprovedVersion = version }
}

func suspended(is bool) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = is }
}

func replacing(kind ocv1.ReplaceableKind) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{ReplaceImmutable: []ocv1.ReplaceableKind{kind}}
	}
}

func certManager() []*apiextensionsv1.CustomResourceDefinition {
	return []*apiextensionsv1.CustomResourceDefinition{
		definition("cert-manager.io", "certificates", "Certificate"),
		definition("cert-manager.io", "issuers", "Issuer"),
	}
}

func withCertManager(t *testing.T, _ *scene) {
	t.Helper()
	for _, crd := range certManager() {
		create(t, crd)
	}
	for _, crd := range certManager() {
		if err := theSuite.Kubectl(t.Context(), "wait", "--for=condition=Established", "--timeout=60s", "crd/"+crd.Name); err != nil {
			t.Fatal(err)
		}
	}
}

func removeCertManager(t *testing.T, _ *scene) {
	t.Helper()
	for _, crd := range certManager() {
		if err := theSuite.Admin.Delete(t.Context(), crd); err != nil {
			t.Fatal(err)
		}
		gone(t, crd)
	}
}

func offerWebhooks(versions ...string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		var operators []testkit.Operator
		for _, version := range versions {
			hooked := operator(s.name, version)
			pushBundle(t, hooked, hooked.BundleWithWebhooks())
			operators = append(operators, hooked)
		}
		serve(t, s.name, s.name, testkit.Catalog(registryHost, operators...))
	}
}

func workloads() []situation {
	unavailable := becomes("Ready", "False", "Unavailable")
	rollingOut := atWork("applying")
	nowhere := edit{
		"replicas: 1", "replicas: 1\n          progressDeadlineSeconds: 5",
		"containers:", "nodeSelector: {disk: none}\n              containers:",
	}
	return []situation{
		{
			name:  "rollout-never-available",
			stage: all(offer(nowhere, "1.0.0"), withInstaller),
			steps: []step{{
				do: extend("1.0.0"), person: true,
				then: []moment{rollingOut, failed()},
			}},
		},
		{
			name:  "upgrade-never-available",
			stage: all(offer(nowhere, "1.0.0", "1.1.0"), withInstaller),
			steps: []step{
				installed(),
				{do: change("1.1.0", version("1.1.0")), person: true, then: []moment{rollingOut, failed()}},
			},
		},
		{
			name:  "pod-crashes",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{
				installed(),
				{do: crash, person: true, then: []moment{unavailable, failed()}},
				{do: heal, then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "deployment-gone",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{
				installed(),
				{
					do: all(withoutRights, remove(deployment)), person: true,
					then: []moment{{name: "the Deployment is gone", is: func(c status.Capture) bool { return !c.WaitReturns("Ready") }}, failed()},
				},
				{do: withRights, then: []moment{ready("1.0.0")}},
			},
		},
	}
}

// mistakes are what a person must mend before anything can be installed.
func mistakes() []situation {
	return []situation{
		{
			name:  "no-rights",
			stage: all(offer(nil, "1.0.0"), withNamespace, withAccount),
			steps: []step{
				{do: extend("1.0.0"), person: true, then: []moment{retrying(), failed()}},
				{do: withRights, then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "no-serviceaccount",
			stage: all(offer(nil, "1.0.0"), withNamespace, withRights),
			steps: []step{
				{do: extend("1.0.0"), person: true, then: []moment{retryingWithContent(), failed()}},
				{do: withAccount, then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "no-namespace",
			stage: all(offer(nil, "1.0.0"), withRights),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "no-version",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{{do: extend("3.0.0", version("3.0.0")), person: true, then: []moment{retrying(), failed()}}},
		},
		{
			name:  "no-channel",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0", func(extension *ocv1.ClusterExtension) {
				extension.Spec.Source.Catalog.Channels = []string{"nightly"}
			}), person: true, then: []moment{failed()}}},
		},
		{
			name:  "no-package",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0", func(extension *ocv1.ClusterExtension) {
				extension.Spec.Source.Catalog.PackageName = "unheard-of"
			}), person: true, then: []moment{failed()}}},
		},
		{
			name:  "unmet-requirement",
			stage: all(offerRequiring("1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "dead-end",
			stage: all(offerRequiring("1.0.0", "2.0.0"), withInstaller),
			steps: []step{{do: extend("2.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "v1beta1-crd",
			stage: all(offer(edit{"apiextensions.k8s.io/v1\n", "apiextensions.k8s.io/v1beta1\n"}, "1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "invalid-configuration",
			stage: all(offer(nil, "1.0.0"), withInstaller),
			steps: []step{{do: extend("1.0.0", func(extension *ocv1.ClusterExtension) {
				extension.Spec.Config = &ocv1.ClusterExtensionConfig{
					ConfigType: ocv1.ClusterExtensionConfigTypeInline,
					Inline:     &apiextensionsv1.JSON{Raw: []byte(`{"nonsense": 1}`)},
				}
			}), person: true, then: []moment{failed()}}},
		},
	}
}

// conflicts are about what is there already.
func conflicts() []situation {
	return []situation{
		{
			name: "foreign-object",
			stage: all(offer(nil, "1.0.0"), withInstaller, func(t *testing.T, s *scene) {
				t.Helper()
				create(t, settings(s))
			}),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name: "foreign-crd",
			stage: all(offer(nil, "1.0.0"), withInstaller, func(t *testing.T, s *scene) {
				t.Helper()
				create(t, definition(s.name+".test", "things", "Thing"))
			}),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "two-of-one-package",
			stage: all(offer(nil, "1.0.0"), withInstaller, twin),
			steps: []step{{do: extend("1.0.0"), person: true, then: []moment{failed()}}},
		},
	}
}

// twin installs another extension of the scene's package, which is well.
func twin(t *testing.T, s *scene) {
	t.Helper()
	first := newScene(s.name+"-1", extensionKind)
	first.wants[1] = "1.0.0"
	create(t, environment.Extension(first.name, s.name, installer, fromCatalog(s.name), func(extension *ocv1.ClusterExtension) {
		extension.Spec.Namespace = s.name
	}))
	first.await(t, ready("1.0.0"))
	first.tell(t)
}

func endings() []situation {
	const finalizer = "status.test/hold"
	hold := func(t *testing.T, s *scene) {
		t.Helper()
		patchFinalizers(t, settings(s), fmt.Sprintf("[%q]", finalizer))
	}
	release := func(t *testing.T, s *scene) {
		t.Helper()
		patchFinalizers(t, settings(s), "null")
		gone(t, extension(s))
	}
	return []situation{{
		name:  "deletion-waits",
		stage: all(offer(nil, "1.0.0"), withInstaller),
		steps: []step{
			installed(),
			{
				do: all(hold, remove(extension, client.PropagationPolicy(metav1.DeletePropagationForeground))),
				then: []moment{
					{name: "deleted", is: status.Capture.IsDeleted},
					// How far the garbage collector has come at the first look is its business.
					{name: "what waits is told", is: func(c status.Capture) bool {
						ready := c.Condition("Ready")
						return c.IsDeleted() && ready.Status != "True" &&
							strings.Contains(ready.Message, "1 left: ") && strings.Contains(ready.Message, finalizer)
					}},
				},
			},
			{do: release},
		},
	}}
}

func patchFinalizers(t *testing.T, object client.Object, finalizers string) {
	t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"finalizers": %s}}`, finalizers)
	if err := theSuite.Admin.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
