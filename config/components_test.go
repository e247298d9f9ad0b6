package config_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// added is what a component adds to the pod: arguments, where its ConfigMap is mounted,
// and whether that has variables.
type added struct {
	ConfigMap string
	Arguments []string
	Path      string
	Variables bool
}

var components = map[string]added{
	"certificate-authorities": {
		ConfigMap: "operator-controller-certificate-authorities",
		Arguments: []string{
			"--pull-cas-dir=/etc/operator-controller/certificate-authorities",
			"--catalogd-cas-dir=/etc/operator-controller/certificate-authorities",
		},
		Path: "/etc/operator-controller/certificate-authorities",
	},
	"registries":       {ConfigMap: "operator-controller-registries", Path: "/etc/containers/registries.conf.d"},
	"signature-lookup": {ConfigMap: "operator-controller-signature-lookup", Path: "/etc/containers/registries.d"},
	"signature-policy": {
		ConfigMap: "operator-controller-signature-policy",
		Arguments: []string{"--signature-policy=/etc/operator-controller/signature-policy/policy.json", "--require-signature-policy"},
		Path:      "/etc/operator-controller/signature-policy",
	},
	"proxy": {ConfigMap: "operator-controller-proxy", Variables: true},
}

// Each component adds what it says to config/default and changes nothing else, and all
// of them go together.
func TestComponents(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	folders, err := filepath.Glob("components/*")
	if err != nil {
		t.Fatal(err)
	}
	names := slices.Sorted(maps.Keys(components))
	for i, folder := range folders {
		folders[i] = filepath.Base(folder)
	}
	if diff := cmp.Diff(names, folders); diff != "" {
		t.Errorf("components (-tested +there):\n%s", diff)
	}
	for _, name := range names {
		checkComponents(t, name)
	}
	checkComponents(t, names...)
}

func checkComponents(t *testing.T, names ...string) {
	t.Helper()
	want, got := byID(build(t, "default")), byID(buildWith(t, names...))
	const id = "Deployment/olmv1-system/operator-controller-controller-manager"
	pod := &want[id].(*appsv1.Deployment).Spec.Template.Spec
	for _, name := range names {
		component := components[name]
		container := &pod.Containers[0]
		container.Args = append(container.Args, component.Arguments...)
		source := corev1.LocalObjectReference{Name: component.ConfigMap}
		if component.Variables {
			container.EnvFrom = append(container.EnvFrom, corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: source}})
			continue
		}
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: component.Path, ReadOnly: true})
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: source},
		}})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%v (-want +got):\n%s", names, diff)
	}
}

func byID(objects []client.Object) map[string]client.Object {
	found := map[string]client.Object{}
	for _, object := range objects {
		found[id(object)] = object
	}
	return found
}

// buildWith builds config/default with components, as somebody would who has a
// kustomization of their own.
func buildWith(t *testing.T, names ...string) []client.Object {
	t.Helper()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	disk := filesys.MakeFsOnDisk()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	text := "resources: [" + relative(t, dir, here) + "/default]\ncomponents:\n"
	for _, name := range names {
		text += "  - " + relative(t, dir, here) + "/components/" + name + "\n"
	}
	if err := disk.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(disk, dir)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(names, ", "), err)
	}
	var objects []client.Object
	for _, resource := range built.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, decode(t, text))
	}
	return objects
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRefuseWhileInUse: the overlay adds one argument to config/default, and nothing else.
func TestRefuseWhileInUse(t *testing.T) {
	t.Parallel()
	base, overlay := build(t, "default"), build(t, "overlays/refuse-while-in-use")
	arguments := the[*appsv1.Deployment](t, base).Spec.Template.Spec.Containers[0].Args
	the[*appsv1.Deployment](t, base).Spec.Template.Spec.Containers[0].Args = append(slices.Clone(arguments), "--default-uninstall-policy=RefuseWhileInUse")
	if diff := cmp.Diff(base, overlay); diff != "" {
		t.Errorf("overlay (-want +got):\n%s", diff)
	}
}
