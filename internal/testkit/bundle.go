package testkit

import (
	"fmt"
	"testing/fstest"
)

// Operator describes a small operator of which bundles can be made: a CRD, a
// Deployment with its ServiceAccount and ClusterRole, a Service and ConfigMaps.
// Operators of different packages share no object.
type Operator struct {
	Package string
	Version string

	// ConfigMaps are the names of additional ConfigMaps.
	ConfigMaps []string

	// Properties of the bundle in the catalog besides its version, as YAML in
	// one line each.
	Properties []string
}

// Name of the bundle.
func (o Operator) Name() string { return o.Package + ".v" + o.Version }

// Image is the reference that [Catalog] has for the bundle.
func (o Operator) Image(registry string) string {
	return fmt.Sprintf("%s/%s:v%s", registry, o.Package, o.Version)
}

// Bundle is the content of the bundle's image.
func (o Operator) Bundle() fstest.MapFS {
	files := fstest.MapFS{
		"metadata/annotations.yaml": file(fmt.Sprintf(annotationsYAML, o.Package)),
		"manifests/csv.yaml":        file(fmt.Sprintf(csvYAML, o.Package, o.Version)),
		"manifests/crd.yaml":        file(fmt.Sprintf(crdYAML, o.Package)),
		"manifests/service.yaml":    file(fmt.Sprintf(serviceYAML, o.Package)),
	}
	for _, name := range o.ConfigMaps {
		files["manifests/"+name+".yaml"] = file(fmt.Sprintf(configMapYAML, name, o.Version))
	}
	return files
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

const annotationsYAML = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: registry+v1
  operators.operatorframework.io.bundle.manifests.v1: manifests/
  operators.operatorframework.io.bundle.metadata.v1: metadata/
  operators.operatorframework.io.bundle.package.v1: %s
`

const csvYAML = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata:
  name: %[1]s.v%[2]s
spec:
  displayName: %[1]s
  version: %[2]s
  installModes:
  - {type: AllNamespaces, supported: true}
  customresourcedefinitions:
    owned:
    - {name: things.%[1]s.test, kind: Thing, version: v1}
  install:
    strategy: deployment
    spec:
      clusterPermissions:
      - serviceAccountName: %[1]s
        rules:
        - {apiGroups: [%[1]s.test], resources: [things], verbs: [get, list, watch]}
      deployments:
      - name: %[1]s
        spec:
          replicas: 1
          selector:
            matchLabels: {app: %[1]s}
          template:
            metadata:
              labels: {app: %[1]s}
            spec:
              serviceAccountName: %[1]s
              containers:
              - name: manager
                image: registry.test/%[1]s:operator-%[2]s
`

const crdYAML = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: things.%[1]s.test
spec:
  group: %[1]s.test
  scope: Namespaced
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
`

const serviceYAML = `apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {app: %[1]s}
  ports:
  - {port: 80}
`

const configMapYAML = `apiVersion: v1
kind: ConfigMap
metadata:
  name: %s
data:
  version: %s
`
