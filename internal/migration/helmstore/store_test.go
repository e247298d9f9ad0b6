package helmstore

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/fake"
)

// helm stores a release with the storage of Helm, and returns that and the tested type.
func helm(t *testing.T, status release.Status) (*storage.Storage, *Releases) {
	t.Helper()
	client := fake.NewClientset()
	stored := storage.Init(driver.NewSecrets(client.CoreV1().Secrets("ns")))
	err := stored.Create(&release.Release{
		Name: "web", Namespace: "ns", Version: 1, Info: &release.Info{Status: status}, Manifest: "---\na: b\n",
		Chart: &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0"}}, Config: map[string]any{"text": "mine"},
		Labels: map[string]string{"team": "a"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return stored, New(client.CoreV1(), time.Now)
}

var web = Name{Namespace: "ns", Name: "web"}

// TestMarker checks what Helm reads after each operation on a marker.
func TestMarker(t *testing.T) {
	t.Parallel()
	stored, releases := helm(t, release.StatusDeployed)
	history, err := releases.History(t.Context(), web)
	if err != nil || len(history) != 1 || history[0].Config["text"] != "mine" || history[0].Labels["team"] != "a" {
		t.Fatalf("history %+v, error %v", history, err)
	}
	if err := releases.Mark(t.Context(), history[0], "web"); err != nil {
		t.Fatal(err)
	}
	last, err := stored.Last("web")
	if err != nil || !last.Info.Status.IsPending() || last.Version != 2 || last.Manifest != "" {
		t.Fatalf("Helm sees %+v, error %v", last, err)
	}
	if err := releases.Mark(t.Context(), history[0], "web"); err == nil {
		t.Error("it was marked twice")
	}
	if history, err = releases.History(t.Context(), web); err != nil || len(history) != 2 || history[1].MovedTo != "web" {
		t.Fatalf("history %+v, error %v", history, err)
	}
	given := &release.Release{Name: "web", Namespace: "ns", Info: &release.Info{Status: release.StatusDeployed}, Manifest: "new"}
	if err := releases.Replace(t.Context(), history[1], given); err != nil {
		t.Fatal(err)
	}
	if err := releases.Supersede(t.Context(), history[0]); err != nil {
		t.Fatal(err)
	}
	if deployed, err := stored.Deployed("web"); err != nil || deployed.Version != 2 || deployed.Manifest != "new" {
		t.Errorf("Helm has %+v, error %v", deployed, err)
	}
	if history, err = releases.History(t.Context(), web); err != nil || history[1].MovedTo != "" {
		t.Fatalf("history %+v, error %v", history, err)
	}
	if err := releases.Replace(t.Context(), history[1], given); err == nil {
		t.Error("a revision that is no marker was replaced")
	}
	if err := releases.Delete(t.Context(), history...); err != nil {
		t.Fatal(err)
	}
	_, err = releases.History(t.Context(), web)
	if _, isNone := errors.AsType[*NotFoundError](err); !isNone {
		t.Errorf("error %v, want that there is none", err)
	}
}

func TestAll(t *testing.T) {
	t.Parallel()
	_, releases := helm(t, release.StatusDeployed)
	names, err := releases.All(t.Context(), "")
	if diff := cmp.Diff([]Name{web}, names); err != nil || diff != "" {
		t.Errorf("releases (-want +got), error %v:\n%s", err, diff)
	}
}

// TestForeignRecord: a record counts only under its own name, because the marker and deletions go to the name in it.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*release.Release, *corev1.Secret){
		"another name":      func(one *release.Release, _ *corev1.Secret) { one.Name = "ingress" },
		"another namespace": func(one *release.Release, _ *corev1.Secret) { one.Namespace = "ingress" },
		"another revision":  func(one *release.Release, _ *corev1.Secret) { one.Version = 9999 },
		"another Secret":    func(_ *release.Release, secret *corev1.Secret) { secret.Name = "web" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := &release.Release{Name: "web", Namespace: "ns", Version: 1, Info: &release.Info{Status: release.StatusDeployed}}
			secret, err := New(nil, time.Now).secretOf(one)
			if err != nil {
				t.Fatal(err)
			}
			change(one, secret)
			if secret.Data[dataKey], err = encode(one); err != nil {
				t.Fatal(err)
			}
			history, err := New(fake.NewClientset(secret).CoreV1(), time.Now).History(t.Context(), web)
			if err == nil || !strings.Contains(err.Error(), "record of another release") {
				t.Errorf("history %+v, error %v", history, err)
			}
		})
	}
}

// TestMarkerOfADeletedRelease: after the check, the release was uninstalled.
func TestMarkerOfADeletedRelease(t *testing.T) {
	t.Parallel()
	stored, releases := helm(t, release.StatusDeployed)
	history, err := releases.History(t.Context(), web)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stored.Delete("web", 1); err != nil {
		t.Fatal(err)
	}
	if err := releases.Mark(t.Context(), history[0], "web"); err == nil || !strings.Contains(err.Error(), "since it was checked") {
		t.Errorf("error %v", err)
	}
}

// TestOtherStorage distinguishes a release in ConfigMaps from a missing one.
func TestOtherStorage(t *testing.T) {
	t.Parallel()
	client := fake.NewClientset(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "x", Labels: map[string]string{"owner": "helm", "name": "web"}}})
	_, err := New(client.CoreV1(), time.Now).History(t.Context(), web)
	if found, isNone := errors.AsType[*NotFoundError](err); !isNone || !found.InConfigMaps {
		t.Errorf("error %v", err)
	}
}

// TestHostileRecords expand to more than is read, or are none.
func TestHostileRecords(t *testing.T) {
	t.Parallel()
	var bomb bytes.Buffer
	writer := gzip.NewWriter(&bomb)
	zeros := make([]byte, 1<<20)
	for range maxRelease>>20 + 1 {
		if _, err := writer.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a bomb":         base64.StdEncoding.EncodeToString(bomb.Bytes()),
		"no base64":      "?",
		"no JSON":        base64.StdEncoding.EncodeToString([]byte("x")),
		"without status": base64.StdEncoding.EncodeToString([]byte(`{"name":"web"}`)),
		"many values":    base64.StdEncoding.EncodeToString([]byte(`{"info":{},"hooks":[` + strings.Repeat("{},", maxValues) + `{}]}`)),
		"deep values":    base64.StdEncoding.EncodeToString([]byte(`{"info":{},"config":` + strings.Repeat(`{"a":`, maxDepth) + "1" + strings.Repeat("}", maxDepth+1))),
		"half of it":     base64.StdEncoding.EncodeToString([]byte{0x1f, 0x8b, 8}),
	} {
		if found, err := decode([]byte(text)); err == nil {
			t.Errorf("%s: %+v", name, found)
		}
	}
}

// TestLongText reads a manifest with more commas than a record may have values.
func TestLongText(t *testing.T) {
	t.Parallel()
	text := base64.StdEncoding.EncodeToString([]byte(`{"info":{},"manifest":"` + strings.Repeat(",", 2*maxValues) + `"}`))
	if found, err := decode([]byte(text)); err != nil || len(found.Manifest) != 2*maxValues {
		t.Errorf("found %t, error %v", found != nil, err)
	}
}

// TestObjects reads what Helm records, and writes it as Helm reads it.
func TestObjects(t *testing.T) {
	t.Parallel()
	const manifest = `---
# Source: web/templates/a.yaml
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
  text: |
    line
---
# nothing
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Service, metadata: {name: b}, spec: {ports: [{port: 80}]}}
`
	objects, err := Objects(manifest)
	if err != nil || len(objects) != 2 {
		t.Fatalf("objects %v, error %v", objects, err)
	}
	if text, _, _ := unstructured.NestedString(objects[0].Object, "data", "text"); text != "line\n" {
		t.Errorf("text = %q", text)
	}
	text, err := Manifest(objects)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Objects(text)
	if diff := cmp.Diff(objects, again); err != nil || diff != "" {
		t.Errorf("objects (-want +got), error %v:\n%s", err, diff)
	}
	if _, err := Objects("a: b: c"); err == nil {
		t.Error("what is no YAML was read")
	}
	if _, err := Objects(strings.Repeat("---\n{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n", maxObjects+1)); err == nil {
		t.Error("there is no bound")
	}
}
