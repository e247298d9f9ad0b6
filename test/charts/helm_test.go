package charts_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"
)

// byHelm returns what Helm makes of a chart with values, a JSON object. It does what "helm install"
// does without a cluster, and reads the manifests as Helm does before it sends objects to one.
func byHelm(t *testing.T, packaged packaged, at situation, values []byte) result {
	t.Helper()
	loaded, err := loader.LoadArchive(bytes.NewReader(packaged.archive))
	if err != nil {
		return result{refusal: err}
	}
	released, err := install(t, loaded, at, values)
	if err != nil {
		return result{refusal: err}
	}
	made, err := read(loaded, released)
	if err != nil {
		return result{refusal: err}
	}
	return made
}

// install tries an installation, or an upgrade.
func install(t *testing.T, loaded *chart.Chart, at situation, values []byte) (*release.Release, error) {
	t.Helper()
	if kind := loaded.Metadata.Type; kind != "" && kind != "application" {
		return nil, fmt.Errorf("%s charts are not installable", kind) // which the command checks
	}
	if err := action.CheckDependencies(loaded, loaded.Metadata.Dependencies); err != nil {
		return nil, err // likewise
	}
	given := map[string]any{}
	if err := json.Unmarshal(values, &given); err != nil {
		return nil, err
	}
	version, err := at.kubeVersion()
	if err != nil {
		return nil, err
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.DryRun, install.ClientOnly, install.IsUpgrade = true, true, at.isUpgrade
	install.ReleaseName, install.Namespace = at.release, at.namespace
	install.KubeVersion, install.APIVersions = version, at.apis
	return install.RunWithContext(t.Context(), loaded, given)
}

// read reads the manifests of a release, and the files in crds/ of a chart that has been rendered.
func read(loaded *chart.Chart, released *release.Release) (result, error) {
	var made result
	for _, crd := range loaded.CRDObjects() {
		objects, err := build(crd.File.Data)
		if err != nil {
			return result{}, fmt.Errorf("%s: %w", crd.Filename, err)
		}
		made.objects = append(made.objects, objects...)
	}
	objects, err := build([]byte(released.Manifest))
	if err != nil {
		return result{}, err
	}
	made.objects = append(made.objects, objects...)
	if made.hooks, err = hooksOf(released.Hooks); err != nil {
		return result{}, err
	}
	made.order = ordersOf(made.hooks)
	return made, nil
}

// build reads objects as the client of Helm does. Items of lists are objects of their own.
func build(manifest []byte) ([]*unstructured.Unstructured, error) {
	infos, err := resource.NewLocalBuilder().Unstructured().ContinueOnError().Flatten().Stream(bytes.NewReader(manifest), "").Do().Infos()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, info := range infos {
		object, isObject := info.Object.(*unstructured.Unstructured)
		if !isObject || isList(object) {
			return nil, fmt.Errorf("no cluster has a kind %s", info.Object.GetObjectKind().GroupVersionKind())
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// isList is true of a list that was not taken apart.
func isList(object *unstructured.Unstructured) bool {
	return object.GetKind() == "List" || strings.HasSuffix(object.GetKind(), "List") && object.GetName() == ""
}

// hooksOf reads hooks that ever run without a rollback.
func hooksOf(all []*release.Hook) ([]hookOf, error) {
	var hooks []hookOf
	for _, one := range all {
		objects, err := build([]byte(one.Manifest))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", one.Path, err)
		}
		if len(objects) != 1 {
			return nil, fmt.Errorf("%s: %d objects of one hook", one.Path, len(objects))
		}
		found := hookOf{object: objects[0], events: texts(one.Events), policies: texts(one.DeletePolicies), weight: one.Weight}
		found.events = slices.DeleteFunc(found.events, func(event string) bool { return strings.HasSuffix(event, "-rollback") })
		if len(found.policies) == 0 {
			found.policies = []string{release.HookBeforeHookCreation.String()}
		}
		if len(found.events) > 0 {
			hooks = append(hooks, found)
		}
	}
	return hooks, nil
}

// texts returns names in order, each once.
func texts[T ~string](names []T) []string {
	found := make([]string, len(names))
	for i, name := range names {
		found[i] = string(name)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// ordersOf returns the hooks of each event as Helm runs them. They are sorted by their kinds already.
func ordersOf(hooks []hookOf) map[string][]*unstructured.Unstructured {
	hooks = slices.Clone(hooks)
	slices.SortStableFunc(hooks, func(a, b hookOf) int {
		return cmp.Or(cmp.Compare(a.weight, b.weight), cmp.Compare(a.object.GetName(), b.object.GetName()))
	})
	orders := map[string][]*unstructured.Unstructured{}
	for _, one := range hooks {
		for _, event := range one.events {
			orders[event] = append(orders[event], one.object)
		}
	}
	return orders
}
