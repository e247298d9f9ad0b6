package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// fromImage makes an extension name the image of a bundle.
func fromImage(ref string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: ref}}
	}
}

// pushedBundle pushes a bundle, and gives its image by digest.
func pushedBundle(t *testing.T, operator testkit.Operator, files fstest.MapFS) string {
	t.Helper()
	layer, err := testkit.TarFS(files)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := theSuite.Registry.PushLayers(t.Context(), operator.Package+":v"+operator.Version, nil, testkit.Layer{Blob: layer})
	if err != nil {
		t.Fatal(err)
	}
	return registryHost + "/" + operator.Package + "@" + digest
}

// releaseRecords are the resource versions of all records of an extension, and of one of its
// objects: they change with each write.
func releaseRecords(t *testing.T, name string) []string {
	t.Helper()
	var secrets corev1.SecretList
	if err := theSuite.Admin.List(t.Context(), &secrets, client.MatchingLabels{"owner": "operator-controller", "name": name}); err != nil {
		t.Fatal(err)
	}
	if len(secrets.Items) == 0 {
		t.Fatal("there are no records")
	}
	versions := make([]string, 0, len(secrets.Items)+1)
	for i := range secrets.Items {
		versions = append(versions, secrets.Items[i].Name+" "+secrets.Items[i].ResourceVersion)
	}
	settings := &corev1.ConfigMap{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "settings"}, settings); err != nil {
		t.Fatal(err)
	}
	slices.Sort(versions)
	return append(versions, "settings "+settings.ResourceVersion)
}

// Vector B1: a bundle by its digest is installed, as one of a catalog is, and upgraded by another
// digest; which package it is of, the status says. Without it, it is removed.
func TestB1BundleByDigest(t *testing.T) {
	t.Parallel()
	const name = "named-digest"
	wanted := operators(name, "1.0.0", "1.1.0")
	extend(t, name, fromImage(pushedBundle(t, wanted[0], wanted[0].Bundle())))
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, `"named-digest.v1.0.0" version "1.0.0" is installed, which spec.source.bundle names`)
	found := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
		t.Fatal(err)
	}
	if got := found.Status.Install.PackageName; got != name {
		t.Errorf("the status names the package %q", got)
	}

	update(t, name, fromImage(pushedBundle(t, wanted[1], wanted[1].Bundle())))
	installed(t, name, "1.1.0")
	// Whoever writes the spec decides, also to go back.
	update(t, name, fromImage(pushedBundle(t, wanted[0], wanted[0].Bundle())))
	installed(t, name, "1.0.0")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	gone(t, &corev1.ConfigMap{}, name, "settings")
}

// Vector B2: a tag that moves changes nothing, nor does another spec with the same tag.
func TestB2BundleByTag(t *testing.T) {
	t.Parallel()
	const name = "named-tag"
	wanted := operators(name, "1.0.0")[0]
	pushBundle(t, wanted, wanted.Bundle())
	extend(t, name, fromImage(wanted.Image(registryHost)))
	installed(t, name, "1.0.0")

	other := wanted
	other.ConfigMaps = append(slices.Clone(other.ConfigMaps), "smuggled")
	pushBundle(t, wanted, other.Bundle())
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline,
			Inline:     &apiextensionsv1.JSON{Raw: []byte(`{"deploymentConfig":{"nodeSelector":{"kubernetes.io/os":"linux"}}}`)},
		}
	})
	told(t, name, corev1.EventTypeWarning, "ImageMoved", "has moved from")
	installed(t, name, "1.0.0")
	err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "smuggled"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("err = %v, want that content of the moved tag is not there", err)
	}
}

// Vector B3: between a catalog and the bundle itself, at the same version, nothing is written.
func TestB3BetweenCatalogAndBundle(t *testing.T) {
	t.Parallel()
	const name = "named-switch"
	wanted := operators(name, "1.0.0")
	publish(t, wanted...)
	extend(t, name)
	installed(t, name, "1.0.0")
	before := releaseRecords(t, name)
	catalog := func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: &ocv1.CatalogFilter{PackageName: name}}
		fromCatalog(name)(extension)
	}
	layers := wanted[0].Bundle()
	byDigest := pushedBundle(t, testkit.Operator{Package: name, Version: "1.0.0"}, layers)
	for i, change := range []func(*ocv1.ClusterExtension){fromImage(wanted[0].Image(registryHost)), catalog} {
		update(t, name, change)
		installed(t, name, "1.0.0")
		if after := releaseRecords(t, name); !slices.Equal(before, after) {
			t.Errorf("change %d has written: before %q, after %q", i, before, after)
		}
	}
	// Another image of the same version is another bundle.
	update(t, name, fromImage(byDigest))
	eventually(t, "the other image", func(context.Context) error {
		if after := releaseRecords(t, name); slices.Equal(before, after) {
			return fmt.Errorf("the records are %q", after)
		}
		return nil
	})
	installed(t, name, "1.0.0")
}

// Vector B4: a bundle of another package is refused, and what is installed stays.
func TestB4BundleOfAnotherPackage(t *testing.T) {
	t.Parallel()
	const name = "named-package"
	wanted := operators(name, "1.0.0")[0]
	extend(t, name, fromImage(pushedBundle(t, wanted, wanted.Bundle())))
	installed(t, name, "1.0.0")
	other := operators("named-other", "1.0.0")[0]
	update(t, name, fromImage(pushedBundle(t, other, other.Bundle())))
	conditionContains(t, name, ocv1.TypeProgressing, `has a bundle of package "named-other", and package "named-package" is installed: another package is another extension`)
	conditionContains(t, name, ocv1.TypeProgressing, "False Blocked")
	exists(t, &corev1.ConfigMap{}, name, "settings")
	update(t, name, fromImage(pushedBundle(t, wanted, wanted.Bundle())))
	installed(t, name, "1.0.0")
}

// Vector B5: an image that is no bundle is blocked, with what was found.
func TestB5ImageThatIsNoBundle(t *testing.T) {
	t.Parallel()
	const name = "named-none"
	nothing := testkit.Operator{Package: name, Version: "1.0.0"}
	extend(t, name, fromImage(pushedBundle(t, nothing, fstest.MapFS{"etc/passwd": {Data: []byte("x")}})))
	conditionContains(t, name, ocv1.TypeProgressing, "False Blocked")
	conditionContains(t, name, ocv1.TypeReady, "cannot be installed: ")
	conditionContains(t, name, ocv1.TypeReady, "metadata/annotations.yaml")
	mended := operators(name, "1.0.1")[0]
	update(t, name, fromImage(pushedBundle(t, mended, mended.Bundle())))
	installed(t, name, "1.0.1")
}

// TestTryABundle installs a folder with one command, and what it was changed to with the next.
func TestTryABundle(t *testing.T) {
	t.Parallel()
	const name = "named-try"
	removeInstalled(t, name)
	admin, repository := theSuite.Cluster.Kubeconfig(), theSuite.Registry.Host()+"/team/"+name
	try := func(version string, more ...string) (string, error) {
		folder := t.TempDir()
		if err := os.CopyFS(folder, operators(name, version)[0].Bundle()); err != nil {
			t.Fatal(err)
		}
		return theSuite.LocalOutput(t.Context(), append([]string{"bundle", "try", folder, "--registry", repository, "--kubeconfig", admin}, more...)...)
	}
	if _, err := try("1.0.0"); err == nil || !strings.Contains(err.Error(), "nothing was applied") {
		t.Fatalf("nobody has agreed: %v", err)
	}
	for _, version := range []string{"1.0.0", "1.0.0", "1.1.0"} {
		output, err := try(version, "--yes")
		if err != nil {
			t.Fatal(err)
		}
		contains(t, output, "kind: ClusterRole\n", "sourceType: Bundle\n", repository+"@sha256:",
			"clusterextension/named-try: version "+version+" is installed, and ready\n")
		installed(t, name, version)
	}
	contains(t, command(t, admin, "explain", "clusterextension/"+name), "there is nothing to choose: spec.source.bundle names image "+repository+"@sha256:")
	contains(t, command(t, admin, "plan", name), name+`.v1.1.0" version "1.1.0" of image `+repository)
	contains(t, command(t, admin, "get", name), name+"   1.1.0 ")
	contains(t, command(t, admin, "tree", name), "ClusterExtension "+name+" 1.1.0 ", " Deployment "+name+"  ")
	if _, err := theSuite.LocalOutput(t.Context(), "approve", name, "--kubeconfig", admin); err == nil || !strings.Contains(err.Error(), "nothing waits for approval") {
		t.Errorf("got error %v", err)
	}
	if _, err := theSuite.LocalOutput(t.Context(), "plan", name, "--version", "1.0.0", "--kubeconfig", admin); err == nil || !strings.Contains(err.Error(), "no version can be asked for, but another image in spec.source.bundle.ref") {
		t.Errorf("got error %v", err)
	}
	if _, err := theSuite.LocalOutput(t.Context(), "rollback", name, "--kubeconfig", admin); err == nil || !strings.Contains(err.Error(), `names a bundle by its image: to go back, name the image`) {
		t.Errorf("got error %v", err)
	}
}

// TestApproveANamedBundle has the rights of an operator grow: the version that is agreed to is not
// enough, and the command agrees to the image.
func TestApproveANamedBundle(t *testing.T) {
	t.Parallel()
	const name = "named-growing"
	wanted := operators(name, "1.0.0", "1.1.0")
	extend(t, name, fromImage(pushedBundle(t, wanted[0], wanted[0].Bundle())), func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove, ApprovedVersion: "1.1.0"},
		}}
	})
	installed(t, name, "1.0.0")
	files := wanted[1].Bundle()
	for _, file := range files {
		file.Data = bytes.ReplaceAll(file.Data, []byte("verbs: [get, list, watch]"), []byte("verbs: [get, list, watch, delete]"))
	}
	ref := pushedBundle(t, wanted[1], files)
	update(t, name, fromImage(ref))
	_, digest, _ := strings.Cut(ref, "@")
	if got := pending(t, name, "1.1.0").Digest; got != digest {
		t.Errorf("pending is the image %q, want %q", got, digest)
	}
	conditionContains(t, name, ocv1.TypeReady, `approvedVersion to "1.1.0" and approvedDigest to "`+digest+`"`)
	command(t, theSuite.Cluster.Kubeconfig(), "approve", name, "--yes")
	installed(t, name, "1.1.0")
}

// TestNoOtherPackageByWayOfABundle goes from a catalog to the same bundle by its image, and from
// there to another package of a catalog, which is refused though no edge of upgrades is asked for.
func TestNoOtherPackageByWayOfABundle(t *testing.T) {
	t.Parallel()
	const name, other = "named-detour", "named-detour-other"
	wanted := operators(name, "1.0.0")
	publish(t, wanted...)
	publish(t, operators(other, "1.0.0")...)
	extend(t, name)
	installed(t, name, "1.0.0")
	update(t, name, fromImage(wanted[0].Image(registryHost)))
	installed(t, name, "1.0.0")
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeCatalog, Catalog: &ocv1.CatalogFilter{
			PackageName: other, UpgradeConstraintPolicy: ocv1.UpgradeConstraintPolicySelfCertified,
		}}
		fromCatalog(other)(extension)
	})
	conditionContains(t, name, ocv1.TypeProgressing, `False Blocked: spec.source.catalog.packageName is "named-detour-other", and package "named-detour" is installed: another package is another extension`)
	exists(t, &corev1.ConfigMap{}, name, "settings")
}

// TestBundleThatIsNoVersion states a version that no catalog could have: nothing of it is written,
// and a better image is installed.
func TestBundleThatIsNoVersion(t *testing.T) {
	t.Parallel()
	const name = "named-version"
	wanted := operators(name, "1.0.0")[0]
	files := wanted.Bundle()
	files["metadata/properties.yaml"] = &fstest.MapFile{Data: []byte("properties:\n- {type: olm.package, value: {packageName: " + name + ", version: v1.0.0}}\n")}
	extend(t, name, fromImage(pushedBundle(t, wanted, files)))
	conditionContains(t, name, ocv1.TypeProgressing, "False Blocked")
	conditionContains(t, name, ocv1.TypeReady, `version "v1.0.0"`)
	err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "settings"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("err = %v, want that nothing was written", err)
	}
	mended := operators(name, "1.0.1")[0]
	update(t, name, fromImage(pushedBundle(t, mended, mended.Bundle())))
	installed(t, name, "1.0.1")
}

// TestNamedBundleWaitsForAPackage has nothing but the files of the bundle say what it needs, and
// goes on when that comes.
func TestNamedBundleWaitsForAPackage(t *testing.T) {
	t.Parallel()
	const name, needed = "named-needy", "named-needed"
	wanted := operators(name, "1.0.0")[0]
	files := wanted.Bundle()
	files["metadata/dependencies.yaml"] = &fstest.MapFile{Data: []byte("dependencies:\n- {type: olm.package, value: {packageName: " + needed + ", version: \">=1.0.0\"}}\n")}
	extend(t, name, fromImage(pushedBundle(t, wanted, files)))
	conditionContains(t, name, ocv1.TypeReady, "cannot be installed: the bundle requires ")
	publish(t, operators(needed, "1.0.0")...)
	extend(t, needed)
	installed(t, needed, "1.0.0")
	installed(t, name, "1.0.0")
}
