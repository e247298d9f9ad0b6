package config_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

const chartDir = "../charts/operator-controller"

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	loaded, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// template renders the chart as helm template does, with values as YAML.
func template(t *testing.T, namespace, kubernetes, values string) (*release.Release, error) {
	t.Helper()
	parsed := map[string]any{}
	if err := yaml.Unmarshal([]byte(values), &parsed); err != nil {
		t.Fatal(err)
	}
	version, err := chartutil.ParseKubeVersion(kubernetes)
	if err != nil {
		t.Fatal(err)
	}
	install := action.NewInstall(&action.Configuration{})
	install.DryRun, install.ClientOnly = true, true
	install.ReleaseName, install.Namespace, install.KubeVersion = "operator-controller", namespace, version
	return install.Run(loadChart(t), parsed)
}

// rendered are the manifests of the chart in the system namespace.
func rendered(t *testing.T, values string) []string {
	t.Helper()
	made, err := template(t, systemNamespace, "v1.36.0", values)
	if err != nil {
		t.Fatal(err)
	}
	if len(made.Hooks) > 0 {
		t.Errorf("there are %d hooks", len(made.Hooks))
	}
	return slices.Collect(maps.Values(releaseutil.SplitManifests(made.Manifest)))
}

// chartObjects are those of rendered by their ids.
func chartObjects(t *testing.T, values string) map[string]client.Object {
	t.Helper()
	found := map[string]client.Object{}
	for _, text := range rendered(t, values) {
		object := decode(t, []byte(text))
		found[id(object)] = object
	}
	return found
}

// The chart installs what config/default does, in all but these: Helm makes the
// namespace, its own labels are on all, what stays is told so to Helm and not to
// what syncs from repositories, and the image has a name.
func TestChartIsConfigDefault(t *testing.T) {
	t.Parallel()
	checkChart(t, build(t, "default"), "")
}

// What the chart installs for shared watches is what the overlay has.
func TestChartIsTheOverlay(t *testing.T) {
	t.Parallel()
	checkChart(t, append(build(t, "default"), build(t, "overlays/shared-watches")...), "sharedWatches: {enabled: true}")
}

// checkChart compares manifests with what the chart renders.
func checkChart(t *testing.T, objects []client.Object, values string) {
	t.Helper()
	want := map[string]client.Object{}
	for _, object := range objects {
		annotations := object.GetAnnotations()
		if _, stays := annotations["kustomize.toolkit.fluxcd.io/prune"]; stays {
			delete(annotations, "kustomize.toolkit.fluxcd.io/prune")
			delete(annotations, "argocd.argoproj.io/sync-options")
			annotations["helm.sh/resource-policy"] = "keep"
		}
		object.SetAnnotations(annotations)
		labels := object.GetLabels()
		labels["app.kubernetes.io/managed-by"] = "Helm"
		labels["helm.sh/chart"] = "operator-controller-" + loadChart(t).Metadata.Version
		object.SetLabels(labels)
		if deployment, is := object.(*appsv1.Deployment); is {
			deployment.Spec.Template.Spec.Containers[0].Image = "ghcr.io/clusterextensions/operator-controller:" + loadChart(t).Metadata.AppVersion
		}
		if _, is := object.(*corev1.Namespace); !is {
			want[id(object)] = object
		}
	}
	if diff := cmp.Diff(want, chartObjects(t, values)); diff != "" {
		t.Errorf("objects (-config +chart):\n%s", diff)
	}
}

// Another namespace is used in every place.
func TestChartInAnotherNamespace(t *testing.T) {
	t.Parallel()
	made, err := template(t, "extensions", "v1.36.0", "serviceMonitor: {enabled: true}")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(made.Manifest, systemNamespace) {
		t.Errorf("%s is written out", systemNamespace)
	}
	for _, want := range []string{
		"--catalog-server-external-url=https://catalogd-service.extensions.svc",
		`? ["extensions"]`, "serverName: operator-controller-service.extensions.svc",
	} {
		if !strings.Contains(made.Manifest, want) {
			t.Errorf("there is no %s", want)
		}
	}
}

func TestChartLint(t *testing.T) {
	t.Parallel()
	version, err := chartutil.ParseKubeVersion("v1.36.0")
	if err != nil {
		t.Fatal(err)
	}
	linted := lint.AllWithKubeVersion(chartDir, nil, systemNamespace, version)
	for _, message := range linted.Messages {
		// An icon is for catalogs of charts, and we have none.
		if message.Severity > support.InfoSev {
			t.Error(message)
		}
	}
}

// Each value is set once. with is what it adds to the rendering of one kind, and
// without what it removes from that; a kind that is gone has nothing.
func TestChartValues(t *testing.T) {
	t.Parallel()
	byDefault := rendered(t, "")
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for values, tc := range map[string]struct{ kind, with, without string }{
		"crds: {enabled: false}":                     {"CustomResourceDefinition", "", "kind"},
		"crds: {keep: false}":                        {"CustomResourceDefinition", "", "helm.sh/resource-policy"},
		"guard: {enabled: false}":                    {"ValidatingAdmissionPolicy", "", "kind"},
		"image: {repository: mirror.example/oc}":     {"Deployment", `image: "mirror.example/oc:v0.1.0"`, "ghcr.io"},
		"image: {tag: v9}":                           {"Deployment", `image: "ghcr.io/clusterextensions/operator-controller:v9"`, ":v0.1.0"},
		"image: {tag: v9, digest: '" + digest + "'}": {"Deployment", `image: "ghcr.io/clusterextensions/operator-controller@` + digest + `"`, ":v0.1.0"},
		"image: {pullPolicy: Always}":                {"Deployment", "imagePullPolicy: Always", ""},
		"imagePullSecrets: [{name: mine}]":           {"Deployment", "imagePullSecrets:\n        - name: mine", ""},
		"serviceAccount: {annotations: {a: b}}":      {"ServiceAccount", "annotations:\n    a: b", ""},
		"serviceAccount: {imagePullSecrets: [{name: mine}]}": {
			"ServiceAccount", "imagePullSecrets:\n  - name: mine", "",
		},
		"replicas: 1":                                                         {"Deployment", "replicas: 1", "replicas: 2"},
		"podDisruptionBudget: {enabled: false}":                               {"PodDisruptionBudget", "", "kind"},
		"podDisruptionBudget: {maxUnavailable: 50%}":                          {"PodDisruptionBudget", "maxUnavailable: 50%", ""},
		"priorityClassName: ''":                                               {"Deployment", "", "priorityClassName"},
		"priorityClassName: mine":                                             {"ResourceQuota", `values: ["mine"]`, "system-cluster-critical"},
		"criticalPodsQuota: {enabled: false}":                                 {"ResourceQuota", "", "kind"},
		"affinity: {nodeAffinity: {}, podAntiAffinity: null}":                 {"Deployment", "nodeAffinity: {}", "podAntiAffinity"},
		"affinity: null":                                                      {"Deployment", "", "affinity"},
		"topologySpreadConstraints: []":                                       {"Deployment", "", "topologySpreadConstraints"},
		"nodeSelector: {a: b}":                                                {"Deployment", "a: b", ""},
		"tolerations: [{operator: Exists}]":                                   {"Deployment", "tolerations:\n        - operator: Exists", ""},
		"resources: {limits: {memory: 2Gi}}":                                  {"Deployment", "memory: 2Gi", "memory: 1Gi"},
		"podAnnotations: {a: b}":                                              {"Deployment", "annotations:\n        a: b", ""},
		"podLabels: {a: b}":                                                   {"Deployment", "labels:\n        a: b", ""},
		"extraArgs: [--v=1]":                                                  {"Deployment", "- --v=1", ""},
		"extraEnv: [{name: NO_PROXY, value: .svc}]":                           {"Deployment", "env:\n            - name: NO_PROXY\n              value: .svc", ""},
		"extraVolumes: [{name: more, configMap: {name: more}}]":               {"Deployment", "- configMap:\n            name: more\n          name: more", ""},
		"extraVolumeMounts: [{name: more, mountPath: /more}]":                 {"Deployment", "- mountPath: /more\n              name: more", ""},
		"sharedWatches: {enabled: true}":                                      {"ClusterRole", "operator-controller-shared-watches", ""},
		"networkPolicy: {enabled: false}":                                     {"NetworkPolicy", "", "kind"},
		"metrics: {enabled: false}":                                           {"Deployment", "", "metrics"},
		"metrics: {enabled: false} # Service":                                 {"Service", "", "port: 7443"},
		"metrics: {enabled: false} # NetworkPolicy":                           {"NetworkPolicy", "", "7443"},
		"serviceMonitor: {enabled: true}":                                     {"ServiceMonitor", "operator-controller-metrics-server", ""},
		"serviceMonitor: {enabled: true, interval: 30s}":                      {"ServiceMonitor", "interval: 30s", ""},
		"serviceMonitor: {enabled: true, scrapeTimeout: 10s}":                 {"ServiceMonitor", "scrapeTimeout: 10s", ""},
		"serviceMonitor: {enabled: true, labels: {release: kube-prometheus}}": {"ServiceMonitor", "release: kube-prometheus", ""},
	} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			manifests := rendered(t, values)
			before, after := ofKind(byDefault, tc.kind), ofKind(manifests, tc.kind)
			if tc.with != "" && (strings.Contains(before, tc.with) || !strings.Contains(after, tc.with)) {
				t.Errorf("it does not add %q:\n%s", tc.with, after)
			}
			if tc.without != "" && (!strings.Contains(before, tc.without) || strings.Contains(after, tc.without)) {
				t.Errorf("it does not remove %q:\n%s", tc.without, after)
			}
			for _, text := range manifests {
				if !strings.Contains(text, "kind: ServiceMonitor") && !strings.Contains(text, "kind: CustomResourceDefinition") {
					decode(t, []byte(text))
				}
			}
		})
	}
}

// ofKind are the manifests of a kind, one after the other.
func ofKind(manifests []string, kind string) string {
	return strings.Join(slices.DeleteFunc(slices.Sorted(slices.Values(manifests)), func(text string) bool {
		return !strings.Contains(text+"\n", "\nkind: "+kind+"\n") && !strings.HasPrefix(text, "kind: "+kind+"\n")
	}), "\n---\n")
}

func TestChartRefusesValues(t *testing.T) {
	t.Parallel()
	for values, want := range map[string]string{
		"image: {name: oc}":                        "additional properties 'name' not allowed",
		"replicaCount: 3":                          "additional properties 'replicaCount' not allowed",
		"replicas: '3'":                            "got string, want integer",
		"replicas: -1":                             "minimum",
		"image: {digest: abc}":                     "does not match pattern",
		"image: {tag: 'a b'}":                      "does not match pattern",
		"image: {pullPolicy: Sometimes}":           "must be one of",
		"extraArgs: {v: 1}":                        "got object, want array",
		"extraArgs: [v]":                           "does not match pattern",
		"extraEnv: [{value: x}]":                   "missing property 'name'",
		"imagePullSecrets: [mine]":                 "got string, want object",
		"sharedWatches: {kinds: [secrets]}":        "additional properties 'kinds' not allowed",
		"resources: {memory: 1Gi}":                 "additional properties 'memory' not allowed",
		"crds: {install: true}":                    "additional properties 'install' not allowed",
		"crds: {keep: maybe}":                      "got string, want boolean",
		"metrics: null":                            "missing property 'metrics'",
		"replicas: null":                           "missing property 'replicas'",
		"podDisruptionBudget: {maxUnavailable: 0}": "minimum",
		"resources: {limits: {memory: abc}}":       "does not match pattern",
		"image: {repository: ghcr.io/x:latest}":    "does not match pattern",
		"extraEnv: [{name: x, valu: y}]":           "additional properties 'valu' not allowed",
		"serviceMonitor: {interval: '5'}":          "does not match pattern",
		"{metrics: {enabled: false}, serviceMonitor: {enabled: true}}": "serviceMonitor.enabled takes metrics.enabled",
	} {
		if _, err := template(t, systemNamespace, "v1.36.0", values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want …%s…", values, err, want)
		}
	}
	if _, err := template(t, systemNamespace, "v1.29.0", ""); err == nil || !strings.Contains(err.Error(), "kubeVersion") {
		t.Errorf("Kubernetes 1.29, which has no policies for the guard: %v", err)
	}
}

// Every value that there is by default is in the schema with its type, and nothing in
// the schema is without a default: strict goes for both.
func TestChartSchemaHasTheValues(t *testing.T) {
	t.Parallel()
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	if err := yaml.Unmarshal(loadChart(t).Schema, &schema); err != nil {
		t.Fatal(err)
	}
	delete(schema.Properties, "global") // of a chart that has this one in it
	got, want := slices.Sorted(maps.Keys(schema.Properties)), slices.Sorted(maps.Keys(loadChart(t).Values))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("values (-values.yaml +schema):\n%s", diff)
	}
}

func TestChartForCatalogsOfCharts(t *testing.T) {
	t.Parallel()
	loaded := loadChart(t)
	image := chartObjects(t, "")["Deployment/olmv1-system/operator-controller-controller-manager"].(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Image
	if !strings.Contains(loaded.Metadata.Annotations["artifacthub.io/images"], "image: "+image+"\n") {
		t.Errorf("the image %s is not the one that is announced: %s", image, loaded.Metadata.Annotations["artifacthub.io/images"])
	}
	definitions, err := filepath.Glob("crd/bases/*.yaml")
	if err != nil || len(definitions) == 0 {
		t.Fatalf("%d definitions: %v", len(definitions), err)
	}
	for _, file := range definitions {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := decode(t, text).GetName()
		if !strings.Contains(loaded.Metadata.Annotations["artifacthub.io/crds"], "name: "+name+"\n") {
			t.Errorf("%s is not announced", name)
		}
	}
}
