package main

import (
	"context"
	"errors"
	"io/fs"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

const (
	crowdSize      = 1000
	crowdPeakLimit = 250
)

// crowd installs 1,000 extensions. To keep the cluster fast, they have neither a
// CRD nor a Deployment: seven objects of five kinds are left.
func (b *bench) crowd(ctx context.Context) (over, err error) {
	say("installing %d extensions", crowdSize)
	if err := b.remove(ctx); err != nil {
		return nil, err
	}
	crowd := names("crowd", crowdSize)
	if err := errors.Join(b.prepare(ctx, crowd), b.publish(ctx, "crowd", crowd, small)); err != nil {
		return nil, err
	}
	if _, err := b.startController(ctx); err != nil {
		return nil, err
	}
	wall, err := b.arrival(ctx, at(crowd, firstVersion), func() error {
		return b.create(ctx, generatedExtensions(crowd, firstVersion)...)
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(b.quiet(ctx), b.details.profile(ctx, "crowd", 1)()); err != nil {
		return nil, err
	}
	used, err := b.usage()
	if err != nil {
		return nil, err
	}
	const name = "install 1,000 extensions without CRDs and Deployments"
	return errors.Join(
		b.report.Tell(name, "wall-seconds", wall.Seconds()),
		b.report.Tell(name, "cpu-seconds", used.CPUSeconds),
		b.report.Check(name, "peak-MiB", measure.Mebibytes(used.PeakBytes), crowdPeakLimit),
		b.report.Tell(name, "resident-anonymous-MiB", measure.Mebibytes(used.AnonymousBytes)),
		b.report.Tell(name, "resident-file-MiB", measure.Mebibytes(used.FileBytes)),
	), nil
}

// small is the content of a bundle without its CRD and its Deployment.
func small(operator testkit.Operator) (fs.FS, error) {
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
