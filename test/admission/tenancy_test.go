package admission_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// extensionIn is one that acts as a ServiceAccount of another namespace.
func extensionIn(namespace, name string) *ocv1.ClusterExtension {
	made := extension(name, installer)
	made.Spec.Namespace = namespace
	return made
}

// existingIn is an extension that was there before any policy, named after its
// namespace.
func existingIn(t *testing.T, namespace string) {
	t.Helper()
	create(t, extensionIn(namespace, "in-"+namespace))
}

// catalog has a priority and labels, which are given as keys and values.
func catalog(name string, priority int32, labels ...string) *ocv1.ClusterCatalog {
	made := &ocv1.ClusterCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: ocv1.ClusterCatalogSpec{
			Priority: priority,
			Source:   ocv1.CatalogSource{Type: ocv1.SourceTypeImage, Image: &ocv1.ImageSource{Ref: "registry.example/catalog:latest"}},
		},
	}
	for i := 0; i < len(labels); i += 2 {
		metav1.SetMetaDataLabel(&made.ObjectMeta, labels[i], labels[i+1])
	}
	return made
}

func existingCatalog(t *testing.T, name string, priority int32, labels ...string) *ocv1.ClusterCatalog {
	t.Helper()
	made := catalog(name, priority, labels...)
	create(t, made)
	return made
}

// changeCatalog patches a catalog as somebody.
func changeCatalog(t *testing.T, c client.Client, name, patch string) error {
	t.Helper()
	return c.Patch(t.Context(), catalog(name, 0), client.RawPatch(types.MergePatchType, []byte(patch)))
}

// labelled is a patch that sets a label, or removes it if the value is null.
func labelled(label, value string) string {
	return fmt.Sprintf(`{"metadata": {"labels": {%q: %s}}}`, label, value)
}

// checkForbidden asserts that one of the policies refuses a namespace, and names it.
func checkForbidden(t *testing.T, err error, namespace string, policies ...string) {
	t.Helper()
	want := fmt.Sprintf("ServiceAccounts of the namespace %q are not for ClusterExtensions", namespace)
	named := slices.ContainsFunc(policies, func(policy string) bool { return err != nil && strings.Contains(err.Error(), policy) })
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !named {
		t.Errorf("got %v, want %q", err, want)
	}
}

// checkDemoted asserts that the policy refuses, names who lacks the right to promote
// which catalog, and says what for.
func checkDemoted(t *testing.T, err error, user, name, what string) {
	t.Helper()
	want := fmt.Sprintf("user %q cannot promote resource \"clustercatalogs\" in API group \"olm.operatorframework.io\" with the name %q, which it takes to %s", user, name, what)
	if !strings.HasSuffix(fmt.Sprint(err), "or have a ClusterRole grant it") {
		t.Errorf("%v does not say what to do", err)
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), catalogsPolicy) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// checkDisguised asserts that the policy refuses a name label, and says what it is.
func checkDisguised(t *testing.T, err error, name, label string) {
	t.Helper()
	want := fmt.Sprintf("the label %s says %q, and this ClusterCatalog is %q", ocv1.MetadataNameLabel, label, name)
	if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), catalogsPolicy) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// testNamespaces: whoever may impersonate all that there is does not get around it,
// and what was there before goes on.
func testNamespaces(t *testing.T) {
	for _, forbidden := range []string{"kube-system", systemNamespace} {
		t.Run(forbidden, func(t *testing.T) {
			t.Parallel()
			checkForbidden(t, admin.Create(t.Context(), extensionIn(forbidden, "anew")), forbidden, namespacesPolicy)
			// Who may not impersonate either is refused by both, and is not sent for the right.
			author := as(t, "author", authors)
			checkForbidden(t, author.Create(t.Context(), extensionIn(forbidden, "anew")), forbidden, namespacesPolicy, policyName)
			before := "in-" + forbidden
			checkAllowed(t, change(t, admin, before, relabel))
			checkAllowed(t, change(t, admin, before, otherVersion))
			checkAllowed(t, change(t, admin, before, releaseIt))
			checkAllowed(t, admin.Delete(t.Context(), extensionIn(forbidden, before)))
			checkForbidden(t, admin.Create(t.Context(), extensionIn(forbidden, before)), forbidden, namespacesPolicy)
		})
	}
	t.Run("any other", func(t *testing.T) {
		t.Parallel()
		for _, namespace := range []string{namespace, "default", "kube-system-not"} {
			checkAllowed(t, admin.Create(t.Context(), extensionIn(namespace, "anywhere"), client.DryRunAll))
		}
	})
}

func testCreateCatalog(t *testing.T) {
	publisher := as(t, "publisher", publishers)
	for name, labels := range map[string][]string{"no label": nil, "its name as a label": {ocv1.MetadataNameLabel, "made"}} {
		for _, priority := range []int32{0, -10} {
			t.Run(fmt.Sprintf("%s, priority %d", name, priority), func(t *testing.T) {
				t.Parallel()
				checkAllowed(t, publisher.Create(t.Context(), catalog("made", priority, labels...), client.DryRunAll))
			})
		}
	}
	t.Run("with a name that is generated", func(t *testing.T) {
		t.Parallel()
		made := catalog("", 0)
		made.GenerateName = "made-"
		checkAllowed(t, publisher.Create(t.Context(), made, client.DryRunAll))
	})
	t.Run("with the name of another as a label, whoever asks", func(t *testing.T) {
		t.Parallel()
		for _, who := range []client.Client{admin, publisher} {
			checkDisguised(t, who.Create(t.Context(), catalog("evil", 0, ocv1.MetadataNameLabel, "good")), "evil", "good")
		}
	})
	t.Run("with a priority", func(t *testing.T) {
		t.Parallel()
		checkDemoted(t, publisher.Create(t.Context(), catalog("high", 1)), "publisher", "high", "raise spec.priority from 0 to 1")
	})
	t.Run("with a label", func(t *testing.T) {
		t.Parallel()
		checkDemoted(t, publisher.Create(t.Context(), catalog("tagged", 0, "a", "b")), "publisher", "tagged", "change labels")
	})
	t.Run("with the right to promote one", func(t *testing.T) {
		t.Parallel()
		may(t, "promoter", catalogs, "chosen", "promote")
		promoter := as(t, "promoter", publishers)
		checkAllowed(t, promoter.Create(t.Context(), catalog("chosen", 1000, "a", "b"), client.DryRunAll))
		checkDemoted(t, promoter.Create(t.Context(), catalog("other", 1000)), "promoter", "other", "raise spec.priority from 0 to 1000")
		checkDisguised(t, promoter.Create(t.Context(), catalog("chosen", 0, ocv1.MetadataNameLabel, "other")), "chosen", "other")
	})
}

func testChangeCatalog(t *testing.T) {
	publisher := as(t, "publisher", publishers)
	const lowered, raised = `{"spec": {"priority": 4}}`, `{"spec": {"priority": 6}}`
	for name, patch := range map[string]string{
		"lower priority":       lowered,
		"no priority":          `{"spec": {"priority": null}}`,
		"another image":        `{"spec": {"source": {"image": {"ref": "registry.example/catalog:v2"}}}}`,
		"out of use":           `{"spec": {"availabilityMode": "Unavailable"}}`,
		"annotation":           `{"metadata": {"annotations": {"a": "b"}}}`,
		"its name as a label":  labelled(ocv1.MetadataNameLabel, `"changed"`),
		"no label of its name": labelled(ocv1.MetadataNameLabel, "null"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := existingCatalog(t, nameFrom(t), 5, "a", "b")
			patch := strings.ReplaceAll(patch, "changed", made.Name)
			checkAllowed(t, changeCatalog(t, publisher, made.Name, patch))
		})
	}
	for name, patch := range map[string]string{
		"another label": labelled("c", `"d"`), "another value": labelled("a", `"c"`), "a label less": labelled("a", "null"), "higher priority": raised,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := existingCatalog(t, nameFrom(t), 5, "a", "b")
			what := "change labels"
			if patch == raised {
				what = "raise spec.priority from 5 to 6"
			}
			checkDemoted(t, changeCatalog(t, publisher, made.Name, patch), "publisher", made.Name, what)
			who := "promoter-" + strings.Fields(name)[1] + "-" + strings.Fields(name)[0]
			may(t, who, catalogs, made.Name, "promote")
			checkAllowed(t, changeCatalog(t, as(t, who, publishers), made.Name, patch))
		})
	}
	t.Run("the name of another as a label", func(t *testing.T) {
		t.Parallel()
		made := existingCatalog(t, nameFrom(t), 0, ocv1.MetadataNameLabel, nameFrom(t))
		for _, who := range []client.Client{admin, publisher} {
			checkDisguised(t, changeCatalog(t, who, made.Name, labelled(ocv1.MetadataNameLabel, `"good"`)), made.Name, "good")
		}
	})
	t.Run("from below the default", func(t *testing.T) {
		t.Parallel()
		made := existingCatalog(t, nameFrom(t), -10)
		checkDemoted(t, changeCatalog(t, publisher, made.Name, `{"spec": {"priority": null}}`), "publisher", made.Name, "raise spec.priority from -10 to 0")
	})
}

// testWorn: a catalog with a wrong name label from before the policy can be edited and
// deleted, and another be corrected.
func testWorn(t *testing.T, worn, corrected *ocv1.ClusterCatalog) {
	t.Parallel()
	publisher := as(t, "publisher", publishers)
	checkAllowed(t, changeCatalog(t, publisher, worn.Name, `{"metadata": {"finalizers": ["example.com/a"]}}`))
	checkAllowed(t, changeCatalog(t, publisher, worn.Name, `{"spec": {"availabilityMode": "Unavailable"}}`))
	checkAllowed(t, publisher.Delete(t.Context(), worn))
	checkAllowed(t, changeCatalog(t, publisher, worn.Name, releaseIt))
	controller := as(t, controllerUser, "system:serviceaccounts")
	checkAllowed(t, changeCatalog(t, controller, corrected.Name, labelled(ocv1.MetadataNameLabel, strconv.Quote(corrected.Name))))
}

// testCatalogController makes the writes of the controller with its own role.
func testCatalogController(t *testing.T) {
	t.Parallel()
	made := existingCatalog(t, nameFrom(t), 5, "a", "b")
	controller := as(t, controllerUser, "system:serviceaccounts")
	patch := fmt.Sprintf(`{"metadata": {"labels": {%q: %q}, "finalizers": ["example.com/a"]}}`, ocv1.MetadataNameLabel, made.Name)
	checkAllowed(t, changeCatalog(t, controller, made.Name, patch))
	checkAllowed(t, changeCatalog(t, controller, made.Name, releaseIt))
	target := catalog(made.Name, 0)
	checkAllowed(t, controller.Status().Patch(t.Context(), target, client.RawPatch(types.MergePatchType, []byte(progress))))
}

// TestCreateByName: who may create any name makes no more objects than there are names
// that they may edit.
func TestCreateByName(t *testing.T) { //nolint:tparallel // a policy is for the whole cluster
	switchOn(t, createByName)
	const mine = "team-a-one"
	for verb, who := range map[string]string{"update": "updater", "patch": "patcher"} {
		may(t, who+"-of-extensions", extensions, mine, verb)
		may(t, who+"-of-catalogs", catalogs, mine, verb)
	}
	for _, how := range []string{"updater", "patcher"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			ofExtensions, ofCatalogs := as(t, how+"-of-extensions", creators), as(t, how+"-of-catalogs", creators)
			checkAllowed(t, ofExtensions.Create(t.Context(), extension(mine, installer), client.DryRunAll))
			checkAllowed(t, ofCatalogs.Create(t.Context(), catalog(mine, 0), client.DryRunAll))
			checkNameless(t, ofExtensions.Create(t.Context(), extension("team-a-two", installer)), how+"-of-extensions", "clusterextensions", "team-a-two")
			checkNameless(t, ofCatalogs.Create(t.Context(), catalog("team-a-two", 0)), how+"-of-catalogs", "clustercatalogs", "team-a-two")
			// The right to the one is none to the other.
			checkNameless(t, ofExtensions.Create(t.Context(), catalog(mine, 0)), how+"-of-extensions", "clustercatalogs", mine)
		})
	}
	t.Run("with a name that is generated", func(t *testing.T) {
		t.Parallel()
		made := extension("", installer)
		made.GenerateName = "team-a-"
		err := as(t, "updater-of-extensions", creators).Create(t.Context(), made)
		checkNameless(t, err, "updater-of-extensions", "clusterextensions", "team-a-")
	})
	t.Run("with the roles that are released", func(t *testing.T) {
		t.Parallel()
		checkAllowed(t, as(t, "editor", authors).Create(t.Context(), extension("any", installer), client.DryRunAll))
	})
	t.Run("the expressions fit the kind", testTypes)
}

// checkNameless asserts that the policy refuses a name, which may be generated.
func checkNameless(t *testing.T, err error, user, resource, name string) {
	t.Helper()
	want := fmt.Sprintf("user %q cannot update resource %q in API group \"olm.operatorframework.io\" with the name %q", user, resource, name)
	if strings.HasSuffix(name, "-") {
		want = strings.TrimSuffix(want, `"`)
	}
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), createByNamePolicy) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// TestQuotasDoNotCountExtensions: a ResourceQuota that refuses what it counts lets them
// through, whose namespace is only named in the spec.
func TestQuotasDoNotCountExtensions(t *testing.T) { //nolint:paralleltest // policies of other tests would refuse
	none := resource.MustParse("0")
	create(t, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "none"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{
			"count/configmaps": none,
			"count/clusterextensions.olm.operatorframework.io": none,
			"count/clustercatalogs.olm.operatorframework.io":   none,
		}},
	})
	counted := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "counted"}}
	if err := poll(t.Context(), func(ctx context.Context) (bool, error) {
		err := admin.Create(ctx, counted.DeepCopy(), client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "exceeded quota"), nil
	}); err != nil {
		t.Fatal(err)
	}
	checkAllowed(t, admin.Create(t.Context(), extension("uncounted", installer), client.DryRunAll))
	checkAllowed(t, admin.Create(t.Context(), catalog("uncounted", 0), client.DryRunAll))
}
