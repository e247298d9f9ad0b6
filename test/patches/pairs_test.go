package patches_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const pairedDeployment = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}, spec: {%s
  selector: {matchLabels: {app: d}}, template: {metadata: {labels: {app: d}}, spec: {%s
  containers: [{name: main, %s image: registry.test/c}]}}}}`

// injected is the patch of a mesh: a sidecar, and entries of lists and maps of the container. All of it is kept.
const injected = `{metadata: {annotations: {mesh: "1"}}, spec: {template: {metadata: {annotations: {mesh: "1"}}, spec: {
  volumes: [{name: certs, emptyDir: {}}], containers: [
  {name: main, env: [{name: BAR, value: mesh}], volumeMounts: [{name: certs, mountPath: /certs}]},
  {name: proxy, image: registry.test/proxy, ports: [{name: mesh, containerPort: 15001}], volumeMounts: [{name: certs, mountPath: /certs}]}]}}}}`

// TestPairsThatExcludeEachOther: another writer sets a field that excludes a field of the revision, or changes the key of
// an entry. One or two patches restore the fields of the revision, and keep the fields that a mesh has injected.
func TestPairsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	deployment := func(spec, pod, container string) string {
		text := pairedDeployment
		for _, part := range []string{spec, pod, container} {
			if part != "" {
				part += ","
			}
			text = strings.Replace(text, "%s", part, 1)
		}
		return text
	}
	for name, tc := range map[string]struct {
		manifest string
		kind     types.PatchType // of the edit; a merge patch if it is empty
		edit     string
		version  string // the manifest of the next version; empty for a repair
	}{
		"F12: minAvailable": {
			manifest: `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: d}, spec: {minAvailable: 1, selector: {matchLabels: {app: w}}}}`,
			edit:     `{spec: {minAvailable: null, maxUnavailable: 1}}`,
		},
		"F12: maxReplicas": {
			manifest: `{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: d}, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: none}}}`,
			edit:     `{spec: {minReplicas: 5, maxReplicas: 9}}`,
		},
		"F12: data": {
			manifest: `{apiVersion: v1, kind: ConfigMap, metadata: {name: d}, data: {key: text}}`, edit: `{data: null, binaryData: {key: dGV4dA==, theirs: dGV4dA==}}`,
		},
		"F12: defaultBackend": {
			manifest: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: d}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
			edit:     `{spec: {defaultBackend: {service: null, resource: {apiGroup: a.example, kind: K, name: thing}}}}`,
		},
		"F12: number of a port of a backend": {
			manifest: `{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: d}, spec: {defaultBackend: {service: {name: s, port: {number: 80}}}}}`,
			edit:     `{spec: {defaultBackend: {service: {port: {number: null, name: http}}}}}`,
		},
		"F12: maxUnavailable": {
			manifest: deployment("strategy: {rollingUpdate: {maxUnavailable: 0}}", "", ""), edit: `{spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}}}`,
		},
		"F12: progressDeadlineSeconds": {
			manifest: deployment("progressDeadlineSeconds: 60", "", ""), edit: `{spec: {progressDeadlineSeconds: 600, minReadySeconds: 120}}`,
		},
		"F12: minReadySeconds of the next version": {
			manifest: deployment("", "", ""), edit: `{spec: {progressDeadlineSeconds: 30}}`, version: deployment("minReadySeconds: 60", "", ""),
		},
		"F12: type of a Service": {
			manifest: `{apiVersion: v1, kind: Service, metadata: {name: d}, spec: {ports: [{port: 80}], sessionAffinity: ClientIP}}`, edit: `{}`,
			version: `{apiVersion: v1, kind: Service, metadata: {name: d}, spec: {ports: [{port: 80}], sessionAffinity: None}}`,
		},
		"F12: policy of a StatefulSet": {
			manifest: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {serviceName: x, selector: {matchLabels: {app: w}}, updateStrategy: {type: RollingUpdate},
			  template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: registry.test/x}]}}}}`, edit: `{}`,
			version: `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: d}, spec: {serviceName: x, selector: {matchLabels: {app: w}}, updateStrategy: {type: OnDelete},
			  template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: registry.test/x}]}}}}`,
		},
		"F12: grace period of a probe": {
			manifest: deployment("", "", "readinessProbe: {httpGet: {path: /, port: 80}}"), kind: types.StrategicMergePatchType,
			edit: `{spec: {template: {spec: {containers: [{name: main, readinessProbe: {httpGet: null, exec: {command: [x]}}}]}}}}`,
		},
		"F12: a volume": {
			manifest: deployment("", "volumes: [{name: v, emptyDir: {}}]", "volumeMounts: [{name: v, mountPath: /v}]"), kind: types.StrategicMergePatchType,
			edit: `{spec: {template: {spec: {volumes: [{name: v, emptyDir: null, configMap: {name: c}}]}}}}`,
		},
		"F12: requests above limits": {
			manifest: deployment("", "", "resources: {requests: {cpu: 500m}}"), kind: types.StrategicMergePatchType,
			edit: `{spec: {template: {spec: {containers: [{name: main, resources: {requests: {cpu: 100m}, limits: {cpu: 200m}}}]}}}}`,
		},
		"F14: value of a variable": {
			manifest: deployment("", "", "env: [{name: TOKEN, valueFrom: {secretKeyRef: {name: c, key: token}}}]"), kind: types.StrategicMergePatchType,
			edit: `{spec: {template: {spec: {containers: [{name: main, env: [{name: TOKEN, value: x, valueFrom: null}]}]}}}}`,
		},
		"F14: number of a port": {
			manifest: deployment("", "", "ports: [{name: http, containerPort: 80}]"), kind: types.StrategicMergePatchType,
			edit: `{spec: {template: {spec: {containers: [{name: main, ports: [{$patch: delete, containerPort: 80}, {name: http, containerPort: 81}]}]}}}}`,
		},
		"F14: path of a mount": {
			manifest: deployment("", "volumes: [{name: v, emptyDir: {}}]", "volumeMounts: [{name: v, mountPath: /v}]"), kind: types.StrategicMergePatchType,
			edit:    `{spec: {template: {spec: {containers: [{name: proxy, volumeMounts: [{name: v, mountPath: /v}]}]}}}}`,
			version: deployment("", "", ""),
		},
		"F14: ports for TCP and UDP": {
			manifest: deployment("", "", "ports: [{name: tcp, containerPort: 53}, {name: udp, containerPort: 53, protocol: UDP}]"), edit: `{}`,
			version: deployment("", "", "ports: [{name: tcp, containerPort: 53}, {name: sctp, containerPort: 53, protocol: SCTP}]"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newExtension(t)
			s := e.make(t, manifestOf(t, tc.manifest))
			isInjected := s.kind.Kind == "Deployment"
			if isInjected {
				s.edit(t, "mesh", types.StrategicMergePatchType, injected)
			}
			kind := tc.kind
			if kind == "" {
				kind = types.MergePatchType
			}
			s.edit(t, "kubectl-edit", kind, tc.edit)
			e.take()
			wanted := s.manifest
			if tc.version != "" {
				wanted = manifestOf(t, tc.version)
			}
			write := func() (err error) {
				if tc.version == "" {
					_, err = s.repair(t.Context(), wanted)
					return err
				}
				return s.apply(t.Context(), []*unstructured.Unstructured{wanted}, []*unstructured.Unstructured{s.manifest})
			}
			err := write()
			for apierrors.IsConflict(err) { // the cluster writes the status meanwhile
				err = write()
			}
			if err != nil {
				t.Fatal(err)
			}
			fresh, err := s.fresh(t, wanted)
			if err != nil {
				t.Fatal(err)
			}
			if lacking := s.lacks(s.written(t, wanted), &unstructured.Unstructured{Object: fresh}, s.live(t)); lacking != "" {
				t.Errorf("%s is not as in a fresh install", lacking)
			}
			if isInjected {
				s.hasInjected(t)
			}
			s.sendsNothingFor(t, "after it", wanted)
		})
	}
}

func manifestOf(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	manifest := &unstructured.Unstructured{}
	if err := manifest.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return manifest
}

// edit changes the object as another field manager.
func (s *subject) edit(t *testing.T, manager string, kind types.PatchType, text string) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.resource.Patch(t.Context(), s.manifest.GetName(), kind, data, metav1.PatchOptions{FieldManager: manager}); err != nil {
		t.Fatal(err)
	}
}

// hasInjected fails if the object lacks an injected field: to inject all of them again has to change nothing.
func (s *subject) hasInjected(t *testing.T) {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(injected))
	if err != nil {
		t.Fatal(err)
	}
	live := s.live(t)
	again, err := object.Patch{Kind: types.StrategicMergePatchType, Data: data}.AppliedTo(live)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range differences(live.Object["spec"], again.Object["spec"], nil) {
		t.Errorf("%s of the mesh is gone", path)
	}
}
