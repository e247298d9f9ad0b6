package e2e_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

// fleet is many extensions, each of a package of its own in two versions: 1.1.0
// drops a ConfigMap of 1.0.0 and brings another.
type fleet struct {
	// name is that of the catalog.
	name  string
	names []string // of the extensions
	heavy map[string]bool
	proxy *faultproxy.Proxy
}

// newFleet publishes the packages and makes all that the extensions need, but
// not the extensions. Heavy ones have a record that takes more than one Secret.
func newFleet(t *testing.T, name string, count int, isHeavy func(int) bool) *fleet {
	t.Helper()
	f := &fleet{name: name, heavy: map[string]bool{}}
	catalog := fstest.MapFS{}
	for i := range count {
		extension := fmt.Sprintf("%s-%02d", name, i)
		f.names, f.heavy[extension] = append(f.names, extension), isHeavy(i)
		versions := []testkit.Operator{
			{Package: extension, Version: "1.0.0", ConfigMaps: []string{"settings", "dropped"}},
			{Package: extension, Version: "1.1.0", ConfigMaps: []string{"settings", "added"}},
		}
		for _, operator := range versions {
			files := operator.Bundle()
			if f.heavy[extension] {
				files["manifests/ballast.yaml"] = ballast()
			}
			pushBundle(t, operator, files)
		}
		maps.Copy(catalog, testkit.Catalog(registryHost, versions...))
		makeNamespace(t, extension)
		makeAccount(t, extension)
		grant(t, extension, "cluster-admin")
	}
	publishCatalog(t, name, catalog)
	var err error
	if f.proxy, err = faultproxy.Start(theSuite.Cluster.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.proxy.Close)
	return f
}

// ballast cannot be compressed, and a record has it twice.
var ballast = sync.OnceValue(func() *fstest.MapFile {
	noise, random := make([]byte, 600_000), rand.NewPCG(1, 2)
	for i := range noise {
		noise[i] = byte(random.Uint64())
	}
	return &fstest.MapFile{Data: fmt.Appendf(nil, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ballast}\ndata: {noise: %s}\n",
		base64.StdEncoding.EncodeToString(noise))}
})

// takeOver replaces the controller of all tests by one that works through the
// proxy, until the test ends. It may have more arguments, and does not watch for
// races: work on many extensions at a time would take minutes.
func (f *fleet) takeOver(t *testing.T, arguments ...string) {
	t.Helper()
	replaceControllerBehind(t, f.proxy, arguments...)
	serving(t, f.name)
}

// replaceControllerBehind is replaceController with one that works through a proxy.
func replaceControllerBehind(t *testing.T, proxy *faultproxy.Proxy, arguments ...string) {
	t.Helper()
	namespace, account, _ := strings.Cut(strings.TrimPrefix(environment.ControllerUser, "system:serviceaccount:"), ":")
	direct, err := theSuite.Cluster.KubeconfigForServiceAccount(t.Context(), namespace, account)
	if err != nil {
		t.Fatal(err)
	}
	through := filepath.Join(t.TempDir(), "kubeconfig")
	if err := proxy.WriteKubeconfig(through, direct); err != nil {
		t.Fatal(err)
	}
	replaceController(t, false, append(arguments, "--kubeconfig="+through)...)
}

// install makes the extensions.
func (f *fleet) install(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		extendOnly(t, name, fromCatalog(f.name), version("1.0.0"))
	}
}

func (f *fleet) upgrade(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		update(t, name, version("1.1.0"))
	}
}

// remove deletes the extensions and does not wait for them to go.
func (f *fleet) remove(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		if err := theSuite.Admin.Delete(t.Context(), &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
}

// world is what there is of a fleet at a moment.
type world struct {
	extensions map[string]*ocv1.ClusterExtension

	// content of each extension, sorted, in the form of contentOf.
	content map[string][]string
}

// contentOf lists the objects of an extension at a version, which is empty for
// none. Names that only say to whom something belongs are left out, and those of
// roles, which are made up.
func (f *fleet) contentOf(extension, version string) []string {
	if version == "" {
		return nil
	}
	content := []string{
		"ClusterRole", "ClusterRoleBinding", "ConfigMap settings " + version, "CustomResourceDefinition",
		"Deployment " + version, "Service", "ServiceAccount",
		map[string]string{"1.0.0": "ConfigMap dropped", "1.1.0": "ConfigMap added"}[version],
	}
	if f.heavy[extension] {
		content = append(content, "ConfigMap ballast")
	}
	slices.Sort(content)
	return content
}

// look reads the world. Objects count as content only if the extension that is
// there now owns them.
func (f *fleet) look(ctx context.Context) (*world, error) {
	seen := &world{extensions: map[string]*ocv1.ClusterExtension{}, content: map[string][]string{}}
	extensions := &ocv1.ClusterExtensionList{}
	if err := theSuite.Admin.List(ctx, extensions); err != nil {
		return nil, err
	}
	for i := range extensions.Items {
		seen.extensions[extensions.Items[i].Name] = &extensions.Items[i]
	}
	deployments, settings := &appsv1.DeploymentList{}, &corev1.ConfigMapList{}
	owned := client.MatchingLabels{"olm.operatorframework.io/owner-kind": "ClusterExtension"}
	if err := errors.Join(
		theSuite.Admin.List(ctx, deployments, owned),
		theSuite.Admin.List(ctx, settings, owned, client.MatchingFields{"metadata.name": "settings"}),
	); err != nil {
		return nil, err
	}
	for i := range deployments.Items {
		_, version, _ := strings.Cut(deployments.Items[i].Spec.Template.Spec.Containers[0].Image, ":operator-")
		seen.add(&deployments.Items[i], "Deployment "+version)
	}
	for i := range settings.Items {
		seen.add(&settings.Items[i], "ConfigMap settings "+settings.Items[i].Data["version"])
	}
	err := seen.addOthers(ctx, owned)
	return seen, err
}

// addOthers reads no more than metadata.
func (w *world) addOthers(ctx context.Context, selection ...client.ListOption) error {
	core, roles := corev1.SchemeGroupVersion, rbacv1.SchemeGroupVersion
	for _, kind := range []metav1.TypeMeta{
		{APIVersion: core.String(), Kind: "ConfigMap"},
		{APIVersion: core.String(), Kind: "Service"},
		{APIVersion: core.String(), Kind: "ServiceAccount"},
		{APIVersion: roles.String(), Kind: "ClusterRole"},
		{APIVersion: roles.String(), Kind: "ClusterRoleBinding"},
		{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
	} {
		list := &metav1.PartialObjectMetadataList{TypeMeta: kind}
		if err := theSuite.Admin.List(ctx, list, selection...); err != nil {
			return err
		}
		for i := range list.Items {
			switch name := list.Items[i].Name; {
			case name == "settings" || environment.IsDying(kind.Kind, &list.Items[i]):
			case kind.Kind == "ConfigMap":
				w.add(&list.Items[i], kind.Kind+" "+name)
			default:
				w.add(&list.Items[i], kind.Kind)
			}
		}
	}
	for name := range w.content {
		slices.Sort(w.content[name])
	}
	return nil
}

func (w *world) add(object client.Object, what string) {
	owner := metav1.GetControllerOf(object)
	if owner == nil {
		return
	}
	if extension := w.extensions[owner.Name]; extension == nil || extension.UID != owner.UID {
		what += " without an owner"
	}
	w.content[owner.Name] = append(w.content[owner.Name], what)
}

// checkReady holds when the workloads of every extension are there too: until then
// the status follows them.
func (f *fleet) checkReady(ctx context.Context) error {
	for _, name := range f.names {
		extension := &ocv1.ClusterExtension{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, extension); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(extension.Status.Conditions, ocv1.TypeReady) {
			return fmt.Errorf("%s is not ready: %+v", name, extension.Status.Conditions)
		}
	}
	return nil
}

// settled says that the status claims a version to be installed, with nothing
// left to do.
func (w *world) settled(name, version string) bool {
	extension := w.extensions[name]
	if extension == nil || extension.Status.Install == nil {
		return false
	}
	progressing := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeProgressing)
	return extension.Status.Install.Bundle.Version == version &&
		meta.IsStatusConditionTrue(extension.Status.Conditions, ocv1.TypeInstalled) &&
		progressing != nil && progressing.Reason == ocv1.ReasonSucceeded && progressing.ObservedGeneration == extension.Generation
}

var (
	accountPattern   = regexp.MustCompile(`^system:serviceaccount:([^:]+):` + installer + `$`)
	extensionPattern = regexp.MustCompile(`^/apis/olm\.operatorframework\.io/v1/clusterextensions/([^/]+)(/status)?$`)
	recordPattern    = regexp.MustCompile(`/secrets/sh\.helm\.release\.v1\.([^.]+)\.v\d+(-[a-z1-6]+)?$`)
)

// writerOf names the extension that a write is about; it is empty for what the
// controller does besides.
func writerOf(write faultproxy.Write) string {
	for pattern, text := range map[*regexp.Regexp]string{
		accountPattern: write.User, extensionPattern: write.Path, recordPattern: write.Path,
	} {
		if match := pattern.FindStringSubmatch(text); match != nil {
			return match[1]
		}
	}
	return ""
}
