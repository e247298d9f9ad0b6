package main

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// generated is an operator of nine objects: a CRD, a ServiceAccount with a
// ClusterRole and its binding, a Deployment, a Service and three ConfigMaps.
func generated(name, version string) testkit.Operator {
	return testkit.Operator{Package: name, Version: version, ConfigMaps: []string{"settings", "defaults", "features"}}
}

// shape is what extensions of generated operators consist of.
type shape struct {
	bundle  func(testkit.Operator) (fs.FS, error)
	objects int
}

var (
	// whole operators are as they are generated.
	whole = shape{bundle: func(operator testkit.Operator) (fs.FS, error) { return operator.Bundle(), nil }, objects: 9}

	// small operators are without the CRD and the Deployment: a thousand of them would
	// keep the API server and the nodes busy, and that is not what is measured.
	small = shape{bundle: smallBundle, objects: 7}

	// released operators are what Helm releases are measured with elsewhere: a Deployment
	// without replicas, a ServiceAccount, a Service and an Ingress.
	released = shape{bundle: releasedBundle, objects: 4}
)

// rendered are the objects of an extension.
func (s shape) rendered(name, version string) ([]*unstructured.Unstructured, error) {
	files, err := s.bundle(generated(name, version))
	if err != nil {
		return nil, err
	}
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	rendered, err := bundle.Render(content, bundle.Options{InstallNamespace: name})
	if err == nil && len(rendered.Objects) != s.objects {
		return nil, fmt.Errorf("a generated operator has %d objects, want %d", len(rendered.Objects), s.objects)
	}
	return rendered.Objects, err
}

func smallBundle(operator testkit.Operator) (fs.FS, error) {
	files := operator.Bundle()
	delete(files, "manifests/crd.yaml")
	csv := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(files["manifests/csv.yaml"].Data, &csv.Object); err != nil {
		return nil, err
	}
	unstructured.RemoveNestedField(csv.Object, "spec", "customresourcedefinitions")
	unstructured.RemoveNestedField(csv.Object, "spec", "install", "spec", "deployments")
	data, err := yaml.Marshal(csv.Object)
	files["manifests/csv.yaml"] = &fstest.MapFile{Data: data}
	return files, err
}

func releasedBundle(operator testkit.Operator) (fs.FS, error) {
	return fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte(plainYAML)},
		"manifests/release.yaml":    {Data: fmt.Appendf(nil, releaseYAML, operator.Package, operator.Version)},
	}, nil
}

const plainYAML = `annotations:
  operators.operatorframework.io.bundle.mediatype.v1: plain+v0
`

const releaseYAML = `apiVersion: v1
kind: ServiceAccount
metadata:
  name: %[1]s
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: %[1]s
spec:
  replicas: 0
  selector:
    matchLabels: {app: %[1]s}
  template:
    metadata:
      labels: {app: %[1]s}
    spec:
      serviceAccountName: %[1]s
      containers:
      - name: main
        image: registry.test/%[1]s:%[2]s
        ports:
        - {name: http, containerPort: 8080}
---
apiVersion: v1
kind: Service
metadata:
  name: %[1]s
spec:
  selector: {app: %[1]s}
  ports:
  - {name: http, port: 80, targetPort: http}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: %[1]s
spec:
  rules:
  - host: %[1]s.test
    http:
      paths:
      - path: /
        pathType: Prefix
        backend:
          service:
            name: %[1]s
            port: {name: http}
`
