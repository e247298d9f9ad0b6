package controller

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

var thing = requirement.API{Group: "example.com", Version: "v1", Kind: "Thing"}

func factsOf(properties ...*requirement.Property) *resolve.Facts {
	if len(properties) == 0 {
		return nil
	}
	return &resolve.Facts{Properties: properties}
}

// stating is a chain of versions of a package; each states the properties that
// are given for it.
func stating(name string, properties map[string][]*requirement.Property, versions ...string) *resolve.Prepared {
	pkg := resolve.Package{Name: name, Channels: []resolve.Channel{{Name: "stable"}}}
	for i, version := range versions {
		pkg.Bundles = append(pkg.Bundles, resolve.Bundle{
			Name: name + ".v" + version, Version: version, Image: "registry.test/" + name + ":v" + version,
			Facts: factsOf(properties[version]...),
		})
		entry := resolve.Entry{Name: name + ".v" + version}
		if i > 0 {
			entry.Replaces = name + ".v" + versions[i-1]
		}
		pkg.Channels[0].Entries = append(pkg.Channels[0].Entries, entry)
	}
	return resolve.Prepare(pkg)
}

func needsPackage(name, versions string) *requirement.Property {
	return &requirement.Property{
		Type: "olm.package.required", Value: json.RawMessage(fmt.Sprintf(`{"packageName":%q,"versionRange":%q}`, name, versions)),
	}
}

func apiProperty(kind string, api requirement.API) *requirement.Property {
	return &requirement.Property{
		Type: kind, Value: json.RawMessage(fmt.Sprintf(`{"group":%q,"version":%q,"kind":%q}`, api.Group, api.Version, api.Kind)),
	}
}

// other is an extension with a bundle of a package installed.
func other(name, version string) *ocv1.ClusterExtension {
	ext := sampleExtension()
	ext.Name, ext.UID = name, ""
	ext.Spec.Source.Catalog.PackageName = name
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: name + ".v" + version, Version: version}}
	return ext
}

// worldWith is the sample world with further objects in it.
func worldWith(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorld(t, append(objects, sampleExtension(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}},
		&ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}})...)
}

func (w *world) ready(t *testing.T) metav1.Condition {
	t.Helper()
	condition := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeReady)
	if condition == nil {
		t.Fatal("there is no condition Ready")
	}
	return *condition
}

func (w *world) mustReconcile(t *testing.T) {
	t.Helper()
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
}

func TestRequirementHoldsPosition(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
	w.catalog["p"] = stating("p", map[string][]*requirement.Property{"1.1.0": {needsPackage("q", ">=1.0.0")}}, "1.0.0", "1.1.0")
	w.catalog["q"] = stating("q", nil, "1.0.0")
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	ready := w.ready(t)
	want := `"p.v1.0.0" version "1.0.0" is installed, from catalog "c"; newer but left out: "p.v1.1.0" in catalog "c" ` +
		`(requires package "q" in ">=1.0.0", which is not installed); what is missing comes with package "q" of catalog "c" in version "1.0.0"`
	if diff := cmp.Diff(want, ready.Message); diff != "" || ready.Status != metav1.ConditionTrue {
		t.Errorf("Ready is %s (-want +got):\n%s", ready.Status, diff)
	}
	if diff := cmp.Diff([]string{"Normal Succeeded: " + want}, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	w.mustReconcile(t)
	if len(w.events) != 1 {
		t.Errorf("a second pass over the same world told %v", w.events[1:])
	}
}

// TestDeadEndIsNotInstalled has nothing installed, and a newest bundle that lacks
// what older ones do without, of which none leads there.
func TestDeadEndIsNotInstalled(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.catalog["p"] = resolve.Prepare(resolve.Package{Name: "p", Bundles: []resolve.Bundle{
		{Name: "p.v1.0.0", Version: "1.0.0"},
		{Name: "p.v2.0.0", Version: "2.0.0", Facts: factsOf(needsPackage("q", ">=1.0.0"), needsPackage("r", "0.9.0"))},
	}})
	w.catalog["r"] = stating("r", nil, "0.9.0", "0.14.0")
	w.mustReconcile(t)
	if did := w.take(); len(did) > 0 {
		t.Errorf("done %v", did)
	}
	ready := w.ready(t)
	want := `no bundles found for package "p"; ` +
		`"p.v2.0.0" requires package "q" in ">=1.0.0", which is not installed; requires package "r" in "0.9.0", which is not installed; ` +
		`no upgrade leads there from "p.v1.0.0", which could be installed now: set version to "1.0.0" to have that one; ` +
		`of 2 bundles, 1 whose requirements are not met, 1 with no upgrade to the newest; ` +
		`what is missing comes with package "r" of catalog "c" in version "0.9.0"; no catalog has package "q"`
	if diff := cmp.Diff(want, ready.Message); diff != "" || ready.Status != metav1.ConditionFalse {
		t.Errorf("Ready is %s (-want +got):\n%s", ready.Status, diff)
	}
}

func TestRequirementThatAppearsIsTakenUp(t *testing.T) {
	t.Parallel()
	w := worldWith(t, other("q", "1.0.0"))
	w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
	w.catalog["p"] = stating("p", map[string][]*requirement.Property{"1.1.0": {needsPackage("q", ">=1.0.0")}}, "1.0.0", "1.1.0")
	w.catalog["q"] = stating("q", nil, "1.0.0")
	woken := w.matching(t, w.reconciler.concernedBy(t.Context(), other("q", "1.0.0")))
	if !slices.Equal(woken, []string{"x"}) {
		t.Errorf("when q is installed, %v are woken", woken)
	}
	w.mustReconcile(t)
	if got := w.extension(t).Status.Install.Bundle.Version; got != "1.1.0" {
		t.Errorf("version %s is installed, want 1.1.0", got)
	}
}

// TestNamedBundleIsWhatItSays: others that require the package of a named bundle have it, and
// that is all that it is to them.
func TestNamedBundleIsWhatItSays(t *testing.T) {
	t.Parallel()
	named := other("somebody", "1.0.0")
	named.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: "registry.test/anything:v1"}}
	named.Status.Install.PackageName = "q"
	w := worldWith(t, named)
	w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
	w.catalog["p"] = stating("p", map[string][]*requirement.Property{
		"1.1.0": {needsPackage("q", ">=1.0.0")}, "1.2.0": {needsPackage("q", ">=2.0.0")},
	}, "1.0.0", "1.1.0", "1.2.0")
	if woken := w.matching(t, w.reconciler.concernedBy(t.Context(), named)); !slices.Equal(woken, []string{"x"}) {
		t.Errorf("%v are woken", woken)
	}
	w.mustReconcile(t)
	if got := w.extension(t).Status.Install.Bundle.Version; got != "1.1.0" {
		t.Errorf("version %s is installed, want 1.1.0", got)
	}
	// One that says to be the package of another is no reason not to upgrade that.
	named.Status.Install.PackageName = "p"
	if err := w.client.Status().Update(t.Context(), named); err != nil {
		t.Fatal(err)
	}
	w.catalog["p"] = stating("p", nil, "1.0.0", "1.1.0", "1.2.0")
	w.reconciler.Neighbours.expire()
	w.mustReconcile(t)
	if got := w.extension(t).Status.Install.Bundle.Version; got != "1.2.0" {
		t.Errorf("version %s is installed, want 1.2.0", got)
	}
}

func TestNobodyIsWokenWithoutNeed(t *testing.T) {
	t.Parallel()
	w := worldWith(t, other("q", "1.0.0"))
	w.catalog["p"] = stating("p", nil, "1.0.0")
	if woken := w.matching(t, w.reconciler.concernedBy(t.Context(), other("q", "1.0.0"))); len(woken) > 0 {
		t.Errorf("%v are woken", woken)
	}
}

func TestRequiredAPI(t *testing.T) {
	t.Parallel()
	needsThing := map[string][]*requirement.Property{"1.1.0": {apiProperty("olm.gvk.required", thing)}}
	tests := map[string]struct {
		serves map[requirement.API]bool
		did    []string
		status metav1.ConditionStatus
		says   string
	}{
		"not known: nothing older is installed in its place": {
			status: metav1.ConditionFalse, says: `the requirements of bundle "p.v1.1.0" cannot be checked`,
		},
		"not served: the newest that can be": {
			serves: map[requirement.API]bool{}, did: []string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"},
			status: metav1.ConditionTrue, says: `what is missing comes with package "q" of catalog "c" in version "1.0.0"`,
		},
		"served": {
			serves: map[requirement.API]bool{thing: true}, did: []string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "write", "close"},
			status: metav1.ConditionTrue, says: `"p.v1.1.0" version "1.1.0" is installed`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := worldWith(t)
			w.serves = tc.serves
			w.catalog["p"] = stating("p", needsThing, "1.0.0", "1.1.0")
			w.catalog["q"] = stating("q", map[string][]*requirement.Property{"1.0.0": {apiProperty("olm.gvk", thing)}}, "1.0.0")
			w.mustReconcile(t)
			if diff := cmp.Diff(tc.did, w.take()); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if ready := w.ready(t); ready.Status != tc.status || !strings.Contains(ready.Message, tc.says) {
				t.Errorf("Ready is %s %q, want %s %q", ready.Status, ready.Message, tc.status, tc.says)
			}
		})
	}
}

func TestDependentsAreNamed(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		others map[string][]*requirement.Property // what version 1.0.0 of each states
		mine   map[string][]*requirement.Property
		want   []string
	}{
		"package in another version": {
			others: map[string][]*requirement.Property{"q": {needsPackage("p", "<1.1.0")}},
			want:   []string{`extension "q" requires package "p" in "<1.1.0", but version "1.1.0" is installed`},
		},
		"package in this version": {others: map[string][]*requirement.Property{"q": {needsPackage("p", "<2.0.0")}}},
		"somebody else's package": {others: map[string][]*requirement.Property{"q": {needsPackage("r", "<2.0.0")}}},
		"API that the upgrade drops": {
			mine:   map[string][]*requirement.Property{"1.0.0": {apiProperty("olm.gvk", thing)}},
			others: map[string][]*requirement.Property{"q": {apiProperty("olm.gvk.required", thing)}},
			want:   []string{`extension "q" requires API "example.com/v1, Kind=Thing", which the cluster does not serve`},
		},
		"API that another one provides too": {
			mine: map[string][]*requirement.Property{"1.0.0": {apiProperty("olm.gvk", thing)}},
			others: map[string][]*requirement.Property{
				"q": {apiProperty("olm.gvk.required", thing)}, "r": {apiProperty("olm.gvk", thing)},
			},
		},
		"rule that only this version is true for": {
			mine: map[string][]*requirement.Property{"1.0.0": {{Type: "color", Value: json.RawMessage(`"blue"`)}}},
			others: map[string][]*requirement.Property{"q": {{
				Type:  "olm.constraint",
				Value: json.RawMessage(`{"failureMessage":"needs a blue one","cel":{"rule":"properties.exists(p, p.type == \"color\" && p.value == \"blue\")"}}`),
			}}},
			want: []string{`extension "q" `},
		},
		"API that stays": {
			mine:   map[string][]*requirement.Property{"1.0.0": {apiProperty("olm.gvk", thing)}, "1.1.0": {apiProperty("olm.gvk", thing)}},
			others: map[string][]*requirement.Property{"q": {apiProperty("olm.gvk.required", thing)}},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			for name := range tc.others {
				objects = append(objects, other(name, "1.0.0"))
			}
			w := worldWith(t, objects...)
			w.serves = map[requirement.API]bool{thing: true}
			w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
			w.catalog["p"] = stating("p", tc.mine, "1.0.0", "1.1.0")
			for name, properties := range tc.others {
				w.catalog[name] = stating(name, map[string][]*requirement.Property{"1.0.0": properties}, "1.0.0")
			}
			w.mustReconcile(t)
			message := w.ready(t).Message
			for _, want := range tc.want {
				if !strings.Contains(message, "others are affected: "+want) {
					t.Errorf("Ready says %q, want %q in it", message, want)
				}
			}
			if len(tc.want) == 0 && strings.Contains(message, "are affected") {
				t.Errorf("Ready says %q", message)
			}
		})
	}
}

func TestRemovalOfWhatIsRequiredIsTold(t *testing.T) {
	t.Parallel()
	ofCatalog, named := other("x", "1.0.0"), other("x", "1.0.0")
	ofCatalog.Spec.Source.Catalog.PackageName = "p"
	named.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: "registry.test/p:v1"}}
	named.Status.Install.PackageName = "p"
	for name, leaving := range map[string]*ocv1.ClusterExtension{"of a catalog": ofCatalog, "named": named} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantRemovalTold(t, leaving)
		})
	}
}

func wantRemovalTold(t *testing.T, leaving *ocv1.ClusterExtension) {
	t.Helper()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	w := newWorld(t, leaving, other("q", "1.0.0"), &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}})
	w.catalog["p"] = stating("p", nil, "1.0.0")
	w.catalog["q"] = stating("q", map[string][]*requirement.Property{"1.0.0": {needsPackage("p", ">=0.1.0")}}, "1.0.0")
	w.mustReconcile(t)
	want := []string{
		`Warning Required: removed although it is required: extension "q" requires package "p" in ">=0.1.0", which is not installed`,
		"Normal Removed: let go of; the cluster deletes the 2 objects that it has installed",
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, leaving); err == nil {
		t.Error("the removal was held up")
	}
}

func TestDeprecatingCatalogIsNamed(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.catalog["p"] = resolve.Prepare(resolve.Package{
		Name:    "p",
		Bundles: []resolve.Bundle{{Name: "p.v1.0.0", Version: "1.0.0", Image: "registry.test/p:v1.0.0"}},
		Deprecations: []resolve.Deprecation{
			{Scope: resolve.PackageScope, Message: "use q"},
			{Scope: resolve.ChannelScope, Name: "old"},
			{Scope: resolve.BundleScope, Name: "p.v1.0.0", Message: "broken"},
		},
	})
	w.mustReconcile(t)
	want := `"p.v1.0.0" version "1.0.0" is installed, from catalog "c"; catalog "c" deprecates the package, bundle "p.v1.0.0"`
	if diff := cmp.Diff(want, w.ready(t).Message); diff != "" {
		t.Errorf("Ready (-want +got):\n%s", diff)
	}
}

func TestUpgradesGoOnUntilNothingFollows(t *testing.T) {
	t.Parallel()
	w := worldWith(t)
	w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
	w.catalog["p"] = stating("p", nil, "1.0.0", "1.1.0", "1.2.0")
	var ready []metav1.ConditionStatus
	for range 2 {
		result, err := w.reconcile(t)
		if err != nil {
			t.Fatal(err)
		}
		condition := w.ready(t)
		ready = append(ready, condition.Status)
		if again := result.RequeueAfter > 0; again != (condition.Status == metav1.ConditionUnknown) {
			t.Errorf("Ready is %s, but another pass at once is %t", condition.Status, again)
		}
	}
	if want := []metav1.ConditionStatus{metav1.ConditionUnknown, metav1.ConditionTrue}; !slices.Equal(ready, want) {
		t.Errorf("Ready was %v, want %v", ready, want)
	}
	if got := w.extension(t).Status.Install.Bundle.Version; got != "1.2.0" {
		t.Errorf("version %s is installed, want 1.2.0", got)
	}
}
