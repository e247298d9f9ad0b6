package admission_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const (
	policyName         = "operator-controller-use-of-serviceaccounts"
	namespacesPolicy   = "operator-controller-forbidden-namespaces"
	catalogsPolicy     = "operator-controller-clustercatalogs"
	approvalsPolicy    = "operator-controller-approvals"
	bundlesPolicy      = "operator-controller-named-bundles"
	movesPolicy        = "operator-controller-moves"
	createByNamePolicy = "operator-controller-create-by-name"

	newNames     = "../../config/admission"
	anyChange    = "../../config/overlays/any-change"
	createByName = "../../config/overlays/create-by-name"
)

// probe is a request that a policy refuses. Nothing comes of it.
type probe struct {
	policy  string
	request func(context.Context) error
}

// probes has one for each policy of a kustomization.
func probes(t *testing.T, dir string) []probe {
	t.Helper()
	if dir == createByName {
		creator := as(t, "probe", creators)
		return []probe{{createByNamePolicy, func(ctx context.Context) error {
			return creator.Create(ctx, extension("probe", installer), client.DryRunAll)
		}}}
	}
	author := as(t, "probe", authors)
	// Another policy asks for this in the overlay, and would refuse first.
	mayImpersonate(t, user("approving-probe"), installer)
	asking, approving := existing(t, "approving-probe"), as(t, "approving-probe", authors)
	return []probe{
		{approvalsPolicy, func(ctx context.Context) error {
			target := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: asking.Name}}
			return approving.Patch(ctx, target, client.RawPatch(types.MergePatchType, []byte(approve)), client.DryRunAll)
		}},
		{movesPolicy, func(ctx context.Context) error {
			return approving.Create(ctx, moved("moving-probe"), client.DryRunAll)
		}},
		{bundlesPolicy, func(ctx context.Context) error {
			return approving.Create(ctx, naming("naming-probe"), client.DryRunAll)
		}},
		{policyName, func(ctx context.Context) error {
			return author.Create(ctx, extension("probe", installer), client.DryRunAll)
		}},
		{namespacesPolicy, func(ctx context.Context) error {
			return admin.Create(ctx, extensionIn("kube-system", "probe"), client.DryRunAll)
		}},
		{catalogsPolicy, func(ctx context.Context) error {
			return admin.Create(ctx, catalog("probe", 0, ocv1.MetadataNameLabel, "other"), client.DryRunAll)
		}},
	}
}

// switchOn applies a kustomization with policies for the length of a test, which ends
// when they refuse nothing any more.
func switchOn(t *testing.T, dir string) {
	t.Helper()
	all := probes(t, dir)
	for _, p := range all {
		if refused := p.request(t.Context()); refused != nil {
			t.Fatalf("without the policy %s: %v", p.policy, refused)
		}
	}
	if err := kubectl(t.Context(), "apply", "-k", dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		if err := kubectl(ctx, "delete", "-k", dir); err != nil {
			t.Error(err)
		}
		for _, p := range all {
			if err := poll(ctx, func(ctx context.Context) (bool, error) { return p.request(ctx) == nil, nil }); err != nil {
				t.Errorf("the policy %s is deleted and holds: %v", p.policy, err)
			}
		}
	})
	for _, p := range all {
		if err := poll(t.Context(), func(ctx context.Context) (bool, error) {
			err := p.request(ctx)
			return err != nil && strings.Contains(err.Error(), p.policy), nil
		}); err != nil {
			t.Fatalf("the policy %s is applied and does not hold: %v", p.policy, err)
		}
	}
}

// checkRefused asserts that the policy refuses, and that it names the right that
// is missing and who is missing it.
func checkRefused(t *testing.T, err error, name, account string) {
	t.Helper()
	if !apierrors.IsForbidden(err) {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := fmt.Sprintf("user %q cannot impersonate resource \"serviceaccounts\" in API group \"\" "+
		"with the name %q in the namespace %q", name, account, namespace)
	for _, part := range []string{want, policyName, "or have a Role in that namespace grant it"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %q", part, err)
		}
	}
}

func checkAllowed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// change patches an extension as somebody.
func change(t *testing.T, c client.Client, name, patch string) error {
	t.Helper()
	target := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	return c.Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(patch)))
}

const (
	relabel       = `{"metadata": {"labels": {"team": "a"}, "annotations": {"why": "b"}, "finalizers": ["example.com/a"]}}`
	releaseIt     = `{"metadata": {"finalizers": null}}`
	otherVersion  = `{"spec": {"source": {"catalog": {"version": "1.x", "selector": {"matchLabels": {"a": "b"}}}}}}`
	configuration = `{"spec": {"config": {"configType": "Inline", "inline": {"a": "b"}}}}`
	otherAccount  = `{"spec": {"serviceAccount": {"name": "cluster-admin"}}}`
	otherPlace    = `{"spec": {"namespace": "elsewhere"}}`
	systemPlace   = `{"spec": {"namespace": "kube-system"}}`
	progress      = `{"status": {"observedGeneration": 1}}`
)

// TestPolicy has its subtests run together, and nothing besides: there is one
// policy in a cluster.
func TestPolicy(t *testing.T) { //nolint:paralleltest,tparallel // see above
	existingIn(t, "kube-system")
	existingIn(t, systemNamespace)
	worn := existingCatalog(t, "worn", 0, ocv1.MetadataNameLabel, "other")
	corrected := existingCatalog(t, "corrected", 0, ocv1.MetadataNameLabel, "other")
	switchOn(t, newNames)
	t.Run("create", testCreate)
	t.Run("change", testChange)
	t.Run("namespaces", testNamespaces)
	t.Run("catalog, create", testCreateCatalog)
	t.Run("catalog, change", testChangeCatalog)
	t.Run("catalog, labelled before", func(t *testing.T) { testWorn(t, worn, corrected) }) //nolint:paralleltest // it is, where it can be
	t.Run("catalog, what the controller writes", testCatalogController)
	t.Run("the expressions fit the kind", testTypes)
}

func testCreate(t *testing.T) {
	t.Run("without the right", func(t *testing.T) {
		t.Parallel()
		mallory := as(t, "mallory", authors)
		checkRefused(t, mallory.Create(t.Context(), extension("refused", installer)), "mallory", installer)
	})
	t.Run("with the right to one", func(t *testing.T) {
		t.Parallel()
		mayImpersonate(t, user("narrow"), installer)
		narrow := as(t, "narrow", authors)
		made := extension("narrow", installer)
		checkAllowed(t, narrow.Create(t.Context(), made))
		t.Cleanup(func() { remove(t, made) })
		checkRefused(t, narrow.Create(t.Context(), extension("narrower", "another")), "narrow", "another")
	})
	t.Run("with the right in a namespace", func(t *testing.T) {
		t.Parallel()
		mayImpersonate(t, user("wide"))
		wide := as(t, "wide", authors)
		checkAllowed(t, wide.Create(t.Context(), extension("wide", "whatever"), client.DryRunAll))
		elsewhere := extensionIn("elsewhere", "wide")
		if err := wide.Create(t.Context(), elsewhere); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `in the namespace "elsewhere"`) {
			t.Errorf("got %v, want a refusal that names the namespace", err)
		}
	})
	t.Run("with the right of a group", func(t *testing.T) {
		t.Parallel()
		mayImpersonate(t, rbacv1.Subject{Kind: rbacv1.GroupKind, Name: "team"}, installer)
		member := as(t, "member", authors, "team")
		checkAllowed(t, member.Create(t.Context(), extension("member", installer), client.DryRunAll))
	})
	t.Run("by a ServiceAccount, as GitOps tools are", func(t *testing.T) {
		t.Parallel()
		const name = "system:serviceaccount:argocd:application-controller"
		tool := as(t, name, authors, "system:serviceaccounts")
		checkRefused(t, tool.Create(t.Context(), extension("tool", installer)), name, installer)
	})
	t.Run("again, after a deletion", func(t *testing.T) {
		t.Parallel()
		made, editor := existing(t, "again"), as(t, "recreator", authors)
		checkAllowed(t, editor.Delete(t.Context(), made))
		checkRefused(t, editor.Create(t.Context(), extension("again", installer)), "recreator", installer)
	})
	t.Run("by server-side apply", func(t *testing.T) {
		t.Parallel()
		wanted := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension",
			"metadata": map[string]any{"name": "applied"},
			"spec": map[string]any{
				"namespace":      namespace,
				"serviceAccount": map[string]any{"name": installer},
				"source":         map[string]any{"sourceType": "Catalog", "catalog": map[string]any{"packageName": "p"}},
			},
		}}
		err := as(t, "applier", authors).Apply(t.Context(), client.ApplyConfigurationFromUnstructured(wanted), client.FieldOwner("test"))
		checkRefused(t, err, "applier", installer)
	})
	t.Run("nothing is stored of what is refused", func(t *testing.T) {
		t.Parallel()
		mallory := as(t, "quiet", authors)
		checkRefused(t, mallory.Create(t.Context(), extension("stored", installer)), "quiet", installer)
		err := admin.Get(t.Context(), client.ObjectKey{Name: "stored"}, &ocv1.ClusterExtension{})
		if !apierrors.IsNotFound(err) {
			t.Errorf("got %v, want nothing", err)
		}
	})
}

func testChange(t *testing.T) {
	for name, patch := range map[string]string{
		"metadata": relabel, "version and catalogs": otherVersion, "configuration": configuration,
	} {
		t.Run(name+", without the right", func(t *testing.T) {
			t.Parallel()
			made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
			checkAllowed(t, change(t, editor, made.Name, patch))
			checkAllowed(t, change(t, editor, made.Name, releaseIt))
		})
	}
	for name, patch := range map[string]string{"ServiceAccount": otherAccount, "namespace": otherPlace} {
		t.Run(name+" is immutable, whoever asks", func(t *testing.T) {
			t.Parallel()
			made := existing(t, nameFrom(t))
			for _, who := range []client.Client{admin, as(t, "editor", authors)} {
				if err := change(t, who, made.Name, patch); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "is immutable") {
					t.Errorf("got %v, want it to be immutable", err)
				}
			}
		})
	}
	t.Run("what the controller writes", testController)
	t.Run("approvals", testApprovals)
	t.Run("named bundles", testNamedBundles)
	t.Run("moves", testMoves)
}

// testController makes the writes of the controller with its own role.
func testController(t *testing.T) {
	t.Parallel()
	made := existing(t, nameFrom(t))
	controller := as(t, controllerUser, "system:serviceaccounts")
	checkAllowed(t, change(t, controller, made.Name, relabel))
	checkAllowed(t, change(t, controller, made.Name, releaseIt))
	target := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: made.Name}}
	checkAllowed(t, controller.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(progress))))
	if target.Status.ObservedGeneration != 1 {
		t.Error("status was not written")
	}
}

// testTypes waits for the verdict of the cluster on the expressions.
func testTypes(t *testing.T) {
	t.Parallel()
	list := &admissionregistrationv1.ValidatingAdmissionPolicyList{}
	if err := poll(t.Context(), func(ctx context.Context) (bool, error) {
		err := admin.List(ctx, list)
		unchecked := slices.ContainsFunc(list.Items, func(p admissionregistrationv1.ValidatingAdmissionPolicy) bool {
			return p.Status.TypeChecking == nil
		})
		return !unchecked && len(list.Items) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	for _, policy := range list.Items {
		for _, warning := range policy.Status.TypeChecking.ExpressionWarnings {
			t.Errorf("%s: %s: %s", policy.Name, warning.FieldRef, warning.Warning)
		}
	}
}

// nameFrom makes a name for an extension of the name of a test.
func nameFrom(t *testing.T) string {
	t.Helper()
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return '-'
	}, strings.ToLower(t.Name())), "-")
}

// TestPolicyForAnyChange: with the stricter variant, only who may impersonate the
// ServiceAccount gives it something else to do.
func TestPolicyForAnyChange(t *testing.T) { //nolint:tparallel // there is one policy in a cluster
	existingIn(t, "kube-system")
	existingIn(t, systemNamespace)
	switchOn(t, anyChange)
	t.Run("create", testCreate)
	t.Run("namespaces", testNamespaces)
	t.Run("metadata, without the right", func(t *testing.T) {
		t.Parallel()
		made, editor := existing(t, nameFrom(t)), as(t, "editor", authors)
		checkAllowed(t, change(t, editor, made.Name, relabel))
		checkAllowed(t, change(t, editor, made.Name, releaseIt))
	})
	for name, patch := range map[string]string{"version and catalogs": otherVersion, "configuration": configuration} {
		t.Run(name+", without the right", func(t *testing.T) {
			t.Parallel()
			made := existing(t, nameFrom(t))
			checkRefused(t, change(t, as(t, "editor", authors), made.Name, patch), "editor", installer)
		})
		t.Run(name+", with the right", func(t *testing.T) {
			t.Parallel()
			who := "holder-" + strings.Fields(name)[0]
			mayImpersonate(t, user(who), installer)
			made := existing(t, nameFrom(t))
			checkAllowed(t, change(t, as(t, who, authors), made.Name, patch))
		})
	}
	t.Run("what the controller writes", testController)
	t.Run("the expressions fit the kind", testTypes)
}

// TestPolicyDoesNotRelyOnImmutability takes the rules from the definition that
// make namespace and ServiceAccount immutable.
func TestPolicyDoesNotRelyOnImmutability(t *testing.T) { //nolint:paralleltest // it changes the definition
	switchOn(t, newNames)
	made := existing(t, "mutable")
	makeMutable(t, made.Name)
	editor := as(t, "editor", authors)
	checkRefused(t, change(t, editor, made.Name, otherAccount), "editor", "cluster-admin")
	err := change(t, editor, made.Name, otherPlace)
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `in the namespace "elsewhere"`) {
		t.Errorf("got %v, want a refusal that names the namespace", err)
	}
	checkAllowed(t, change(t, admin, made.Name, otherAccount))
	checkForbidden(t, change(t, admin, made.Name, systemPlace), "kube-system", namespacesPolicy)

	// An extension that names nobody yet is harmless until it does.
	nobody := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "nobody"}}}
	nobody.SetGroupVersionKind(ocv1.GroupVersion.WithKind("ClusterExtension"))
	create(t, nobody)
	checkAllowed(t, change(t, editor, "nobody", relabel))
	checkAllowed(t, change(t, editor, "nobody", releaseIt))
	spec := `{"spec": {"namespace": "` + namespace + `", "serviceAccount": {"name": "` + installer + `"},
		"source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}}}`
	checkRefused(t, change(t, editor, "nobody", spec), "editor", installer)
}

func makeMutable(t *testing.T, existing string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	checkAllowed(t, admin.Get(t.Context(), client.ObjectKey{Name: extensionsCRD}, crd))
	original := crd.DeepCopy()
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	account := spec.Properties["serviceAccount"]
	for name, in := range map[string]map[string]apiextensionsv1.JSONSchemaProps{
		"namespace": spec.Properties, "name": account.Properties,
	} {
		field := in[name]
		field.XValidations = nil
		in[name] = field
	}
	checkAllowed(t, admin.Update(t.Context(), crd))
	t.Cleanup(func() {
		original.ResourceVersion = crd.ResourceVersion
		if err := admin.Update(context.Background(), original); err != nil {
			t.Error(err)
		}
	})
	if err := poll(t.Context(), func(ctx context.Context) (bool, error) {
		target := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: existing}}
		patch := client.RawPatch(types.MergePatchType, []byte(otherAccount))
		return !apierrors.IsInvalid(admin.Patch(ctx, target, patch, client.DryRunAll)), nil
	}); err != nil {
		t.Fatal(err)
	}
}
