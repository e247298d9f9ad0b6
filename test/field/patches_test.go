package field_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// otherHalf is an edit of an object of chart refused-object-stops-repair that excludes a field of the chart.
type otherHalf struct{ value, named, edit, field string }

// patchRows are cases in which others write the same objects.
func patchRows() []row {
	rows := []row{
		{"F12", "conversion-by-operator", func(t *testing.T) {
			const lamps, lampw = "apiextensions.k8s.io/v1 CustomResourceDefinition lamps.p16.test", "apiextensions.k8s.io/v1 CustomResourceDefinition lampw.p16.test"
			conversion := string(read(t, "conversion-by-operator/conversion.json"))
			install(t, "lamps", image(push(t, "conversion-by-operator/v1")))
			ready(t, "lamps", "1.0.0")
			edit(t, lamps, conversion)
			upgrade(t, "lamps", image(push(t, "conversion-by-operator/v2")))
			ready(t, "lamps", "2.0.0")
			has(t, lamps, "spec.conversion.strategy", "None")
			remove(t, "olm.operatorframework.io/v1 ClusterExtension lamps")
			gone(t, lamps) // the other CRD has the same singular

			install(t, "lampw", image(push(t, "conversion-by-operator/v1-without")))
			ready(t, "lampw", "1.0.0")
			edit(t, lampw, conversion)
			time.Sleep(2 * time.Second) // in which a repair would take place
			has(t, lampw, "spec.conversion.strategy", "Webhook")
		}},
		{"F12", "statefulset-ondelete", func(t *testing.T) {
			for _, kind := range []string{"sts", "stsnone"} {
				name := "p8-" + kind
				install(t, name, image(push(t, "statefulset-ondelete/"+kind+"-v1")))
				ready(t, name, "1.0.0")
				upgrade(t, name, image(push(t, "statefulset-ondelete/"+kind+"-v2")))
				installed(t, name, "2.0.0")
				has(t, "apps/v1 StatefulSet "+name+"/w", "spec.updateStrategy", map[string]any{"type": "OnDelete"})
			}
		}},
		{"F13", "serviceaccount-alias", func(t *testing.T) {
			install(t, "p8-sa", image(push(t, "serviceaccount-alias/v1")))
			ready(t, "p8-sa", "1.0.0")
			for _, version := range []string{"2", "3"} {
				upgrade(t, "p8-sa", image(push(t, "serviceaccount-alias/v"+version)))
				ready(t, "p8-sa", version+".0.0")
				for _, field := range []string{"serviceAccountName", "serviceAccount"} {
					has(t, "apps/v1 Deployment p8-sa/w", "spec.template.spec."+field, nil)
				}
			}
		}},
		{"F14", "injected-sidecar", testInjectedSidecar},
		{"F15", "pull-secrets", func(t *testing.T) {
			for _, name := range []string{"gate", "fence"} {
				install(t, name, image(push(t, "pull-secrets/"+name)))
				ready(t, name, "1.0.0")
				merge(t, "v1 ServiceAccount "+name+"/op", []byte(`{"imagePullSecrets":[{"name":"other"}]}`))
				time.Sleep(2 * time.Second) // in which a repair would take place
				found := exists(t, "v1 ServiceAccount "+name+"/op")
				secrets, _, _ := unstructured.NestedSlice(found.Object, "imagePullSecrets")
				want := map[string]int{"gate": 1, "fence": 2}[name]
				if len(secrets) != want {
					t.Errorf("%s has %v, want %d entries", name, secrets, want)
				}
			}
		}},
		{"F16", "predecessor-fields", func(t *testing.T) {
			place(t, "takeb")
			create(t, string(read(t, "predecessor-fields/predecessor.yaml")))
			install(t, "takeb", image(push(t, "predecessor-fields/take1.0.0")))
			ready(t, "takeb", "1.0.0")
			container := firstContainer(t, "apps/v1 Deployment takeb/take")
			if container["args"] != nil || len(container["env"].([]any)) != 1 {
				says(t, "takeb", ocv1.TypeReady, metav1.ConditionTrue, "args")
			}
			upgrade(t, "takeb", image(push(t, "predecessor-fields/take2.0.0")))
			ready(t, "takeb", "2.0.0")
		}},
	}
	for _, half := range []otherHalf{
		{"pdb", "policy/v1 PodDisruptionBudget", `{"spec":{"minAvailable":null,"maxUnavailable":1}}`, "spec.minAvailable"},
		{"hpa", "autoscaling/v2 HorizontalPodAutoscaler", `{"spec":{"minReplicas":7,"maxReplicas":9}}`, "spec.maxReplicas"},
		{"cm", "v1 ConfigMap", `{"data":null,"binaryData":{"key":"YQ=="}}`, "data.key"},
		{"ingress", "networking.k8s.io/v1 Ingress", `{"spec":{"defaultBackend":{"service":null,"resource":{"kind":"Bucket","name":"b"}}}}`, "spec.defaultBackend.service.name"},
		{"surge", "apps/v1 Deployment", `{"spec":{"strategy":{"rollingUpdate":{"maxSurge":0,"maxUnavailable":1}}}}`, "spec.strategy.rollingUpdate.maxUnavailable"},
		{"deadline", "apps/v1 Deployment", `{"spec":{"progressDeadlineSeconds":600,"minReadySeconds":120}}`, "spec.progressDeadlineSeconds"},
	} {
		rows = append(rows, row{"F12", "refused-object-stops-repair", func(t *testing.T) { testOtherHalf(t, half) }})
	}
	return rows
}

// testOtherHalf sets a field that excludes a field of the chart, as a user does, and then upgrades.
func testOtherHalf(t *testing.T, half otherHalf) {
	name := "p9-" + half.value
	chosen := values(map[string]any{"case": half.value})
	install(t, name, image(push(t, "refused-object-stops-repair/chart")), chosen)
	installed(t, name, "1.0.0")
	named := fmt.Sprintf("%s %s/p", half.named, name)
	before := field(t, named, half.field)
	edit(t, named, half.edit)
	has(t, named, half.field, before)
	upgrade(t, name, image(pushVersion(t, "refused-object-stops-repair/chart", "1.1.0")), chosen)
	installed(t, name, "1.1.0")
	has(t, named, half.field, before)
}

// testInjectedSidecar adds a container, as a mesh does, and breaks an entry of the bundle: only that entry is repaired.
func testInjectedSidecar(t *testing.T) {
	const courier = "apps/v1 Deployment courier/courier"
	install(t, "courier", image(push(t, "injected-sidecar/bundle")))
	ready(t, "courier", "1.0.0")
	merge(t, courier, read(t, "injected-sidecar/mesh.json"))
	merge(t, courier, []byte(`{"spec":{"template":{"spec":{"volumes":[{"name":"scratch","emptyDir":null,"hostPath":{"path":"/tmp"}}],
		"containers":[{"name":"main","env":[{"name":"TOKEN","value":"x","valueFrom":null}],"livenessProbe":{"httpGet":null,"tcpSocket":{"port":8080}}}]}}}}`))
	eventuallyContainer(t, courier, func(container map[string]any) error {
		environment := map[string]any{}
		for _, entry := range container["env"].([]any) {
			environment[entry.(map[string]any)["name"].(string)] = entry.(map[string]any)["valueFrom"]
		}
		probe, _ := container["livenessProbe"].(map[string]any)
		_, hasMesh := environment["BAR"]
		if environment["TOKEN"] == nil || !hasMesh || probe["httpGet"] == nil || probe["tcpSocket"] != nil {
			return fmt.Errorf("the container is %v", container)
		}
		return nil
	})
	if containers := len(containersOf(exists(t, courier))); containers != 2 {
		t.Errorf("it has %d containers, want also the container of the mesh", containers)
	}
	ready(t, "courier", "1.0.0")

	install(t, "unions", image(push(t, "injected-sidecar/chart")))
	installed(t, "unions", "1.0.0")
	merge(t, "apps/v1 Deployment unions/probe", []byte(`{"spec":{"template":{"spec":{"containers":[
		{"name":"main","livenessProbe":{"httpGet":null,"tcpSocket":{"port":8080}}},{"name":"proxy","image":"r.test/proxy:1"}]}}}}`))
	eventuallyContainer(t, "apps/v1 Deployment unions/probe", func(container map[string]any) error {
		if probe := container["livenessProbe"].(map[string]any); probe["httpGet"] == nil || probe["tcpSocket"] != nil {
			return fmt.Errorf("the probe is %v", probe)
		}
		return nil
	})
	if containers := len(containersOf(exists(t, "apps/v1 Deployment unions/probe"))); containers != 2 {
		t.Errorf("it has %d containers, want also the container of the mesh", containers)
	}
}
