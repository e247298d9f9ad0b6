package status_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	batchv1 "k8s.io/api/batch/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/status"
)

// hooks are situations of charts that have something run before they are installed.
func hooks() []situation {
	const suspended, expires, atNoNode = "suspend: true, ", "activeDeadlineSeconds: 1, ", "nodeSelector: {no: node}, "
	return []situation{
		{
			name:  "hook-runs",
			stage: all(withInstaller, pushHook("1.0.0", suspended, "")),
			steps: []step{
				{do: extendByChart("1.0.0"), then: []moment{created(), waitsForHook()}},
				{do: resumeHook, then: []moment{ready("1.0.0")}},
			},
		},
		{
			name:  "hook-fails",
			stage: all(withInstaller, pushHook("1.0.0", expires, atNoNode), pushHook("1.1.0", "", "")),
			steps: []step{
				{do: extendByChart("1.0.0"), person: true, then: []moment{waitsForHook(), failed()}},
				{do: changeChart("1.1.0"), then: []moment{ready("1.1.0")}},
			},
		},
	}
}

// pushHook pushes a chart of the scene with a Job that runs before its content. It has more in its spec, and
// in that of its pods.
func pushHook(version, more, ofPods string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		files := fstest.MapFS{
			"Chart.yaml":              {Data: []byte(fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", s.name, version))},
			"templates/settings.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\n")},
			"templates/migrate.yaml": {Data: []byte("apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: \"pre-install,pre-upgrade\"}}\n" +
				"spec: {" + more + "template: {spec: {" + ofPods + "restartPolicy: Never, containers: [{name: c, image: registry.test/none}]}}}\n")},
		}
		if _, err := theSuite.Registry.PushChart(t.Context(), s.name+":v"+version, s.name, files); err != nil {
			t.Fatal(err)
		}
	}
}

// byChart has an extension name the image of a chart.
func byChart(name, version string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source = ocv1.SourceConfig{SourceType: ocv1.SourceTypeBundle, Bundle: &ocv1.BundleSource{Ref: registryHost + "/" + name + ":v" + version}}
	}
}

func extendByChart(version string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		extend(version, byChart(s.name, version))(t, s)
	}
}

func changeChart(version string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		change(version, byChart(s.name, version))(t, s)
	}
}

// resumeHook has the Job go on.
func resumeHook(t *testing.T, s *scene) {
	t.Helper()
	job := &batchv1.Job{}
	job.Namespace, job.Name = s.name, "migrate"
	if err := theSuite.Admin.Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(`{"spec": {"suspend": false}}`))); err != nil {
		t.Fatal(err)
	}
}

func waitsForHook() moment {
	return moment{name: "a hook runs", is: func(c status.Capture) bool {
		return strings.Contains(c.Condition("Ready").Message, "waits for the pre-install hook")
	}}
}
