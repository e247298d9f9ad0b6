package operator

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing/fstest"

	"sigs.k8s.io/yaml"
)

// Variant is the sample operator as a program that runs, under a name of its own, so
// that several can be on one cluster: its package, API group and objects have the name
// in the place of "sample-operator" and "sample".
type Variant struct {
	// Name is that of the package.
	Name string
	// Image is the reference of the program, see program.
	Image string
	// Environment is what the program is told besides its name and API group.
	Environment map[string]string
	// Webhooks are served: Widgets are validated, mutated, and converted between
	// v1alpha1 with spec.size and v1beta1 with spec.units.
	Webhooks bool
	// SeveralNamespaces says that it can be installed for several of them, too.
	SeveralNamespaces bool
	// ProgressDeadline of the Deployment, in seconds; that of Kubernetes if zero.
	ProgressDeadline int
}

// Group is the API group of the variant's Widgets.
func (v Variant) Group() string { return v.Name + ".clusterextensions.dev" }

// object is one of a manifest.
type object = map[string]any

// Bundle is Bundle of the version for the variant.
func (v Variant) Bundle(version string) (fstest.MapFS, error) {
	files, err := Bundle(version)
	if err != nil {
		return nil, err
	}
	renamed := fstest.MapFS{}
	err = fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		content, err = v.change(name, v.rename(content))
		renamed[name] = &fstest.MapFile{Data: content}
		return err
	})
	return renamed, err
}

func (v Variant) rename(content []byte) []byte {
	for _, names := range [][2]string{
		{"sample.clusterextensions.dev", v.Group()}, {Package, v.Name}, {"widget-viewer", v.Name + "-widget-viewer"},
	} {
		content = bytes.ReplaceAll(content, []byte(names[0]), []byte(names[1]))
	}
	return content
}

func (v Variant) change(name string, content []byte) ([]byte, error) {
	var change func(object)
	switch {
	case strings.HasSuffix(name, "clusterserviceversion.yaml"):
		change = v.changeCSV
	case strings.HasSuffix(name, "widgets.yaml") && v.Webhooks:
		change = addVersion
	default:
		return content, nil
	}
	manifest := object{}
	if err := yaml.Unmarshal(content, &manifest); err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	change(manifest)
	return yaml.Marshal(manifest)
}

// changeCSV has the variant's program run, probed for readiness.
func (v Variant) changeCSV(csv object) {
	spec := at(csv, "spec")
	deployment := at(list(at(spec, "install", "spec"), "deployments")[0], "spec")
	if v.ProgressDeadline > 0 {
		deployment["progressDeadlineSeconds"] = v.ProgressDeadline
	}
	container := at(list(at(deployment, "template", "spec"), "containers")[0])
	container["image"] = v.Image
	container["env"] = append(list(container, "env"), v.variables()...)
	// The default timeout of one second would make the pod unready on a busy machine.
	container["readinessProbe"] = object{
		"httpGet": object{"path": "/readyz", "port": 8081}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 10,
	}
	for _, mode := range list(spec, "installModes") {
		if mode := at(mode); v.SeveralNamespaces && mode["type"] == "MultiNamespace" {
			mode["supported"] = true
		}
	}
	if v.Webhooks {
		spec["installModes"] = []any{object{"type": "AllNamespaces", "supported": true}}
		spec["webhookdefinitions"] = v.webhooks()
	}
}

// at is the object at a path; an empty one if there is none, which a test will find.
func at(value any, path ...string) object {
	found, _ := value.(object)
	for _, name := range path {
		found, _ = found[name].(object)
	}
	return found
}

// list is that of an object by its name.
func list(in object, name string) []any {
	found, _ := in[name].([]any)
	return found
}

func (v Variant) variables() []any {
	all := maps.Clone(v.Environment)
	if all == nil {
		all = map[string]string{}
	}
	all["OPERATOR_NAME"], all["WIDGET_GROUP"] = v.Name, v.Group()
	var variables []any
	for _, name := range slices.Sorted(maps.Keys(all)) {
		variables = append(variables, object{"name": name, "value": all[name]})
	}
	return variables
}

func (v Variant) webhooks() []any {
	definition := func(kind, verb string) object {
		return object{
			"type": kind, "generateName": verb + "." + v.Group(), "deploymentName": v.Name,
			"containerPort": 443, "targetPort": 9443, "webhookPath": "/" + verb + "-widget",
			"admissionReviewVersions": []any{"v1"}, "sideEffects": "None",
		}
	}
	validating, mutating := definition("ValidatingAdmissionWebhook", "validate"), definition("MutatingAdmissionWebhook", "mutate")
	for _, admission := range []object{validating, mutating} {
		admission["failurePolicy"] = "Fail"
		admission["rules"] = []any{object{
			"apiGroups": []any{v.Group()}, "apiVersions": []any{"v1alpha1"}, "operations": []any{"CREATE", "UPDATE"}, "resources": []any{"widgets"},
		}}
	}
	converting := definition("ConversionWebhook", "convert")
	converting["conversionCRDs"] = []any{"widgets." + v.Group()}
	return []any{validating, mutating, converting}
}

// addVersion has Widgets in v1beta1, too, with spec.units in place of spec.size.
func addVersion(crd object) {
	spec := at(crd, "spec")
	spec["versions"] = append(list(spec, "versions"), object{
		"name": "v1beta1", "served": true, "storage": false, "subresources": object{"status": object{}},
		"schema": object{"openAPIV3Schema": object{
			"description": "Widget is a thing of a given number of units.", "type": "object",
			"properties": object{
				"spec": object{"type": "object", "properties": object{
					"units": object{"type": "integer"}, "color": object{"type": "string"},
				}},
				"status": object{"type": "object", "properties": object{"ready": object{"type": "boolean"}}},
			},
		}},
	})
}
