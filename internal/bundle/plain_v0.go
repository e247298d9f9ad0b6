package bundle

import (
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// PlainV0 is any objects, applied as they are.
const PlainV0 Format = "plain+v0"

type plainV0 struct{}

func (plainV0) read(p *parser) error {
	for _, step := range []func() error{p.readManifests, p.readDependencies} {
		if err := step(); err != nil {
			return err
		}
	}
	// Where files could not be decoded, what is missing may be among them.
	if len(p.findings.violations)+len(p.betaCRDs)+len(p.bundle.Others) == 0 {
		p.findings.add(manifestsDir, "", "no objects found")
	}
	return nil
}

func (plainV0) add(p *parser, at location, object *unstructured.Unstructured) {
	p.addManifest(at, object, p.addOther)
}

func (plainV0) takesAnyObject() bool { return true }

func (plainV0) identity(*Bundle) (Identity, error) {
	return Identity{}, &UnsupportedError{Reasons: []string{"a bundle of the format " + string(PlainV0) + " does not tell its version: only a catalog does"}}
}

func (plainV0) validate(v *validator) { v.manifestNames() }

func (plainV0) configProperties(*Bundle) map[string]any { return map[string]any{} }

func (plainV0) parseConfig(b *Bundle, _ string, inline []byte) (Config, error) {
	value, err := decodeConfig(inline)
	if err != nil {
		return Config{}, err
	}
	problems, err := schemaProblems(b, configSchema(b), value)
	if err == nil && len(problems) > 0 {
		err = newConfigError(problems...)
	}
	return Config{}, err
}

func (plainV0) render(b *Bundle, opts Options) (Rendered, error) {
	if !opts.Config.isZero() {
		return Rendered{}, newConfigError("a plain bundle takes no configuration")
	}
	objects, err := b.asAuthored(opts.InstallNamespace)
	return Rendered{Objects: objects}, err
}

// asAuthored returns the objects of a bundle as they are. One that names no namespace but
// needs one gets that of the installation, as far as its kind is known here; whoever applies
// the rest learns from the cluster.
func (b *Bundle) asAuthored(namespace string) ([]*unstructured.Unstructured, error) {
	kinds := namespacedKinds(b)
	var objects objectSet
	for i := range b.Others {
		object := b.Others[i].DeepCopy()
		key := b.keyOf(object)
		if kinds[key.GroupKind] && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		objects.add(source{object: object, file: b.files[key]})
	}
	return objects.sorted()
}

// namespacedKinds are those of Kubernetes that live in a namespace, and those
// that the bundle itself defines so.
func namespacedKinds(b *Bundle) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for group, names := range map[string][]string{
		groupCore: {
			"ConfigMap", "Endpoints", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate",
			"ReplicationController", "ResourceQuota", "Secret", kindService, kindServiceAccount,
		},
		groupApps:             {"ControllerRevision", "DaemonSet", kindDeployment, "ReplicaSet", "StatefulSet"},
		groupRBAC:             {kindRole, kindRoleBinding},
		"autoscaling":         {"HorizontalPodAutoscaler"},
		"batch":               {"CronJob", "Job"},
		"coordination.k8s.io": {"Lease"},
		"discovery.k8s.io":    {"EndpointSlice"},
		"networking.k8s.io":   {"Ingress", "NetworkPolicy"},
		"policy":              {"PodDisruptionBudget"},
		"storage.k8s.io":      {"CSIStorageCapacity"},
	} {
		for _, name := range names {
			kinds[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	maps.Copy(kinds, definedScopes(b))
	return kinds
}

// definedScopes are the kinds that the bundle itself defines, true for those that live in a
// namespace.
func definedScopes(b *Bundle) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for i := range b.Others {
		object := b.Others[i].Object
		if b.keyOf(&b.Others[i]).GroupKind != crdKey("").GroupKind {
			continue
		}
		group, _, _ := unstructured.NestedString(object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(object, "spec", "scope")
		kinds[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	return kinds
}
